"""The keys of a scenario file and what follows from them alone; the checks read this, `scenario` runs the checks."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from scenarios.schema.base import NotNegative, ScenarioTable
from scenarios.schema.expect import Expectation
from scenarios.schema.faults import ClientsPart
from scenarios.schema.laws import Candidate
from scenarios.schema.plants import ClusterPlant, Plant, RecordedTimesPart
from scenarios.schema.reconfigure import ReadyPart, ReconfigurePart
from scenarios.schema.settings import (
    AdmissionQueuePart,
    ControlPart,
    DispatchPart,
    RecordPart,
    ServiceClass,
    TelemetryPart,
    UncertaintyPart,
)
from scenarios.schema.workloads import Workload


class ScenarioContents(ScenarioTable):
    """The keys of a scenario file, before they are held against each other (see `scenario.Scenario`).

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
    clients: ClientsPart = ClientsPart()
    admission: AdmissionQueuePart = AdmissionQueuePart()
    ready: ReadyPart = ReadyPart()
    control: ControlPart = ControlPart()
    telemetry: TelemetryPart = TelemetryPart()
    dispatch: DispatchPart = DispatchPart()
    reconfigure: ReconfigurePart = ReconfigurePart()
    record: RecordPart = RecordPart()
    classes: dict[str, ServiceClass] = Field(default_factory=lambda: {"default": ServiceClass()})
    uncertainty: UncertaintyPart | None = None
    candidates: Annotated[tuple[Candidate, ...], Field(min_length=1)]
    expect: dict[str, Expectation] = Field(default_factory=dict)

    def period_s(self, slot: str, law: Any) -> float:  # Any: a law's table of any slot
        """Return how often a law acts: its own period, or its slot's (as of no law)."""
        by_law: float | None = None if law is None else law.period_s
        by_slot: float = getattr(self.control, f"{slot}_period_s")
        return by_slot if by_law is None else by_law

    @property
    def bin_s(self) -> float:
        """Width of a bin of the record, in seconds."""
        if self.record.signal_bin_s is not None:
            return self.record.signal_bin_s
        return min(max(self.horizon_s / 5600.0, 0.05), 60.0)

    def candidate(self, name: str) -> Candidate:
        """Return a candidate by name; KeyError if there is none."""
        return {candidate.name: candidate for candidate in self.candidates}[name]

    def replaying(self) -> str | None:
        """Return the first configuration that replays recorded server times, if there is one."""
        configurations = self.plant.configurations if isinstance(self.plant, ClusterPlant) else {}
        return next((name for name, part in configurations.items() if isinstance(part.times, RecordedTimesPart)), None)
