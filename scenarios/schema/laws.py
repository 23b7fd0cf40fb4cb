"""Parameters of every law, by slot; `scenarios.build.laws` makes the laws. One class here and one `case` there each."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from scenarios.schema.base import Count, NotNegative, Part, Positive, Share


class LawPart(Part):
    """A law's own table. `period_s` overrides the slot's period in `[control]`."""

    period_s: Positive | None = None


class Hold(LawPart):
    """Change nothing (any slot)."""

    kind: Literal["hold"]


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
    | RetirementGate
    | Credit
    | InflightCreditGate
    | ProportionalGate
    | PacedWip
    | PredictiveBuffer
    | PredictiveBufferNaive,
    Field(discriminator="kind"),
]


class LeastLoaded(Part):
    """The open worker with the fewest turns."""

    kind: Literal["least_loaded"] = "least_loaded"


Routing = Annotated[LeastLoaded, Field(discriminator="kind")]


class Candidate(Part):
    """One policy of the comparison: a name and one law a slot; a slot that is not named is held."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]
    admission: Admission = Hold(kind="hold")
    batching: Hold = Hold(kind="hold")
    capacity: Hold = Hold(kind="hold")
    demand: Hold = Hold(kind="hold")
    retention: Hold = Hold(kind="hold")
    routing: LeastLoaded = LeastLoaded()
