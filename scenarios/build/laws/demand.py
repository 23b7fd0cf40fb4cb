"""From a demand law's table to the law."""

from __future__ import annotations

from typing import assert_never

from orchestrator.control import Law
from orchestrator.ports import Every
from policies.demand.hold import Hold as HoldDemand
from scenarios.build.laws.file import made_from_file
from scenarios.schema.laws import FileLaw, Hold
from scenarios.schema.laws import demand as parts


def demand(part: parts.Demand, period_s: float) -> Law:
    """Return the demand law that a table describes, acting every `period_s`."""
    every = Every(period_s=period_s)
    match part:
        case Hold():
            return HoldDemand(every)
        case FileLaw():
            return made_from_file(part, every)
    assert_never(part)
