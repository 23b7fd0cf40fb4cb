"""From a capacity law's table to the law."""

from __future__ import annotations

from typing import Any, assert_never

from orchestrator.control import Law
from orchestrator.ports import Every
from policies.capacity.hold import Hold as HoldCapacity
from policies.capacity.hpa import Hpa
from policies.capacity.mpc import Mpc
from policies.capacity.planner import Planner
from policies.capacity.prbs import Prbs
from policies.capacity.queue_model import QueueModel
from policies.capacity.relay import Relay
from policies.capacity.step import Step
from scenarios.build.laws.file import made_from_file
from scenarios.errors import MissingPackage
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
        case parts.Hpa():
            return Hpa(every, **_named(part))
        case parts.Planner():
            return Planner(every, **_named(part))
        case parts.QueueModel():
            return QueueModel(every, **_named(part))
        case parts.Mpc():
            try:
                return Mpc(every, **_named(part))
            except ImportError as error:
                raise MissingPackage('capacity mpc needs OSQP: pip install "steadyflow[mpc]"') from error
        case parts.Step():
            return Step(every, **_named(part))
        case parts.Prbs():
            return Prbs(every, **_named(part))
        case parts.Relay():
            return Relay(every, **_named(part))
    assert_never(part)


def _named(
    part: parts.Sizes | parts.TwoSizes,
) -> dict[str, Any]:  # Any: the law's own keywords, which its table checks by name
    return part.model_dump(exclude={"kind", "period_s"})
