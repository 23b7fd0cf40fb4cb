"""Tables of the batching laws."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from scenarios.schema.base import Count, NotNegative, Positive, Share
from scenarios.schema.laws.part import FileLaw, Hold, LawPart

OpenShare = Annotated[float, Field(gt=0.0, lt=1.0)]
PositiveShare = Annotated[float, Field(gt=0.0, le=1.0)]


class BatchBounds(LawPart):
    """The bounds of a cap, which every batching law respects."""

    least_turns: Count = 1
    most_turns: Count

    @model_validator(mode="after")
    def _bounded(self) -> BatchBounds:
        if self.least_turns > self.most_turns:
            raise ValueError("least_turns must not exceed most_turns")
        return self


class SloCap(BatchBounds):
    """The largest batch whose step meets the classes' tightest tpot_s."""

    kind: Literal["slo_cap"]
    base_s: NotNegative
    margin_ratio: PositiveShare = 0.9
    tau_s: NotNegative = 2.0


class AimdBatch(BatchBounds):
    """Additive increase, multiplicative decrease of the cap."""

    kind: Literal["aimd"]
    add_turns: Positive = 1.0
    cut_ratio: OpenShare = 0.8
    kv_ceiling_ratio: Share = 0.95


class SlewLimited(BatchBounds):
    """The cap by objective, moved no faster than a move can be seen."""

    kind: Literal["slew_limited"]
    base_s: NotNegative
    start_turns: Count
    settle_s: NotNegative
    margin_ratio: PositiveShare = 0.9
    tau_s: NotNegative = 2.0
    slew_ratio: PositiveShare = 0.1
    band_ratio: Share = 0.05


class SmallBatch(BatchBounds):
    """The smallest batch that keeps up with the ready line (E16)."""

    kind: Literal["small_batch"]
    low_turns: NotNegative = 0.25
    high_turns: Positive = 1.0
    rise_s: NotNegative = 1.0
    fall_s: NotNegative = 5.0
    step_ratio: PositiveShare = 0.1

    @model_validator(mode="after")
    def _ordered(self) -> SmallBatch:
        if not self.low_turns < self.high_turns:
            raise ValueError("low_turns must be below high_turns")
        return self


Batching = Annotated[Hold | FileLaw | SloCap | AimdBatch | SlewLimited | SmallBatch, Field(discriminator="kind")]
