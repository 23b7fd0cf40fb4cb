"""The run's memory: signals in bins, a row a turn, and the decisions; flushed in chunks, so that memory stays flat."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from orchestrator.bins import Bins
from orchestrator.clock import SLEEP, Clock
from orchestrator.ledger import RETIRED, Ledger, Turn
from orchestrator.levels import Level

Columns = dict[str, Any]  # Any: array.array of one of several type codes
TURN_COLUMNS = (
    *(("turn_id", "q"), ("key", "Q"), ("session_id", "q"), ("ordinal", "i"), ("class", "i"), ("arrived_s", "d")),
    *(("released_s", "d"), ("fill_started_s", "d"), ("filled_s", "d"), ("joined_s", "d"), ("ended_s", "d")),
    *(("prompt_tokens", "q"), ("cached_tokens", "q"), ("output_tokens", "q"), ("fill_worker", "i")),
    *(("decode_worker", "i"), ("preemptions", "i"), ("outcome", "i")),
)
CHUNK_TURNS = 65_536
PACK_TURNS = 512  # rows of Python objects become packed columns while they are still in the processor's cache


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
        self._clock, self._bin_s, self._sink = clock, bin_s, sink
        self._moves = moves
        self._bins = Bins(ledger, slots)
        self.saw = self._bins.saw
        self.workers = self.level("workers_active")
        self._start_s = 0.0
        self._classes = [counts.name for counts in ledger.classes]
        self._outcomes: dict[str, int] = {"retired": 0}
        self._rows: list[tuple[float | int, ...]] = []
        self._columns: Columns = _empty()

    def level(self, name: str) -> Level:
        """Return a new level to be recorded under `name`; before the first bin."""
        self._bins.levels[name] = level = Level()
        return level

    def gauge(self, name: str, read: Callable[[], float]) -> None:
        """Record what `read` returns at the end of each bin, as the bin's mean (and extremes); before the first bin."""
        self._bins.gauges[name] = read

    # ------------------------------------------------ bins
    def start(self) -> None:
        """Begin the first bin."""
        self._clock.at(self._bin_s, self._close, 1, SLEEP)

    def _close(self, k: int) -> None:
        self._bin(k * self._bin_s)
        self._clock.at((k + 1) * self._bin_s, self._close, k + 1, SLEEP)

    def _bin(self, end_s: float) -> None:
        start_s, self._start_s = self._start_s, end_s
        self._bins.close(start_s, end_s)

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
        rows = self._rows
        rows.append(row)
        if self._moves:
            for at_s, stage in turn.story():
                self.event("move", at_s, turn_id=view.turn_id, stage=stage)
        if len(rows) >= PACK_TURNS:
            self._pack()
            if len(self._columns["turn_id"]) >= CHUNK_TURNS:
                self._flush()

    def _pack(self) -> None:
        for column, values in zip(self._columns.values(), zip(*self._rows)):
            column.extend(values)
        self._rows.clear()

    def _flush(self) -> None:
        if self._columns["turn_id"]:
            self._sink.turns(self._columns, self._classes, list(self._outcomes))
            self._columns = _empty()

    def event(self, kind: str, at_s: float, **what: object) -> None:
        """Record one decision."""
        self._sink.event({"at_s": at_s, "kind": kind, **what})

    def finish(self, now_s: float) -> None:
        """Close the last bin and hand over what is left."""
        if (
            now_s - self._start_s > 1e-9 * self._bin_s or self._bins.pending()
        ):  # k * bin_s may miss the horizon by a bit
            self._bin(now_s)
        self._pack()
        self._flush()
        self._sink.signals(self._bins.columns())


def _empty() -> Columns:
    return {name: array(code) for name, code in TURN_COLUMNS}
