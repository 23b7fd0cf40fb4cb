"""Tables of the capacity laws."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from scenarios.schema.base import Count, NotNegative, Positive, Share
from scenarios.schema.laws.part import FileLaw, Hold, LawPart

Measure = Literal["occupancy", "kv", "turns"]
PositiveShare = Annotated[float, Field(gt=0.0, le=1.0)]


class Sizes(LawPart):
    """The bounds of a pool's size."""

    least_workers: Count = 1
    most_workers: Count

    @model_validator(mode="after")
    def _bounded(self) -> Sizes:
        if self.least_workers > self.most_workers:
            raise ValueError("least_workers must not exceed most_workers")
        return self


class Hpa(Sizes):
    """The Kubernetes horizontal autoscaler (C1)."""

    kind: Literal["hpa"]
    configuration: str
    measure: Measure = "occupancy"
    target: Positive
    tolerance_ratio: Share = 0.1
    down_window_s: NotNegative = 300.0
    policy_s: Positive = 15.0
    up_workers: Count = 4
    pending_aware: bool = True


class Planner(Sizes):
    """Forecast floor and one-worker trim, with hysteresis in load and in time (C2)."""

    kind: Literal["planner"]
    configuration: str
    measure: Measure = "occupancy"
    up: Positive
    down: NotNegative
    down_s: NotNegative = 0.0
    dwell_s: NotNegative = 0.0
    flip_s: NotNegative = 0.0
    headroom_ratio: PositiveShare = 0.8
    service_per_worker_per_s: Positive | None = None
    consolidation: bool = True
    observe_only: bool = True
    in_flight_per_worker_turns: Positive | None = None

    @model_validator(mode="after")
    def _ordered(self) -> Planner:
        if self.down > self.up:
            raise ValueError("down must not exceed up")
        return self


class QueueModel(Sizes):
    """The fewest workers whose predicted wait is short enough (M/G/1 for each)."""

    kind: Literal["queue_model"]
    configurations: Annotated[tuple[str, ...], Field(min_length=1)]
    wait_s: Positive
    service: Literal["stated", "measured"] = "stated"
    cv_ratio: NotNegative = 1.0
    band_ratio: NotNegative = 0.1
    tau_s: NotNegative = 60.0


class Mpc(Sizes):
    """Receding-horizon sizing; needs the optional dependency OSQP."""

    kind: Literal["mpc"]
    configuration: str
    delay_ticks: Annotated[int, Field(ge=0)] = 1
    horizon_ticks: Annotated[int, Field(ge=2, le=200)] = 20
    headroom_ratio: PositiveShare = 0.8
    shortage_weight: Positive = 10.0
    worker_weight: Positive = 1.0
    move_weight: NotNegative = 1.0
    round_ratio: Annotated[float, Field(ge=0.5, lt=1.0)] = 0.6
    service_per_worker_per_s: Positive | None = None
    tau_s: NotNegative = 60.0


class TwoSizes(LawPart):
    """What excitations share: a pool and two sizes of it."""

    configuration: str
    low_workers: Annotated[int, Field(ge=0)]
    high_workers: Count

    @model_validator(mode="after")
    def _ordered(self) -> TwoSizes:
        if not self.low_workers < self.high_workers:
            raise ValueError("low_workers must be below high_workers")
        return self


class Step(TwoSizes):
    """An excitation: a square wave of the workers wanted."""

    kind: Literal["step"]
    hold_s: Positive


class Prbs(TwoSizes):
    """An excitation: a pseudo-random binary sequence of the workers wanted."""

    kind: Literal["prbs"]
    hold_s: Positive


class Relay(TwoSizes):
    """An excitation: two sizes of a pool, switched by its ready workers."""

    kind: Literal["relay"]
    threshold_workers: Positive
    band_workers: NotNegative = 0.0


Capacity = Annotated[
    Hold | FileLaw | Hpa | Planner | QueueModel | Mpc | Step | Prbs | Relay, Field(discriminator="kind")
]
