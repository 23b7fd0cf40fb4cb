"""Which reading and which actuator belong to each slot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from orchestrator import readings
from orchestrator.admission import AdmissionQueue
from orchestrator.control import Law, LoopSpec
from orchestrator.messages import (
    AdmissionCommand,
    BatchCommand,
    CapacityCommand,
    DemandCommand,
    Readings,
    RetentionCommand,
    Slot,
)
from orchestrator.ports import Plant
from orchestrator.reconfigure import WorkerLifecycle
from orchestrator.telemetry import Sample
from orchestrator.turn import ClassName, ConfigurationName

if TYPE_CHECKING:
    from orchestrator.orchestrator import OrchestratorSpec

# Any: applied and setpoint are of the slot's own command types.
Read = Callable[[float, Sample, Sample, Any, Any], Readings]


def loop_specs(
    spec: OrchestratorSpec,
    laws: dict[Slot, Law],
    door: AdmissionQueue,
    plant: Plant,
    roster: WorkerLifecycle,
    resize: Callable[[Mapping[ConfigurationName, int]], None],
) -> list[LoopSpec]:
    """Join each law to its reading and its actuator, slow loops first."""
    names = [c.name for c in spec.classes]
    order: tuple[Slot, ...] = ("retention", "demand", "capacity", "admission", "batching")
    reads: dict[Slot, Read] = {
        "retention": lambda now_s, y, before, applied, setpoint: readings.retention(now_s, y, applied),
        "demand": lambda now_s, y, before, applied, setpoint: readings.demand(
            now_s, y, before, names, spec.midnight_s, applied
        ),
        "capacity": readings.capacity,
        "admission": _admission_reader(names, spec.smoothing_s),
        "batching": _batching_reader(spec),
    }

    def apply_admission(command: AdmissionCommand) -> AdmissionCommand:
        door.set(command)
        return door.applied

    def apply_batching(command: BatchCommand) -> BatchCommand:
        applied, _, slots = plant.apply(command)
        assert isinstance(applied, BatchCommand)
        if slots:
            resize(slots)
        return applied

    def apply_retention(command: RetentionCommand) -> RetentionCommand:
        applied = plant.apply(command).command
        assert isinstance(applied, RetentionCommand)
        return applied

    def apply_demand(command: DemandCommand) -> DemandCommand:
        return command

    def apply_capacity(command: CapacityCommand) -> CapacityCommand:
        return roster.apply(command)

    applies: dict[Slot, Callable[[Any], Any]] = {
        "retention": apply_retention,
        "demand": apply_demand,
        "capacity": apply_capacity,
        "admission": apply_admission,
        "batching": apply_batching,
    }
    return [
        LoopSpec(slot=slot, law=laws[slot], read=reads[slot], apply=applies[slot]) for slot in order if slot in laws
    ]


def _admission_reader(names: list[ClassName], smoothing_s: float) -> Read:
    smoother = readings.Smoother(smoothing_s)

    def read(now_s: float, y: Sample, before: Sample, applied: AdmissionCommand, setpoint: Any) -> Readings:
        smoothed = smoother.update(y.backlog, y.at_s)
        return readings.admission(now_s, y, before, names, smoothed, applied, setpoint)

    return read


def _batching_reader(spec: OrchestratorSpec) -> Read:
    objectives = [c.tpot_s for c in spec.classes if c.tpot_s is not None]
    tpot_slo_s = min(objectives, default=None)

    def read(now_s: float, y: Sample, before: Sample, applied: BatchCommand, setpoint: Any) -> Readings:
        return readings.batching(now_s, y, before, tpot_slo_s, applied, setpoint)

    return read
