"""From a retention law's table to the law."""

from __future__ import annotations

from typing import assert_never

from orchestrator.control import Law
from orchestrator.ports import Every
from policies.retention.hold import Hold as HoldRetention
from scenarios.build.laws.file import made_from_file
from scenarios.schema.laws import FileLaw, Hold
from scenarios.schema.laws import retention as parts


def retention(part: parts.Retention, period_s: float) -> Law:
    """Return the retention law that a table describes, acting every `period_s`."""
    every = Every(period_s=period_s)
    match part:
        case Hold():
            return HoldRetention(every)
        case FileLaw():
            return made_from_file(part, every)
    assert_never(part)
