"""The signals of a record, bin by bin: levels weighted by time, counts, and the last message of each law.

A bin holds time-weighted means and extremes, never point samples: a change faster than the bin still shows. Rows are
kept flat in arrays of doubles; they become columns once, at the end.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, Protocol

from orchestrator.catalogue import COMMAND, SEEN, SIGNALS, T_S, Kind, level_columns, of_kind
from orchestrator.ledger import STAGE_NAMES, Ledger
from orchestrator.levels import TimeWeightedLevel
from orchestrator.messages import Commands, Readings, Slot

NAN = float("nan")
NUMBERS = frozenset({"float", "int", "bool", "None"})  # as the fields of readings and commands are annotated
Factor = Callable[[], float]
Three = tuple[float, float, float]
"""Mean, least and greatest value in a bin."""


class Level(Protocol):
    """A value weighted by time."""

    def close(self, start_s: float, end_s: float) -> tuple[float, float, float]:
        """Return mean, least and greatest value in the bin `[start_s, end_s]`, and begin the next one."""
        ...


def number_fields(message: Readings | Commands | type[Readings | Commands]) -> list[str]:
    """Return the fields of a message that hold numbers: those that become columns."""
    kinds = {f.name: str(f.type).split(" | ") for f in fields(message)}
    return [name for name, kind in kinds.items() if NUMBERS.issuperset(kind)]


def occupancy(turns: Three, slots: Three) -> Three:
    """Return mean, least and greatest share of the slots in use in a bin, of those of the turns and of the slots.

    The mean is slot-seconds in use over slot-seconds there were; NaN where there was no slot at all. Where slots came
    or went within the bin the extremes are bounds. A batch above a cap that was lowered under it counts as full.
    """
    mean, low, high = turns
    mean_slots, low_slots, high_slots = slots
    if low_slots == high_slots or not mean_slots:
        times = 1.0 / mean_slots if mean_slots else NAN
        mean, low, high = mean * times, low * times, high * times
        return (mean, low, high) if not high > 1.0 else (full(mean), full(low), full(high))
    share = full(mean / mean_slots)
    return share, min(share, low / high_slots), max(share, min(1.0, high / low_slots if low_slots else 1.0))


def full(ratio: float) -> float:
    """Return a share of the slots, 1 at most; NaN stays."""
    return 1.0 if ratio > 1.0 else ratio


class Rows:
    """Equally wide rows of numbers, one a bin from bin `first` on."""

    __slots__ = ("first", "flat", "names")

    def __init__(self, names: Sequence[str], first: int) -> None:
        self.names, self.first = names, first
        self.flat = array("d")

    def columns(self) -> dict[str, array[float]]:
        """Return the columns; what was not measured before the first row is NaN."""
        before, width = array("d", [NAN]) * self.first, len(self.names)
        return {name: before + self.flat[i::width] for i, name in enumerate(self.names)}


class MessageRow(Rows):
    """The numbers of one law's readings, or of its commands; a message stands until the next one."""

    __slots__ = ("_read", "_row", "_written", "message")

    def __init__(self, prefix: str, message: Readings | Commands, first: int) -> None:
        names = number_fields(message)
        super().__init__([f"{prefix}.{name}" for name in names], first)
        self._read: Callable[[Any], Any] = attrgetter("__class__", *names)  # never one name alone: always a tuple
        self.message = message  # the last one
        self._written: object = None
        self._row = array("d")

    def close(self) -> None:
        """Add the row of a bin."""
        message = self.message
        if message is not self._written:
            self._written = message
            self._row = array("d", [NAN if value is None else value for value in self._read(message)[1:]])
        self.flat.extend(self._row)


