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


Admission = Annotated[
    Hold
    | FileLaw
    | RetirementGate
    | Credit
    | InflightCreditGate
    | ProportionalGate
    | PacedWip
    | PredictiveBuffer
    | PredictiveBufferNaive,
    Field(discriminator="kind"),
]
