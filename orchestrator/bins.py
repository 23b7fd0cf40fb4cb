"""The record's signals, bin by bin: what the levels did, what the gauges showed, what the laws last saw and said.

A bin holds time-weighted means and extremes, never point samples: a chatter faster than the bin still shows. Rows are
kept flat in arrays of doubles; they become columns once, at the end.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any

from orchestrator.ledger import DECODING, FILLING, READY, WAITING, Ledger
from orchestrator.levels import TimeWeightedLevel
from orchestrator.messages import Commands, Readings, Slot

NAN = float("nan")
OCCUPANCY = "decode_occupancy_ratio"
NUMBERS = frozenset({"float", "int", "bool", "None"})  # as the fields of readings and commands are annotated


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
        kinds = {f.name: str(f.type).split(" | ") for f in fields(message)}
        own = [name for name, kind in kinds.items() if NUMBERS.issuperset(kind)]
        super().__init__([f"{prefix}.{name}" for name in own], first)
        self._read: Callable[[Any], Any] = attrgetter("__class__", *own)  # never one name alone: always a tuple
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
    slots : callable
        The decode slots there are now: the scale of the occupancy.
    """

    def __init__(self, ledger: Ledger, slots: Callable[[], int]) -> None:
        self._ledger, self._slots = ledger, slots
        self._decoding = ledger.levels[DECODING]
        self.levels: dict[str, TimeWeightedLevel] = {
            "ready_turns": ledger.levels[READY],
            "backlog_turns": ledger.levels[WAITING],
            "in_flight_turns": ledger.in_flight,
            "filling_turns": ledger.levels[FILLING],
            "decoding_turns": self._decoding,
        }
        self.gauges: dict[str, Callable[[], float]] = {}
        self._rows: Rows | None = None
        self._seen: dict[Slot, MessageRow] = {}
        self._said: dict[Slot, MessageRow] = {}
        self._notes: list[MessageRow] = []  # all of these
        self._count = 0
        self._totals = (0, 0, 0)

    def saw(self, slot: Slot, reading: Readings, command: Commands) -> None:
        """Note what a law saw and said; the last one in a bin is kept."""
        if slot not in self._seen:
            self._seen[slot] = MessageRow(f"seen.{slot}", reading, self._count)
            self._said[slot] = MessageRow(f"command.{slot}", command, self._count)
            self._notes = [*self._seen.values(), *self._said.values()]
        self._seen[slot].message = reading
        self._said[slot].message = command

    def close(self, start_s: float, end_s: float) -> None:
        """Close the bin `[start_s, end_s]`."""
        if self._rows is None:
            self._rows = Rows(self._names(), 0)
        slots, ledger = self._slots(), self._ledger
        row = [start_s]
        for level in self.levels.values():
            row += (own := level.close(start_s, end_s))
            if level is self._decoding:
                mean, low, high = own
                scale = 1.0 / slots if slots else NAN
                row += (mean * scale, low * scale, high * scale)
        for read in self.gauges.values():
            value = read()
            row += (value, value, value)
        arrived, admitted, retired = self._totals
        self._totals = totals = (ledger.arrived, ledger.released, ledger.retired)
        row += (totals[0] - arrived, totals[1] - admitted, totals[2] - retired, slots)
        self._rows.flat.fromlist(row)
        for note in self._notes:
            note.close()
        self._count += 1

    def pending(self) -> bool:
        """Tell whether turns were counted since the last bin closed."""
        ledger = self._ledger
        return self._totals != (ledger.arrived, ledger.released, ledger.retired)

    def _names(self) -> list[str]:
        names = ["t_s"]
        for name, level in self.levels.items():
            names += _three(name) + (_three(OCCUPANCY) if level is self._decoding else [])
        for name in self.gauges:
            names += _three(name)
        return [*names, "arrived_turns", "admitted_turns", "retired_turns", "slots"]

    def columns(self) -> dict[str, array[float]]:
        """Return every column, in the order in which they were first measured; what never was is left out."""
        columns = {} if self._rows is None else self._rows.columns()
        noted = [column for note in self._notes for column in note.columns().items()]
        begins = {name: next((k for k, value in enumerate(values) if value == value), None) for name, values in noted}
        measured = [(name, values) for name, values in noted if begins[name] is not None]
        measured.sort(key=lambda column: begins[column[0]] or 0)
        return columns | dict(measured)


def _three(name: str) -> list[str]:
    return [f"{name}_mean", f"{name}_min", f"{name}_max"]
