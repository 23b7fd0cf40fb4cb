"""From a scenario's faults to those of the plant and of the telemetry, each with one target and one span."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from orchestrator.telemetry import TelemetryFaultSpec
from orchestrator.turn import ConfigurationName
from plant.faults import FaultSpec, PoisonSpec
from scenarios.schema.faults import ON_WORKERS, Fault, TelemetryFault

WORSENING_STEPS = 8


def fault_specs(faults: Sequence[Fault], rack_of_worker: Sequence[int]) -> list[FaultSpec]:
    """Return the plant's faults.

    Parameters
    ----------
    faults : sequence of Fault
    rack_of_worker : sequence of int
        The rack of every worker.

    Raises
    ------
    ValueError
        A rack without workers is lost.
    """
    return [spec for fault in faults if fault.kind != "poisoned" for spec in _specs(fault, rack_of_worker)]


def poison_specs(faults: Sequence[Fault]) -> list[PoisonSpec]:
    """Return the spans in which turns are poisoned."""
    return [
        PoisonSpec(
            at_s=fault.at_s,
            until_s=math.inf if fault.for_s is None else fault.at_s + fault.for_s,
            share=fault.share_ratio or 0.0,
            after_s=fault.after_s,
            back_s=fault.back_s,
        )
        for fault in faults
        if fault.kind == "poisoned"
    ]


def telemetry_fault_specs(faults: Sequence[TelemetryFault]) -> tuple[TelemetryFaultSpec, ...]:
    """Return the faults of the readings."""
    return tuple(
        TelemetryFaultSpec(
            kind=fault.kind,
            at_s=fault.at_s,
            until_s=math.inf if fault.for_s is None else fault.at_s + fault.for_s,
            configuration=None if fault.configuration is None else ConfigurationName(fault.configuration),
            share=fault.share_ratio,
        )
        for fault in faults
    )


def _specs(fault: Fault, rack_of_worker: Sequence[int]) -> Iterator[FaultSpec]:
    until_s = None if fault.for_s is None else fault.at_s + fault.for_s
    left = fault.factor_ratio
    if left is None:
        left = 0.5 if fault.kind in ON_WORKERS else 0.0
    factor = math.inf if left == 0.0 else 1.0 / left
    if fault.kind == "link_down" or fault.kind == "storage_lost":
        yield FaultSpec(
            kind=fault.kind, at_s=fault.at_s, until_s=until_s, rack=fault.rack, link=fault.link, factor=factor
        )
        return
    for worker in _workers(fault, rack_of_worker):
        if fault.kind == "lost":
            yield FaultSpec(kind="lost", at_s=fault.at_s, until_s=until_s, worker=worker)
        else:
            for from_s, to_s, times in _spells(fault, until_s, factor):
                yield FaultSpec(kind="slowed", at_s=from_s, until_s=to_s, worker=worker, factor=times)


def _spells(fault: Fault, until_s: float | None, factor: float) -> Iterator[tuple[float, float | None, float]]:
    """Yield (from, to, factor) of each spell in which a worker is slow; the slowest of those that overlap counts."""
    if fault.kind == "worsening" and fault.for_s is not None:
        for k in range(WORSENING_STEPS):
            share = (k + 1) / WORSENING_STEPS
            yield fault.at_s + k * fault.for_s / WORSENING_STEPS, until_s, 1.0 + (factor - 1.0) * share
    elif fault.kind == "flapping" and fault.period_s is not None and until_s is not None:
        k = 0
        while (from_s := fault.at_s + k * fault.period_s) < until_s:
            yield from_s, min(from_s + fault.period_s / 2, until_s), factor
            k += 1
    else:
        yield fault.at_s, until_s, factor


def _workers(fault: Fault, rack_of_worker: Sequence[int]) -> Sequence[int]:
    if fault.worker is not None:
        return (fault.worker,)
    if fault.workers is not None:
        return fault.workers
    of_rack = [worker for worker, rack in enumerate(rack_of_worker) if rack == fault.rack]
    if not of_rack:
        raise ValueError(f"fault at {fault.at_s:g} s: rack {fault.rack} has no workers")
    return of_rack
