"""Tables of a scenario beside its workload, plant and laws: classes, admission queue, control, telemetry, record."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from scenarios.schema.base import Count, NotNegative, Positive, ScenarioTable, Share
from scenarios.schema.faults import TelemetryFault


class ServiceClass(ScenarioTable):
    """A service class: objectives, weight in fair order, priority (higher goes first), price of its output."""

    ttft_s: Positive | None = None
    tpot_s: Positive | None = None
    weight: Positive = 1.0
    priority: int = 0
    price_per_mtoken: NotNegative | None = None


class AdmissionQueuePart(ScenarioTable):
    """The admission actuator: its limits and its order; and the span over which the backlog is smoothed for laws."""

    max_release_per_s: Positive | None = None
    slew_per_s2: Positive | None = None
    queue_limit_turns: Count | None = None
    order: Literal["fifo", "priority", "edf", "weighted_fair"] = "fifo"
    smoothing_s: NotNegative = 0.0


class ControlPart(ScenarioTable):
    """How often each loop acts, unless its law says otherwise, and where the run begins in the day."""

    admission_period_s: Positive = 0.5
    batching_period_s: Positive = 0.5
    capacity_period_s: Positive = 30.0
    demand_period_s: Positive = 600.0
    retention_period_s: Positive = 60.0
    allow_period_below_age: tuple[Literal["admission", "batching", "capacity", "demand", "retention"], ...] = ()
    midnight_s: NotNegative = 0.0


class TelemetryPart(ScenarioTable):
    """How readings reach the controllers; period 0 is live.

    `ledger` "fresh": age, period, noise and losses are those of the plant's readings (busy slots, slots, pools, tiers),
    as of a scrape; what the orchestrator counts itself (backlog, in flight, admissions, retirements) has none of them.
    """

    period_s: NotNegative = 0.0
    age_s: NotNegative = 0.0
    noise_ratio: NotNegative = 0.0
    drop_ratio: Share = 0.0
    faults: tuple[TelemetryFault, ...] = ()
    ledger: Literal["aged", "fresh"] = "aged"

    @model_validator(mode="after")
    def _fresh_beside_what_is_not(self) -> TelemetryPart:
        if self.ledger == "fresh" and self.period_s == 0.0 and self.noise_ratio == 0.0:
            raise ValueError('ledger = "fresh" would have no effect: with period_s = 0 every reading is live')
        return self

    @model_validator(mode="after")
    def _aged_samples_need_a_period(self) -> TelemetryPart:
        if self.age_s > 0.0 and self.period_s == 0.0:
            raise ValueError("age_s needs period_s > 0: an aged reading is a sample that was taken before")
        return self


class DispatchPart(ScenarioTable):
    """How many routers there are, and how old the loads are that they see (None: fresh).

    A turn whose worker is lost goes to another one; `quarantine_after` such losses it fails in a bucket of its own,
    `quarantined`, so that a request that kills its worker does not kill many (None: after three retries as any other).
    """

    routers: Count = 1
    snapshot_s: Positive | None = None
    quarantine_after: Count | None = None


class RecordPart(ScenarioTable):
    """Width of a bin (None: 1/5600 of the horizon, within 0.05 s and 60 s), and whether turns' moves are events."""

    signal_bin_s: Positive | None = None
    events: Literal["decisions", "all"] = "decisions"


Range = tuple[Positive, Positive]


class UncertaintyPart(ScenarioTable):
    """How far the true plant may differ from what this file says of it, as ranges; laws keep what they are told here.

    `dead_time_ratio`, `residence_ratio` and `load_ratio` multiply the plant's dead time and mean residence and the
    arrivals; `residence_cv_ratio` is the coefficient of variation of residence itself (None: as the plant states it).
    """

    dead_time_ratio: Range = (1.0, 1.0)
    residence_ratio: Range = (1.0, 1.0)
    residence_cv_ratio: tuple[NotNegative, NotNegative] | None = None
    load_ratio: Range = (1.0, 1.0)

    @model_validator(mode="after")
    def _ascending(self) -> UncertaintyPart:
        for name in ("dead_time_ratio", "residence_ratio", "residence_cv_ratio", "load_ratio"):
            ends = getattr(self, name)
            if ends is not None and ends[0] > ends[1]:
                raise ValueError(f"{name} = [{ends[0]:g}, {ends[1]:g}]: the lower end comes first")
        return self
