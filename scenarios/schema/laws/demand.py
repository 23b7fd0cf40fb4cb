"""Tables of the demand laws."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from scenarios.schema.base import Count, NotNegative, Positive, ScenarioTable, Share
from scenarios.schema.laws.part import FileLaw, Hold, LawPart

PositiveShare = Annotated[float, Field(gt=0.0, le=1.0)]


class HoltWinters(LawPart):
    """Level, damped trend and a season of a day."""

    kind: Literal["holt_winters"]
    lead_s: NotNegative
    bins: Annotated[int, Field(ge=0)] = 0
    alpha_ratio: PositiveShare = 0.5
    beta_ratio: Share = 0.1
    gamma_ratio: Share = 0.3
    damping_ratio: PositiveShare = 0.9


class SeasonalProfile(LawPart):
    """Yesterday at this hour, scaled to today."""

    kind: Literal["seasonal_profile"]
    lead_s: NotNegative
    bins: Count = 48
    weight_ratio: PositiveShare = 0.5
    tau_s: NotNegative = 3600.0
    given_per_s: tuple[NotNegative, ...] = ()


class Kalman(LawPart):
    """Level and trend, weighed by how sure the counts are."""

    kind: Literal["kalman"]
    lead_s: NotNegative
    level_ratio: NotNegative = 0.1
    trend_ratio: NotNegative = 0.2
    least_points: Count = 5

    @model_validator(mode="after")
    def _something_moves(self) -> Kalman:
        if self.level_ratio == 0.0 and self.trend_ratio == 0.0:
            raise ValueError("level_ratio and trend_ratio are both 0: nothing could ever move; one must exceed 0")
        return self


class Ramp(ScenarioTable):
    """A trapezium of extra arrivals."""

    begins_s: NotNegative
    full_s: NotNegative
    falls_s: NotNegative
    ends_s: Positive
    add_per_s: Positive

    @model_validator(mode="after")
    def _in_order(self) -> Ramp:
        if not self.begins_s < self.full_s <= self.falls_s < self.ends_s:
            raise ValueError("a ramp needs begins_s < full_s <= falls_s < ends_s")
        return self


class Announced(LawPart):
    """Ramps that are known ahead, on top of the present rate or of another law's forecast (`base`)."""

    kind: Literal["announced"]
    lead_s: NotNegative
    ramps: Annotated[tuple[Ramp, ...], Field(min_length=1)]
    tau_s: NotNegative = 600.0
    base: Annotated[HoltWinters | SeasonalProfile | Kalman, Field(discriminator="kind")] | None = None

    @model_validator(mode="after")
    def _look_equally_far(self) -> Announced:
        if self.base is not None and self.base.lead_s != self.lead_s:
            raise ValueError(f"base.lead_s = {self.base.lead_s:g} must be lead_s = {self.lead_s:g}")
        return self


Demand = Annotated[Hold | FileLaw | HoltWinters | SeasonalProfile | Kalman | Announced, Field(discriminator="kind")]
