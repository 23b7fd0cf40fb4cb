"""What was odd in a trace, how often, and what was done about it: nothing is mended in silence.

Three policies, named on the command line as `--on-error`:

- `raise`: the first defect ends the reading with one line that says where it is;
- `repair`: a defect with a written remedy is mended and counted; one without ends the reading;
- `skip`: the row or conversation that holds a defect is left out and counted.

A *note* is not a defect: a field that the format lets be absent, counted because results depend on it.
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
    """One kind of oddity: how many, where the first one stood, and what was done."""

    kind: str
    count: int
    first_at: str
    done: str


@dataclass(slots=True)
class Repairs:
    """Counts of everything odd that a reader met, in the order of first meeting."""

    on_error: OnError = "repair"
    entries: dict[str, Entry] = field(default_factory=dict)

    def note(self, kind: str, at: str, done: str, count: int = 1) -> None:
        """Count something that is allowed but shapes the results."""
        entry = self.entries.get(kind)
        if entry is None:
            self.entries[kind] = Entry(kind, count, at, done)
        else:
            entry.count += count

    def mend(self, kind: str, at: str, wrong: str, done: str) -> None:
        """Count a defect that has a remedy: returns under `repair`, else raises UserError or Skip."""
        if self.on_error == "raise":
            raise UserError(f"{at}: {wrong} (`--on-error repair` would mend it: {done})")
        if self.on_error == "skip":
            self.note(kind, at, "left out")
            raise Skip
        self.note(kind, at, done)

    def refuse(self, kind: str, at: str, wrong: str) -> Exception:
        """Return what to raise for a defect that has no remedy: Skip under `skip`, else UserError."""
        if self.on_error == "skip":
            self.note(kind, at, "left out")
            return Skip()
        return UserError(f"{at}: {wrong}")

    def merge(self, other: Repairs) -> None:
        """Add the counts of another report."""
        for entry in other.entries.values():
            self.note(entry.kind, entry.first_at, entry.done, entry.count)

    def rows(self) -> list[dict[str, object]]:
        """Return the report as plain rows, for a table or for JSON."""
        return [
            {"kind": e.kind, "count": e.count, "first_at": e.first_at, "done": e.done} for e in self.entries.values()
        ]
