"""The run's memory: bins of every level, a row a turn, and the decisions; flushed in chunks, so that memory stays flat.

A bin holds time-weighted means and extremes, never point samples: a chatter faster than the bin still shows.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Protocol

from orchestrator.clock import SLEEP, Clock
from orchestrator.ledger import DECODING, FILLING, READY, RETIRED, WAITING, Ledger, Turn
from orchestrator.levels import Level
from orchestrator.signals import Commands, Readings, Slot

Columns = dict[str, Any]  # Any: array.array of one of several type codes
TURN_COLUMNS = (
    *(("turn_id", "q"), ("key", "Q"), ("session_id", "q"), ("ordinal", "i"), ("class", "i"), ("arrived_s", "d")),
    *(("released_s", "d"), ("fill_started_s", "d"), ("filled_s", "d"), ("joined_s", "d"), ("ended_s", "d")),
    *(("prompt_tokens", "q"), ("cached_tokens", "q"), ("output_tokens", "q"), ("fill_worker", "i")),
    *(("decode_worker", "i"), ("preemptions", "i"), ("outcome", "i")),
)
CHUNK_TURNS = 65_536
NAN = float("nan")


class Sink(Protocol):
    """Where the record goes."""

    def turns(self, columns: Columns, classes: Sequence[str], outcomes: Sequence[str]) -> None:
        """Take a chunk of turn rows; `class` and `outcome` index the given names."""
        ...

    def signals(self, columns: Mapping[str, Sequence[float]]) -> None:
        """Take every bin of the run, once, at its end."""
        ...

    def event(self, event: Mapping[str, object]) -> None:
        """Take one decision."""
        ...


class Recorder:
    """Collect bins, turns and decisions.

    Parameters
    ----------
    clock : Clock
    ledger : Ledger
    slots : callable
        The decode slots there are now: the scale of the occupancy.
    bin_s : float
        Width of a bin, in seconds.
    sink : Sink
    moves : bool
        Record each turn's moves as events too (`record.events = "all"`).
    """

    def __init__(
        self, clock: Clock, ledger: Ledger, slots: Callable[[], int], bin_s: float, sink: Sink, moves: bool = False
    ) -> None:
        self._clock, self._ledger, self._slots, self._bin_s, self._sink = clock, ledger, slots, bin_s, sink
        self._moves = moves
        self._levels: dict[str, Level] = {
            "ready_turns": ledger.levels[READY],
            "backlog_turns": ledger.levels[WAITING],
            "in_flight_turns": ledger.in_flight,
            "filling_turns": ledger.levels[FILLING],
            "decoding_turns": ledger.levels[DECODING],
        }
        self.workers = self.level("workers_active")
        self._gauges: dict[str, Callable[[], float]] = {}
        self._bins: dict[str, array[float]] = {}
        self._count = 0
        self._start_s = 0.0
        self._totals = (0, 0, 0)
        self._seen: dict[str, Readings] = {}
        self._said: dict[str, Commands] = {}
        self._numeric: dict[type, tuple[str, ...]] = {}
        self._classes = [counts.name for counts in ledger.classes]
        self._outcomes: dict[str, int] = {"retired": 0}
        self._rows: list[tuple[float | int, ...]] = []

    def level(self, name: str) -> Level:
        """Return a new level to be recorded under `name`."""
        self._levels[name] = level = Level()
        return level

    def gauge(self, name: str, read: Callable[[], float]) -> None:
        """Record what `read` returns at the end of each bin, as the bin's mean (and extremes)."""
        self._gauges[name] = read

    # ------------------------------------------------ bins
    def start(self) -> None:
        """Begin the first bin."""
        self._clock.at(self._bin_s, self._close, 1, SLEEP)

    def _close(self, k: int) -> None:
        self._bin(k * self._bin_s)
        self._clock.at((k + 1) * self._bin_s, self._close, k + 1, SLEEP)

    def _bin(self, end_s: float) -> None:
        start_s, self._start_s = self._start_s, end_s
        self._put("t_s", start_s)
        slots = self._slots()
        for name, level in self._levels.items():
            mean, low, high = level.close(start_s, end_s)
            self._three(name, mean, low, high)
            if name == "decoding_turns":
                scale = 1.0 / slots if slots else NAN
                self._three("decode_occupancy_ratio", mean * scale, low * scale, high * scale)
        for name, read in self._gauges.items():
            value = read()
            self._three(name, value, value, value)
        ledger = self._ledger
        totals = (ledger.arrived, ledger.released, ledger.retired)
        for name, now, before in zip(("arrived_turns", "admitted_turns", "retired_turns"), totals, self._totals):
            self._put(name, now - before)
        self._totals = totals
        self._put("slots", slots)
        for slot, reading in self._seen.items():
            self._fields(f"seen.{slot}", reading)
        for slot, command in self._said.items():
            self._fields(f"command.{slot}", command)
        self._count += 1

    def _three(self, name: str, mean: float, low: float, high: float) -> None:
        self._put(f"{name}_mean", mean)
        self._put(f"{name}_min", low)
        self._put(f"{name}_max", high)

    def _put(self, name: str, value: float) -> None:
        column = self._bins.get(name)
        if column is None:  # a column that begins late was not measured before
            column = self._bins[name] = array("d", [NAN]) * self._count
        column.append(value)

    def _fields(self, prefix: str, message: Readings | Commands) -> None:
        names = self._numeric.get(type(message))
        if names is None:
            names = tuple(f.name for f in fields(message) if f.name not in ("by_class", "applied", "setpoint"))
            self._numeric[type(message)] = names
        for name in names:
            value = getattr(message, name)
            column = f"{prefix}.{name}"
            if isinstance(value, int | float):
                self._put(column, value)
            elif value is None and column in self._bins:  # measured, or set, before: not now
                self._put(column, NAN)

    def saw(self, slot: Slot, reading: Readings, command: Commands) -> None:
        """Note what a law saw and said; the last one in a bin is kept."""
        self._seen[slot] = reading
        self._said[slot] = command

    # ------------------------------------------------ turns and decisions
    def turn(self, turn: Turn) -> None:
        """Add a turn that has ended, or that the end of the run overtook."""
        view = turn.view
        code = 0 if turn.stage is RETIRED else self._outcomes.setdefault(turn.outcome, len(self._outcomes))
        row = (
            view.turn_id,
            view.key,
            view.session_id,
            view.ordinal,
            turn.class_index,
            view.arrived_s,
            turn.released_s,
            turn.fill_started_s,
            turn.filled_s,
            turn.joined_s,
            turn.ended_s,
            view.prompt_tokens,
            turn.cached_tokens,
            turn.output_tokens,
            turn.fill_worker,
            turn.decode_worker,
            turn.preemptions,
            code,
        )
        self._rows.append(row)
        if self._moves:
            for at_s, stage in turn.story():
                self.event("move", at_s, turn_id=view.turn_id, stage=stage)
        if len(self._rows) >= CHUNK_TURNS:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            columns = {name: array(code, column) for (name, code), column in zip(TURN_COLUMNS, zip(*self._rows))}
            self._sink.turns(columns, self._classes, list(self._outcomes))
            self._rows = []

    def event(self, kind: str, at_s: float, **what: object) -> None:
        """Record one decision."""
        self._sink.event({"at_s": at_s, "kind": kind, **what})

    def finish(self, now_s: float) -> None:
        """Close the last bin, pad the columns that ended early, and hand over what is left."""
        counted = (self._ledger.arrived, self._ledger.released, self._ledger.retired) != self._totals
        if now_s - self._start_s > 1e-9 * self._bin_s or counted:  # k * bin_s may miss the horizon by a bit
            self._bin(now_s)
        self._flush()
        self._sink.signals(self._bins)
