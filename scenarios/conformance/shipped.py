"""An example of every registered law, for the conformance suite and for the documentation's table.

A law with parameters that have no default states them as `example`, in the worlds of `readings`: 100 slots, a dead
time of about 0.5 s, a residence of 2.5 s.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scenarios.schema.laws import LAW_TABLES, Hold


def kinds(slot: str) -> dict[str, type[Any]]:  # Any: tables of different keys
    """Return the table class of every law that a slot takes, by kind; laws of a user's file aside."""
    held: dict[str, type[Any]] = {} if slot == "routing" else {"hold": Hold}
    return held | dict(LAW_TABLES[slot])


def examples(slot: str) -> Iterator[tuple[str, Any]]:
    """Yield (kind, table) of every law that a slot takes, with the example's parameters."""
    for kind, table in kinds(slot).items():
        yield kind, table(kind=kind, **getattr(table.source, "example", {}))
