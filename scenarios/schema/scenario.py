"""One scenario file: one claim, its parts, its candidates and what is expected of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr, model_validator

from scenarios.errors import UserError, nearest
from scenarios.schema.base import Count, NotNegative, Positive, ScenarioTable, Share
from scenarios.schema.checks.ignored_keys import refuse_idle_keys
from scenarios.schema.checks.references import refuse_unknown_names
from scenarios.schema.checks.servable import refuse_unable_plant
from scenarios.schema.expect import Expectation, check_expectation
from scenarios.schema.laws import Candidate
from scenarios.schema.laws.registry import SLOTS
from scenarios.schema.plants import ClusterPlant, Plant, RecordedTimesPart
from scenarios.schema.reconfigure import ReadyPart, ReconfigurePart
from scenarios.schema.trace_workloads import MixtureWorkload, Played, ReplayWorkload
from scenarios.schema.workloads import Synthetic, Workload

# No run of a minute makes a thousandth of these; more is a slip of an exponent.
MOST_TICKS = 1e9
# Slots whose laws act through a plant of workers; the theory's plants have nothing for them to move.
CLUSTER_SLOTS = ("capacity", "retention")


class ServiceClass(ScenarioTable):
    """A service class: objectives, weight in fair order, priority (higher goes first), price of its output."""

    ttft_s: Positive | None = None
    tpot_s: Positive | None = None
    weight: Positive = 1.0
    priority: int = 0
    price_per_mtoken: NotNegative | None = None


class DoorPart(ScenarioTable):
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
    """How readings reach the controllers; period 0 is live."""

    period_s: NotNegative = 0.0
    age_s: NotNegative = 0.0
    noise_ratio: NotNegative = 0.0
    drop_ratio: Share = 0.0

    @model_validator(mode="after")
    def _aged_samples_need_a_period(self) -> TelemetryPart:
        if self.age_s > 0.0 and self.period_s == 0.0:
            raise ValueError("age_s needs period_s > 0: an aged reading is a sample that was taken before")
        return self


class DispatchPart(ScenarioTable):
    """How many routers there are, and how old the loads are that they see (None: fresh)."""

    routers: Count = 1
    snapshot_s: Positive | None = None


class RecordPart(ScenarioTable):
    """Width of a bin (None: 1/5600 of the horizon, within 0.05 s and 60 s), and whether turns' moves are events."""

    signal_bin_s: Positive | None = None
    events: Literal["decisions", "all"] = "decisions"


