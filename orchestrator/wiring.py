"""The control loops of a run: each law joined to the reading that it sees and the actuator that it moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from orchestrator import readings
from orchestrator.admission import AdmissionQueue, ClassSpec
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

# Any: applied and setpoint are of the slot's own command types.
Read = Callable[[float, Sample, Sample, Any, Any], Readings]


def loop_specs(
    laws: dict[Slot, Law],
    classes: Sequence[ClassSpec],
    queue: AdmissionQueue,
    plant: Plant,
    lifecycle: WorkerLifecycle,
    resize: Callable[[Mapping[ConfigurationName, int]], None],
    *,
    smoothing_s: float,
    midnight_s: float,
) -> list[LoopSpec]:
    """Join each law to its reading and its actuator, slow loops first."""
    names = [c.name for c in classes]
    order: tuple[Slot, ...] = ("retention", "demand", "capacity", "admission", "batching")
    reads: dict[Slot, Read] = {
        "retention": lambda now_s, y, before, applied, setpoint: readings.retention(now_s, y, applied),
        "demand": lambda now_s, y, before, applied, setpoint: readings.demand(
            now_s, y, before, names, midnight_s, applied
        ),
        "capacity": readings.capacity,
        "admission": _admission_reader(names, smoothing_s),
        "batching": _batching_reader(classes),
    }

    def apply_admission(command: AdmissionCommand) -> AdmissionCommand:
        queue.set(command)
        return queue.applied

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
        return lifecycle.apply(command)

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


def _batching_reader(classes: Sequence[ClassSpec]) -> Read:
    objectives = [c.tpot_s for c in classes if c.tpot_s is not None]
    tpot_slo_s = min(objectives, default=None)

    def read(now_s: float, y: Sample, before: Sample, applied: BatchCommand, setpoint: Any) -> Readings:
        return readings.batching(now_s, y, before, tpot_slo_s, applied, setpoint)

    return read
