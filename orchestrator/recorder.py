"""The run's memory: signals in bins, a row a turn, and the decisions; flushed in chunks, so that memory stays flat."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from struct import Struct
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from orchestrator.bins import Bins
from orchestrator.clock import SLEEP, Clock
from orchestrator.ledger import RETIRED, Ledger, Turn
from orchestrator.levels import TimeWeightedLevel

Columns = dict[str, NDArray[Any]]  # Any: the columns differ in type
# A row a turn, packed at once: a record of bytes lies where it was written, eighteen Python objects lie anywhere.
TURN_COLUMNS = (
    *(
        ("turn_id", "q"),
        ("key", "Q"),
        ("session_id", "q"),
        ("ordinal", "i"),
        ("arrived_s", "d"),
        ("prompt_tokens", "q"),
    ),
    *(("class", "i"), ("released_s", "d"), ("fill_started_s", "d"), ("filled_s", "d"), ("joined_s", "d")),
    *(("ended_s", "d"), ("cached_tokens", "q"), ("output_tokens", "q"), ("fill_worker", "i")),
    *(("decode_worker", "i"), ("preemptions", "i"), ("outcome", "i")),
)
_ROW = Struct("=" + "".join(code for _, code in TURN_COLUMNS))
_ROW_TYPE = np.dtype([(name, f"={code}") for name, code in TURN_COLUMNS])
_pack = _ROW.pack
CHUNK_BYTES = 65_536 * _ROW.size


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
        self._rows = bytearray()

    def level(self, name: str) -> TimeWeightedLevel:
        """Return a new level to be recorded under `name`; before the first bin."""
        self._bins.levels[name] = level = TimeWeightedLevel()
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
        turn_id, key, _, session_id, ordinal, arrived_s, prompt_tokens, _ = turn.view
        rows = self._rows
        rows += _pack(
            turn_id,
            key,
            session_id,
            ordinal,
            arrived_s,
            prompt_tokens,
            turn.class_index,
            turn.released_s,
            turn.fill_started_s,
            turn.filled_s,
            turn.joined_s,
            turn.ended_s,
            turn.cached_tokens,
            turn.output_tokens,
            turn.fill_worker,
            turn.decode_worker,
            turn.preemptions,
            0 if turn.stage is RETIRED else self._outcomes.setdefault(turn.outcome, len(self._outcomes)),
        )
        if self._moves:
            for at_s, stage in turn.story():
                self.event("move", at_s, turn_id=turn_id, stage=stage)
        if len(rows) >= CHUNK_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            table = np.frombuffer(self._rows, _ROW_TYPE)
            columns = {name: np.ascontiguousarray(table[name]) for name, _ in TURN_COLUMNS}
            self._sink.turns(columns, self._classes, list(self._outcomes))
            self._rows = bytearray()

    def event(self, kind: str, at_s: float, **what: object) -> None:
        """Record one decision."""
        self._sink.event({"at_s": at_s, "kind": kind, **what})

    def finish(self, now_s: float) -> None:
        """Close the last bin and hand over what is left."""
        if (
            now_s - self._start_s > 1e-9 * self._bin_s or self._bins.pending()
        ):  # k * bin_s may miss the horizon by a bit
            self._bin(now_s)
        self._flush()
        self._sink.signals(self._bins.columns())
