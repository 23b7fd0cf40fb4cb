"""From an admission law's table to the law."""

from __future__ import annotations

from typing import assert_never

from orchestrator.control import Law
from orchestrator.ports import Every, On
from policies.admission.credit import Credit
from policies.admission.hold import Hold as HoldAdmission
from policies.admission.inflight_credit_gate import InflightCreditGate
from policies.admission.paced_wip import PacedWip
from policies.admission.predictive_buffer import PredictiveBuffer
from policies.admission.predictive_buffer_naive import PredictiveBufferNaive
from policies.admission.proportional_gate import ProportionalGate
from policies.admission.retirement_gate import RetirementGate
from scenarios.build.laws.file import made_from_file
from scenarios.schema.laws import FileLaw, Hold
from scenarios.schema.laws import admission as parts


def admission(part: parts.Admission, period_s: float) -> Law:
    """Return the admission law that a table describes, acting every `period_s`."""
    every = Every(period_s=period_s)
    match part:
        case Hold():
            return HoldAdmission(every)
        case FileLaw():
            return made_from_file(part, every)
        case parts.RetirementGate():
            return RetirementGate(every, open_at_ratio=part.open_at_ratio, close_at_ratio=part.close_at_ratio)
        case parts.Credit():
            return Credit(On(event="retirement"), cap_turns=part.cap_turns)
        case parts.InflightCreditGate():
            return InflightCreditGate(every, open_at_turns=part.open_at_turns, close_at_turns=part.close_at_turns)
        case parts.ProportionalGate():
            return ProportionalGate(
                every, base_per_s=part.base_per_s, k_per_s=part.k_per_s, setpoint_turns=part.setpoint_turns
            )
        case parts.PacedWip():
            return PacedWip(
                every,
                residence_s=part.residence_s,
                dead_time_s=part.dead_time_s,
                kappa_ratio=part.kappa_ratio,
                buffer_ratio=part.buffer_ratio,
            )
        case parts.PredictiveBufferNaive() | parts.PredictiveBuffer():
            made = PredictiveBufferNaive if isinstance(part, parts.PredictiveBufferNaive) else PredictiveBuffer
            return made(
                every,
                dead_time_s=part.dead_time_s,
                full_per_s=part.full_per_s,
                buffer_ratio=part.buffer_ratio,
                tau_s=part.tau_s,
                k_per_s=part.k_per_s,
            )
    assert_never(part)
