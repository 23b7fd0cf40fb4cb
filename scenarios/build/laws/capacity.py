"""From a capacity law's table to the law."""

from __future__ import annotations

from typing import assert_never

from orchestrator.control import Law
from orchestrator.ports import Every
from policies.capacity.hold import Hold as HoldCapacity
from scenarios.build.laws.file import made_from_file
from scenarios.schema.laws import FileLaw, Hold
from scenarios.schema.laws import capacity as parts


def capacity(part: parts.Capacity, period_s: float) -> Law:
    """Return the capacity law that a table describes, acting every `period_s`."""
    every = Every(period_s=period_s)
    match part:
        case Hold():
            return HoldCapacity(every)
        case FileLaw():
            return made_from_file(part, every)
    assert_never(part)
