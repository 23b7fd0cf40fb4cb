"""From a law's table to the law. One `case` here and one class in `schema.laws` register a law; nothing else does."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from orchestrator.control import Law
from orchestrator.ports import Every, On, Router
from orchestrator.signals import Slot
from policies.admission.credit import Credit
from policies.admission.hold import Hold
from policies.admission.inflight_credit_gate import InflightCreditGate
from policies.admission.paced_wip import PacedWip
from policies.admission.predictive_buffer import PredictiveBuffer
from policies.admission.predictive_buffer_naive import PredictiveBufferNaive
from policies.admission.proportional_gate import ProportionalGate
from policies.admission.retirement_gate import RetirementGate
from policies.routing.least_loaded import LeastLoaded
from scenarios.schema import laws
from scenarios.schema.scenario import Scenario


def admission(part: laws.Admission, period_s: float) -> Law:
    """Return the admission law that a table describes, acting every `period_s`."""
    every = Every(period_s=period_s)
    match part:
        case laws.Hold():
            return Hold(every)
        case laws.RetirementGate():
            return RetirementGate(every, open_at_ratio=part.open_at_ratio, close_at_ratio=part.close_at_ratio)
        case laws.Credit():
            return Credit(On(event="retirement"), cap_turns=part.cap_turns)
        case laws.InflightCreditGate():
            return InflightCreditGate(every, open_at_turns=part.open_at_turns, close_at_turns=part.close_at_turns)
        case laws.ProportionalGate():
            return ProportionalGate(
                every, base_per_s=part.base_per_s, k_per_s=part.k_per_s, setpoint_turns=part.setpoint_turns
            )
        case laws.PacedWip():
            return PacedWip(
                every,
                residence_s=part.residence_s,
                dead_time_s=part.dead_time_s,
                kappa_ratio=part.kappa_ratio,
                buffer_ratio=part.buffer_ratio,
            )
        case laws.PredictiveBufferNaive() | laws.PredictiveBuffer():
            made = PredictiveBufferNaive if isinstance(part, laws.PredictiveBufferNaive) else PredictiveBuffer
            return made(
                every,
                dead_time_s=part.dead_time_s,
                full_per_s=part.full_per_s,
                buffer_ratio=part.buffer_ratio,
                tau_s=part.tau_s,
                k_per_s=part.k_per_s,
            )
    assert_never(part)


def held_or_made(scenario: Scenario, candidate: laws.Candidate) -> dict[Slot, Law]:
    """Return the laws of every slot that acts; a held slot needs no loop."""
    made: dict[Slot, Law] = {}
    if not isinstance(candidate.admission, laws.Hold):
        made["admission"] = admission(candidate.admission, scenario.period_s("admission", candidate.admission))
    return made


def router_maker(part: laws.LeastLoaded, seed: int) -> Callable[[], Router]:
    """Return what makes one router for each copy that the dispatch runs."""
    return LeastLoaded
