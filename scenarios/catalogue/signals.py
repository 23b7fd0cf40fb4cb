"""The signals of every plant in one table, found by their name in a record."""

from __future__ import annotations

import re

from orchestrator.catalogue import COMMAND, SIGNALS, Kind, Signal, headline_first, of_kind, scale_of_command, unit_of
from plant.signals import POOL_SIGNALS, TIER_SIGNALS

ALL = (*SIGNALS, *POOL_SIGNALS, *TIER_SIGNALS)
JUDGED = tuple(headline_first(row for row in ALL if row.judged))
"""The signals that are judged in every run, in the order of `verdict.json`."""
LEVELS = tuple(row for row in JUDGED if row.kind is Kind.LEVEL)
COUNTS = tuple(of_kind(Kind.COUNT, SIGNALS))
RATES = {row.name: row.column for row in COUNTS}
"""The column of each signal that is a rate: a count per bin."""


def expected(*, pools: bool, tiers: bool) -> tuple[str, ...]:
    """Return the signals that an expectation may name, of a plant with pools or tiers or without."""
    rows = [*SIGNALS, *(POOL_SIGNALS if pools else ()), *(TIER_SIGNALS if tiers else ())]
    others = [row.name for row in rows if not row.judged and row.kind is not Kind.LATEST]
    return (*(row.name for row in JUDGED), f"{COMMAND}.<command>", *others)


def row_of(name: str) -> Signal | None:
    """Return the row of a signal, whose pool or tier may be named; None: there is no such signal."""
    for row in ALL:
        if row.name == name or ("<" in row.name and re.fullmatch(_pattern(row.name), name)):
            return row
    if not name.startswith(f"{COMMAND}."):
        return None
    field = name.rsplit(".", 1)[-1]
    return Signal(
        name=name,
        unit=unit_of(field),
        kind=Kind.LATEST,
        scale=scale_of_command(field),
        meaning="the last command in the bin",
        source=field,
    )


def _pattern(name: str) -> str:
    return "".join(".+" if part.startswith("<") else re.escape(part) for part in re.split(r"(<\w+>)", name))
