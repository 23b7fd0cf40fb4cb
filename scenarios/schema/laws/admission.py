"""Tables of the admission laws; `scenarios.build.laws.admission` makes them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from scenarios.schema.base import Count, NotNegative, Positive, Share
from scenarios.schema.laws.part import FileLaw, Hold, LawPart


class RetirementGate(LawPart):
    """Relay on busy slots / slots (A1, M1)."""

    kind: Literal["retirement_gate"]
    open_at_ratio: Share
    close_at_ratio: Share

    @model_validator(mode="after")
    def _ordered(self) -> RetirementGate:
        if not self.open_at_ratio < self.close_at_ratio:
            raise ValueError("open_at_ratio must be below close_at_ratio")
        return self


class Credit(LawPart):
    """A cap on turns in flight, released at once (A2, M3)."""

    kind: Literal["credit"]
    cap_turns: Count


class InflightCreditGate(LawPart):
    """Relay on turns in flight (A3)."""

    kind: Literal["inflight_credit_gate"]
    open_at_turns: NotNegative
    close_at_turns: Positive

    @model_validator(mode="after")
    def _ordered(self) -> InflightCreditGate:
        if not self.open_at_turns < self.close_at_turns:
            raise ValueError("open_at_turns must be below close_at_turns")
        return self


class ProportionalGate(LawPart):
    """Rate proportional to free slots (M2)."""

    kind: Literal["proportional_gate"]
    base_per_s: NotNegative
    k_per_s: NotNegative
    setpoint_turns: NotNegative
    of: Literal["busy", "at_decode"] = "busy"


class PacedWip(LawPart):
    """Paced around the assumed service rate, corrected by work in flight (A4)."""

    kind: Literal["paced_wip"]
    residence_s: Positive
    dead_time_s: NotNegative
    kappa_ratio: Positive = 1.0
    buffer_ratio: NotNegative = 0.1


class PredictiveBuffer(LawPart):
    """Smith predictor on the ready buffer (A5)."""

    kind: Literal["predictive_buffer"]
    dead_time_s: Positive
    full_per_s: Positive
    buffer_ratio: NotNegative = 0.1
    tau_s: Positive | None = None
    k_per_s: Positive | None = None


class PredictiveBufferNaive(PredictiveBuffer):
    """A5 with the present retirement rate: kept for the lesson."""

    kind: Literal["predictive_buffer_naive"]  # type: ignore[assignment]  # the same fields under another name


class PiBacklog(LawPart):
    """PI on the smoothed backlog at the decode pool, SIMC tuned (A6)."""

    kind: Literal["pi_backlog"]
    dead_time_s: NotNegative
    full_per_s: Positive
    buffer_ratio: NotNegative = 0.1
    tau_s: NotNegative = 1.0
    closed_s: Positive | None = None
    anti_windup: bool = True


class SaturationGate(LawPart):
    """A gate on busy slots that knows how old its reading is."""

    kind: Literal["saturation_gate"]
    limit_ratio: Positive
    stale_after_s: Positive
    when_stale: Literal["open", "closed", "hold"]


class LimitPart(LawPart):
    """What limits on turns in flight share: where they start, their bounds, and the window of one measurement."""

    start_turns: Count
    least_turns: Count = 1
    most_turns: Count
    window_s: Positive = 1.0

    @model_validator(mode="after")
    def _bounded(self) -> LimitPart:
        if not self.least_turns <= self.start_turns <= self.most_turns:
            raise ValueError("start_turns must lie between least_turns and most_turns")
        return self


class LimitAimd(LimitPart):
    """AIMD on the in-flight cap (A7)."""

    kind: Literal["limit_aimd"]
    timeout_s: Positive
    cut_ratio: Annotated[float, Field(ge=0.5, lt=1.0)] = 0.9


class LimitVegas(LimitPart):
    """Vegas on the in-flight cap (A7)."""

    kind: Literal["limit_vegas"]
    probe_windows: Count = 600


class LimitGradient2(LimitPart):
    """Gradient2 on the in-flight cap (A7)."""

    kind: Literal["limit_gradient2"]
    tolerance_ratio: Annotated[float, Field(ge=1.0)] = 1.5
    smoothing_ratio: Annotated[float, Field(gt=0.0, le=1.0)] = 0.2
    queue_turns: NotNegative = 4.0
    long_windows: Count = 600


class LimitEnvoy(LimitPart):
    """Envoy's gradient controller on the in-flight cap (A7)."""

    kind: Literal["limit_envoy"]
    buffer_ratio: NotNegative = 0.25
    probe_s: Positive = 60.0
    pin: bool = False


class EarlyReject(LawPart):
    """Refuse arrivals on the decode load, present or predicted (A8)."""

    kind: Literal["early_reject"]
    load: Literal["current", "predicted"]
    limit_ratio: Positive
    fill_s: NotNegative = 0.0
    decode_s: Positive = 1.0


class Codel(LawPart):
    """Shed while even the shortest wait stands above target (A9)."""

    kind: Literal["codel"]
    target_s: Positive = 0.5
    interval_s: Positive = 10.0


class Dagor(LawPart):
    """Shed by priority from the bottom up, fast down, slowly back (A9)."""

    kind: Literal["dagor"]
    ranking: tuple[str, ...]
    limit_s: Positive
    down_ratio: Share = 0.05
    up_ratio: Share = 0.01


class Holdback(LawPart):
    """A cap with reserves for short interactive work, sized by its load, alone or on another law's command (E18)."""

    kind: Literal["holdback"]
    cap_turns: Count
    reserved: tuple[str, ...]
    sojourn_s: Positive
    z: NotNegative = 2.0
    most_ratio: Share = 0.5
    trickle_turns: Annotated[int, Field(ge=0)] = 1
    tau_s: Positive = 30.0
    within: RetirementGate | PacedWip | PredictiveBuffer | PiBacklog | None = Field(None, discriminator="kind")


class TwoRates(LawPart):
    """What excitations share: two release rates."""

    low_per_s: NotNegative
    high_per_s: Positive

    @model_validator(mode="after")
    def _ordered(self) -> TwoRates:
        if not self.low_per_s < self.high_per_s:
            raise ValueError("low_per_s must be below high_per_s")
        return self


class Step(TwoRates):
    """An excitation: a square wave of the release rate."""

    kind: Literal["step"]
    hold_s: Positive


class Prbs(TwoRates):
    """An excitation: a pseudo-random binary sequence of the release rate."""

    kind: Literal["prbs"]
    hold_s: Positive


class Relay(TwoRates):
    """An excitation: two release rates switched by the busy slots."""

    kind: Literal["relay"]
    threshold_turns: Positive
    band_turns: NotNegative


Admission = Annotated[
    Hold
    | FileLaw
    | RetirementGate
    | Credit
    | InflightCreditGate
    | ProportionalGate
    | PacedWip
    | PredictiveBuffer
    | PredictiveBufferNaive
    | PiBacklog
    | SaturationGate
    | LimitAimd
    | LimitVegas
    | LimitGradient2
    | LimitEnvoy
    | EarlyReject
    | Codel
    | Dagor
    | Holdback
    | Step
    | Prbs
    | Relay,
    Field(discriminator="kind"),
]
