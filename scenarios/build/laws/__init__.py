"""From a law's table to the law, one file a slot. One `case` here and one class in `schema.laws` register a law."""

from __future__ import annotations

from orchestrator.control import Law
from orchestrator.messages import Slot
from scenarios.build.laws.admission import admission
from scenarios.build.laws.batching import batching
from scenarios.build.laws.capacity import capacity
from scenarios.build.laws.demand import demand
from scenarios.build.laws.retention import retention
from scenarios.build.laws.routing import router_maker
from scenarios.errors import MissingPackage
from scenarios.schema.laws import Candidate, Hold
from scenarios.schema.scenario import Scenario

__all__ = ["admission", "batching", "capacity", "demand", "held_or_made", "missing", "retention", "router_maker"]


def held_or_made(scenario: Scenario, candidate: Candidate) -> dict[Slot, Law]:
    """Return the laws of every slot that acts; a held slot needs no loop."""
    made: dict[Slot, Law] = {}
    if not isinstance(candidate.admission, Hold):
        made["admission"] = admission(candidate.admission, scenario.period_s("admission", candidate.admission))
    if not isinstance(candidate.batching, Hold):
        made["batching"] = batching(candidate.batching, scenario.period_s("batching", candidate.batching))
    if not isinstance(candidate.capacity, Hold):
        made["capacity"] = capacity(candidate.capacity, scenario.period_s("capacity", candidate.capacity))
    if not isinstance(candidate.demand, Hold):
        made["demand"] = demand(candidate.demand, scenario.period_s("demand", candidate.demand))
    if not isinstance(candidate.retention, Hold):
        made["retention"] = retention(candidate.retention, scenario.period_s("retention", candidate.retention))
    return made


def missing(scenario: Scenario, candidate: Candidate) -> str | None:
    """Return which optional package a candidate's laws want and do not find; None where all can be made."""
    try:
        held_or_made(scenario, candidate)
    except MissingPackage as error:
        return str(error)
    return None
