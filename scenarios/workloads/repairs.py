"""Count the defects of a trace and how each was handled, so that no repair is silent.

Three policies of the option `--on-error`:

- `raise`: the first defect is an error, in one line with its place;
- `repair`: a defect with a defined remedy is repaired and counted; one without is an error;
- `skip`: the row or conversation with the defect is left out and counted.

A *doubt* is a sign that the whole file is not what it is taken for, such as a rate that no cluster serves. A *note* is
not a defect: for instance an optional field that is absent, counted because results depend on it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from scenarios.errors import UserError

OnError = Literal["raise", "repair", "skip"]


class Skip(Exception):
    """Leave out the row or conversation being read; the defect has been counted."""


@dataclass(slots=True)
class Entry:
    """One kind of defect or note: its count, its first place, and how it was handled (`done`)."""

    kind: str
    count: int
    first_at: str
    done: str
    doubt: bool = False


@dataclass(slots=True)
class Repairs:
    """Counts of defects and notes by kind, in the order of their first occurrence."""

    on_error: OnError = "repair"
    entries: dict[str, Entry] = field(default_factory=dict)

    def note(self, kind: str, at: str, done: str, count: int = 1) -> None:
        """Count a property that is allowed but influences the results."""
        entry = self.entries.get(kind)
        if entry is None:
            self.entries[kind] = Entry(kind, count, at, done)
        else:
            entry.count += count

    def doubt(self, kind: str, at: str, problem: str, advice: str) -> None:
        """Count something that is probably not what it seems; it is kept, and `raise` makes it an error."""
        if self.on_error == "raise":
            raise UserError(f"{at}: {problem} ({advice})")
        self.note(kind, at, f"{problem}; kept as it stands ({advice})")
        self.entries[kind].doubt = True

    def repair(self, kind: str, at: str, problem: str, remedy: str) -> None:
        """Count a defect that has a remedy; under `raise` raise UserError, under `skip` raise Skip."""
        if self.on_error == "raise":
            raise UserError(f"{at}: {problem} (`--on-error repair` would repair it: {remedy})")
        if self.on_error == "skip":
            self.note(kind, at, "left out")
            raise Skip
        self.note(kind, at, remedy)

    def rejection(self, kind: str, at: str, problem: str) -> Exception:
        """Return the exception for a defect that has no remedy: Skip under `skip`, else UserError."""
        if self.on_error == "skip":
            self.note(kind, at, "left out")
            return Skip()
        return UserError(f"{at}: {problem}")

    def rows(self) -> list[dict[str, object]]:
        """Return the counts as plain rows, for a table or for JSON."""
        return [
            {"kind": e.kind, "count": e.count, "first_at": e.first_at, "done": e.done} for e in self.entries.values()
        ]
