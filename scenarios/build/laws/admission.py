"""From an admission law's table to the law."""

from __future__ import annotations

from typing import TypedDict, assert_never

from orchestrator.control import Law
from orchestrator.ports import Every, On
from policies.admission.codel import Codel
from policies.admission.credit import Credit
from policies.admission.dagor import Dagor
from policies.admission.early_reject import EarlyReject
from policies.admission.hold import Hold as HoldAdmission
from policies.admission.holdback import Holdback
from policies.admission.inflight_credit_gate import InflightCreditGate
from policies.admission.limit_aimd import LimitAimd
from policies.admission.limit_envoy import LimitEnvoy
from policies.admission.limit_gradient2 import LimitGradient2
from policies.admission.limit_vegas import LimitVegas
from policies.admission.paced_wip import PacedWip
from policies.admission.pi_backlog import PiBacklog
from policies.admission.prbs import Prbs
from policies.admission.predictive_buffer import PredictiveBuffer
from policies.admission.predictive_buffer_naive import PredictiveBufferNaive
from policies.admission.proportional_gate import ProportionalGate
from policies.admission.relay import Relay
from policies.admission.retirement_gate import RetirementGate
from policies.admission.saturation_gate import SaturationGate
from policies.admission.step import Step
from scenarios.build.laws.file import made_from_file
from scenarios.schema.laws import FileLaw, Hold
from scenarios.schema.laws import admission as parts


class Bounds(TypedDict):
    """What every limit on turns in flight is made with."""

    start_turns: int
    least_turns: int
    most_turns: int
    window_s: float


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
                every,
                base_per_s=part.base_per_s,
                k_per_s=part.k_per_s,
                setpoint_turns=part.setpoint_turns,
                of=part.of,
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
        case parts.PiBacklog():
            return PiBacklog(
                every,
                dead_time_s=part.dead_time_s,
                full_per_s=part.full_per_s,
                buffer_ratio=part.buffer_ratio,
                tau_s=part.tau_s,
                closed_s=part.closed_s,
                anti_windup=part.anti_windup,
            )
        case parts.SaturationGate():
            return SaturationGate(
                every,
                limit_ratio=part.limit_ratio,
                stale_after_s=part.stale_after_s,
                when_stale=part.when_stale,
            )
        case parts.LimitAimd() | parts.LimitVegas() | parts.LimitGradient2() | parts.LimitEnvoy():
            return _limit(part, every)
        case parts.EarlyReject() | parts.Codel() | parts.Dagor() | parts.Holdback():
            return _refusing(part, every)
        case parts.Step() | parts.Prbs() | parts.Relay():
            return _exciting(part, every)
    assert_never(part)


def _exciting(part: parts.Step | parts.Prbs | parts.Relay, every: Every) -> Law:
    match part:
        case parts.Step():
            return Step(every, low_per_s=part.low_per_s, high_per_s=part.high_per_s, hold_s=part.hold_s)
        case parts.Prbs():
            return Prbs(every, low_per_s=part.low_per_s, high_per_s=part.high_per_s, hold_s=part.hold_s)
        case parts.Relay():
            return Relay(
                every,
                low_per_s=part.low_per_s,
                high_per_s=part.high_per_s,
                threshold_turns=part.threshold_turns,
                band_turns=part.band_turns,
            )
    assert_never(part)


def _limit(part: parts.LimitAimd | parts.LimitVegas | parts.LimitGradient2 | parts.LimitEnvoy, every: Every) -> Law:
    bounds: Bounds = {
        "start_turns": part.start_turns,
        "least_turns": part.least_turns,
        "most_turns": part.most_turns,
        "window_s": part.window_s,
    }
    match part:
        case parts.LimitAimd():
            return LimitAimd(every, **bounds, timeout_s=part.timeout_s, cut_ratio=part.cut_ratio)
        case parts.LimitVegas():
            return LimitVegas(every, **bounds, probe_windows=part.probe_windows)
        case parts.LimitGradient2():
            return LimitGradient2(
                every,
                **bounds,
                tolerance_ratio=part.tolerance_ratio,
                smoothing_ratio=part.smoothing_ratio,
                queue_turns=part.queue_turns,
                long_windows=part.long_windows,
            )
        case parts.LimitEnvoy():
            return LimitEnvoy(every, **bounds, buffer_ratio=part.buffer_ratio, probe_s=part.probe_s, pin=part.pin)
    assert_never(part)


def _refusing(part: parts.EarlyReject | parts.Codel | parts.Dagor | parts.Holdback, every: Every) -> Law:
    match part:
        case parts.EarlyReject():
            return EarlyReject(
                every,
                load=part.load,
                limit_ratio=part.limit_ratio,
                fill_s=part.fill_s,
                decode_s=part.decode_s,
            )
        case parts.Codel():
            return Codel(every, target_s=part.target_s, interval_s=part.interval_s)
        case parts.Dagor():
            return Dagor(
                every,
                ranking=part.ranking,
                limit_s=part.limit_s,
                down_ratio=part.down_ratio,
                up_ratio=part.up_ratio,
            )
        case parts.Holdback():
            return Holdback(
                every,
                cap_turns=part.cap_turns,
                reserved=part.reserved,
                sojourn_s=part.sojourn_s,
                z=part.z,
                most_ratio=part.most_ratio,
                trickle_turns=part.trickle_turns,
                tau_s=part.tau_s,
                within=None if part.within is None else admission(part.within, every.period_s),
            )
    assert_never(part)
