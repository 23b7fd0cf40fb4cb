"""Record a run: signals in bins, a row a turn, and the decisions; flushed in chunks, so that memory stays flat."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from struct import Struct
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from orchestrator.bins import Bins
from orchestrator.catalogue import TURN_COLUMNS
from orchestrator.clock import SLEEP, Clock
from orchestrator.ledger import RETIRED, Ledger, Turn

Columns = dict[str, NDArray[Any]]  # Any: the columns differ in type
# A row a turn, packed at once: a record of bytes lies where it was written, eighteen Python objects lie anywhere.
# The outcome comes last: its number is found, not read.
_ROW = Struct("=" + "".join(column.code for column in TURN_COLUMNS))
_ROW_TYPE = np.dtype([(column.name, f"={column.code}") for column in TURN_COLUMNS])
_pack = _ROW.pack
_read: Callable[[Turn], tuple[Any, ...]] = attrgetter(*(column.source or column.name for column in TURN_COLUMNS[:-1]))
CHUNK_BYTES = 65_536 * _ROW.size


class Sink(Protocol):
    """Where the record goes."""

    def turns(self, columns: Columns, classes: Sequence[str], outcomes: Sequence[str]) -> None:
        """Take a chunk of turn rows; `class` and `outcome` index the given names."""
        ...

    def signals(self, columns: Mapping[str, Sequence[float]]) -> None:
        """Take the bins of the run at its end; where it was flushed before, those since."""
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
    bin_s : float
        Width of a bin, in seconds.
    sink : Sink
    moves : bool
        Record each turn's moves as events too (`record.events = "all"`).
    """

    def __init__(self, clock: Clock, ledger: Ledger, bin_s: float, sink: Sink, moves: bool = False) -> None:
        self._clock, self._bin_s, self._sink = clock, bin_s, sink
        self._moves = moves
        self._bins = Bins(ledger)
        self.saw = self._bins.saw
        self.workers, self.slots = self._bins.workers, self._bins.slots
        self.standing_slots = self._bins.standing_slots
        self.watch = self._bins.watch
        self._start_s = 0.0
        self._classes = [counts.name for counts in ledger.classes]
        self._outcomes: dict[str, int] = {"retired": 0}
        self._rows = bytearray()

    # ------------------------------------------------ bins
    def start(self) -> None:
        """Begin the first bin, with the slots that there are."""
        self.standing_slots.close(0.0, 0.0)
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
        code = 0 if turn.stage is RETIRED else self._outcomes.setdefault(turn.outcome, len(self._outcomes))
        rows = self._rows
        rows += _pack(*_read(turn), code)
        if self._moves:
            for at_s, stage in turn.story():
                self.event("move", at_s, turn_id=turn.turn_id, stage=stage)
        if len(rows) >= CHUNK_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            table = np.frombuffer(self._rows, _ROW_TYPE)
            columns = {name: np.ascontiguousarray(table[name]) for name in _ROW_TYPE.names or ()}
            self._sink.turns(columns, self._classes, list(self._outcomes))
            self._rows = bytearray()

    def flush(self) -> None:
        """Hand over what is there so far, for a run whose record grows without end."""
        self._flush()
        columns = self._bins.take()
        if columns:
            self._sink.signals(columns)

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