class Scenario(ScenarioTable):
    """A whole scenario file.

    `horizon_s` ends the run, `warmup_s` of it is not judged; `drain_s` more lets turns in flight end.
    """

    title: str
    question: str
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)]  # TOML's integers end there
    horizon_s: Annotated[float, Field(gt=0.0, le=1e9)]  # 32 years
    warmup_s: NotNegative
    drain_s: NotNegative = 0.0
    workload: Workload
    plant: Plant
    admission: DoorPart = DoorPart()
    ready: ReadyPart = ReadyPart()
    control: ControlPart = ControlPart()
    telemetry: TelemetryPart = TelemetryPart()
    dispatch: DispatchPart = DispatchPart()
    reconfigure: ReconfigurePart = ReconfigurePart()
    record: RecordPart = RecordPart()
    classes: dict[str, ServiceClass] = Field(default_factory=lambda: {"default": ServiceClass()})
    candidates: Annotated[tuple[Candidate, ...], Field(min_length=1)]
    expect: dict[str, Expectation] = Field(default_factory=dict)
    _file: str = PrivateAttr(default="")

    @property
    def file(self) -> str:
        """Name of the file that this was read from, for errors; empty: from none."""
        return self._file

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Put the file's name before the user's mistakes that show only when its parts are built."""
        try:
            yield
        except UserError as error:
            if not self._file or str(error).startswith(f"{self._file}: "):
                raise
            raise type(error)(f"{self._file}: {error}") from error

    def read_from(self, file: str) -> Scenario:
        """Return the scenario, which remembers the name of its file from now on."""
        self._file = file
        return self

    @model_validator(mode="after")
    def _consistent(self) -> Scenario:
        if self.horizon_s <= self.warmup_s:
            raise ValueError(f"horizon_s = {self.horizon_s:g} must exceed warmup_s = {self.warmup_s:g}")
        names = [candidate.name for candidate in self.candidates]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"two candidates are named {twice}")
        for name in self.expect:
            if name not in names:
                raise ValueError(
                    f"expect.{name} names no candidate{nearest(name, names)}; there are {', '.join(names)}"
                )
            check_expectation(name, self.expect[name], self._names(), self._untold())
        if not self.classes:
            raise ValueError("classes: there must be at least one")
        self._check_lengths()
        self._check_periods()
        self._check_drain()
        self._check_recorded()
        refuse_unknown_names(self)
        refuse_unable_plant(self)
        refuse_idle_keys(self)
        return self

    def _names(self) -> dict[str, tuple[str, ...]]:
        """Return what this scenario calls its classes and its pools, for paths of expectations."""
        pools = (*self.plant.configurations,) if isinstance(self.plant, ClusterPlant) else ("decode",)
        return {"class": (*self.classes,), "pool": pools}

    def _untold(self) -> dict[str, str]:
        """Return parts of a summary that runs of this scenario leave empty, and what would fill them."""
        found = {}
        if not isinstance(self.plant, ClusterPlant):
            found["stranded"] = f"the {self.plant.kind} plant has no workers, a plant of kind cluster has"
        if not isinstance(self.plant, ClusterPlant) or self.plant.kv is None:
            found["kv"] = "it needs a plant of kind cluster with a table plant.kv"
        if not isinstance(self.workload, Played | ReplayWorkload | MixtureWorkload):
            found["trace"] = f"the workload {self.workload.kind} plays no conversations"
        return found

    def _check_lengths(self) -> None:
        every = [(f"control.{slot}_period_s", self.period_s(slot, None)) for slot in SLOTS]
        every += [(f"candidates.{own.name}.{slot}.period_s", self.period_s(slot, getattr(own, slot)))
                  for own in self.candidates for slot in SLOTS]  # fmt: skip
        every += [("telemetry.period_s", self.telemetry.period_s), ("record.signal_bin_s", self.bin_s)]
        for place, period_s in every:
            if period_s > 0.0 and self.horizon_s / period_s > MOST_TICKS:
                raise ValueError(
                    f"{place} = {period_s:g} makes more than {MOST_TICKS:g} steps in horizon_s = {self.horizon_s:g}; "
                    f"at least {self.horizon_s / MOST_TICKS:g} would do"
                )

    def _check_drain(self) -> None:
        asked = [self.reconfigure, *(own.reconfigure for own in self.candidates if own.reconfigure is not None)]
        name = self._replaying()
        if name is not None and any(part.drain == "migrate" for part in asked):
            raise ValueError(
                f"reconfigure.drain: a turn in recorded time (configuration {name}) has no state to migrate; "
                'use "wait" or "retry"'
            )

    def _check_recorded(self) -> None:
        name = self._replaying()
        if name is not None and isinstance(self.workload, Synthetic):
            raise ValueError(
                f"plant.configurations.{name}.times: the workload {self.workload.kind} records no server times; "
                "play a trace, or give times of kind linear or moe"
            )

    def _replaying(self) -> str | None:
        """Return the first configuration that replays recorded server times, if there is one."""
        configurations = self.plant.configurations if isinstance(self.plant, ClusterPlant) else {}
        return next((name for name, own in configurations.items() if isinstance(own.times, RecordedTimesPart)), None)

    def _check_periods(self) -> None:
        for candidate in self.candidates:
            for slot in SLOTS:
                law = getattr(candidate, slot)
                period_s = self.period_s(slot, law)
                allowed = slot in self.control.allow_period_below_age
                if law.kind != "hold" and period_s < self.telemetry.age_s and not allowed:
                    raise ValueError(
                        f"candidates.{candidate.name}.{slot}: a period of {period_s:g} s is shorter than the age of "
                        f"the readings, telemetry.age_s = {self.telemetry.age_s:g} s; act less often, or name "
                        f'"{slot}" in control.allow_period_below_age'
                    )
                if slot in CLUSTER_SLOTS and law.kind != "hold" and self.plant.kind != "cluster":
                    raise ValueError(
                        f"candidates.{candidate.name}.{slot}: the {self.plant.kind} plant has no workers to move"
                    )

    def period_s(self, slot: str, law: Any) -> float:  # Any: a law's table of any slot
        """Return how often a law acts: its own period, or its slot's (as of no law)."""
        own: float | None = None if law is None else law.period_s
        slots: float = getattr(self.control, f"{slot}_period_s")
        return slots if own is None else own

    @property
    def bin_s(self) -> float:
        """Width of a bin of the record, in seconds."""
        if self.record.signal_bin_s is not None:
            return self.record.signal_bin_s
        return min(max(self.horizon_s / 5600.0, 0.05), 60.0)

    def candidate(self, name: str) -> Candidate:
        """Return a candidate by name; KeyError if there is none."""
        return {candidate.name: candidate for candidate in self.candidates}[name]