class Bins:
    """Collect the signals of a run.

    Parameters
    ----------
    ledger : Ledger

    Attributes
    ----------
    workers, slots : TimeWeightedLevel
        Active workers that serve, and their decode slots.
    standing_slots : TimeWeightedLevel
        Decode slots of workers that drain as well, whose turns still decode: the scale of the occupancy.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.workers, self.slots, self.standing_slots = (TimeWeightedLevel() for _ in range(3))
        self._levels: dict[Level, list[tuple[str, Factor | None]]] = {}
        self._per_slot: set[str] = set()
        self._closers: list[tuple[Callable[[float, float], Three], list[tuple[bool, Factor | None]] | None]] = []
        sources = dict(zip(STAGE_NAMES, ledger.levels)) | {"in_flight": ledger.in_flight, "workers": self.workers}
        for row in of_kind(Kind.LEVEL, SIGNALS):
            self.watch(row.name, sources[row.source])
            if row.per_slot:
                self._per_slot.add(row.name)
        counts = of_kind(Kind.COUNT, SIGNALS)
        totals: Callable[[Any], Any] = attrgetter("__class__", *(row.source for row in counts))
        self._read_totals: Callable[[], tuple[int, ...]] = lambda: totals(ledger)[1:]
        self._after = [column for row in (*counts, *of_kind(Kind.LATEST, SIGNALS)) for column in row.columns]
        self._totals = self._read_totals()
        self._rows: Rows | None = None
        self._seen: dict[Slot, MessageRow] = {}
        self._commands: dict[Slot, MessageRow] = {}
        self._messages: list[MessageRow] = []  # all of these
        self._count = 0

    def watch(self, name: str, level: Level, factor: Factor | None = None) -> None:
        """Record a level, times `factor()` at the end of each bin, under `name`; before the first bin."""
        level.close(0.0, 0.0)  # what it was before the run began is no extreme of the first bin
        self._levels.setdefault(level, []).append((name, factor))

    def saw(self, slot: Slot, reading: Readings, command: Commands) -> None:
        """Note what a law saw and commanded; the last one in a bin is kept."""
        if slot not in self._seen:
            self._seen[slot] = MessageRow(f"{SEEN}.{slot}", reading, self._count)
            self._commands[slot] = MessageRow(f"{COMMAND}.{slot}", command, self._count)
            self._messages = [*self._seen.values(), *self._commands.values()]
        self._seen[slot].message = reading
        self._commands[slot].message = command

    def close(self, start_s: float, end_s: float) -> None:
        """Close the bin `[start_s, end_s]`."""
        rows = self._begin() if self._rows is None else self._rows
        row = [start_s]
        slots = self.standing_slots.close(start_s, end_s)
        for close, recorded in self._closers:
            if recorded is None:
                row += close(start_s, end_s)
                continue
            three = close(start_s, end_s)
            for per_slot, factor in recorded:
                if per_slot:
                    row += occupancy(three, slots)
                else:
                    times = 1.0 if factor is None else factor()
                    row += [value * times for value in three]
        before, self._totals = self._totals, self._read_totals()
        row += [now - then for now, then in zip(self._totals, before)]
        row.append(self.slots.value)
        rows.flat.fromlist(row)
        for message in self._messages:
            message.close()
        self._count += 1

    def _begin(self) -> Rows:
        """Return the rows, empty, and say once how each level is read: as it is under one name (None), or else."""
        self._rows = rows = Rows(self._names(), 0)
        for level, recorded in self._levels.items():
            ways = [(name in self._per_slot, factor) for name, factor in recorded]
            self._closers.append((level.close, None if ways == [(False, None)] else ways))
        return rows

    def pending(self) -> bool:
        """Tell whether turns were counted since the last bin closed."""
        return bool(self._totals != self._read_totals())

    def _names(self) -> list[str]:
        levels = [name for recorded in self._levels.values() for name, _ in recorded]
        return [T_S, *(column for name in levels for column in level_columns(name)), *self._after]

    def take(self) -> dict[str, array[float]]:
        """Return the columns of the bins closed since the last call, and forget these bins."""
        columns = self.columns()
        for rows in (self._rows, *self._messages):
            if rows is not None:
                rows.first, rows.flat = 0, array("d")
        self._count = 0
        return columns

    def columns(self) -> dict[str, array[float]]:
        """Return every column, in the order in which they were first measured; what never was is left out."""
        columns = {} if self._rows is None else self._rows.columns()
        noted = [column for message in self._messages for column in message.columns().items()]
        begins = {name: next((k for k, value in enumerate(values) if value == value), None) for name, values in noted}
        measured = [(name, values) for name, values in noted if begins[name] is not None]
        measured.sort(key=lambda column: begins[column[0]] or 0)
        return columns | dict(measured)
