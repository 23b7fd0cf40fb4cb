"""What a scenario sets for all candidates and a candidate may set for itself: the ready buffer, limits on flips."""

from __future__ import annotations

from typing import Literal

from scenarios.schema.base import Count, NotNegative, ScenarioTable


class ReadyPart(ScenarioTable):
    """The ready buffer between fill and decode; None: no bound."""

    capacity_turns: Count | None = None


class ReconfigurePart(ScenarioTable):
    """Limits on moving workers between configurations; `reserve` gives and takes what a command leaves open.

    `drain`: turns on a worker that is to change end there, migrate with their state, or are filled again (retry).
    """

    dwell_s: NotNegative = 0.0
    max_pending_workers: Count | None = None
    flips_per_hour: Count | None = None
    reserve: str | None = None
    atomic: bool = True
    attempts: Count = 1
    drain: Literal["wait", "migrate", "retry"] = "wait"
