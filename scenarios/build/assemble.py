"""An orchestrator from a scenario, one of its candidates and a seed."""

from __future__ import annotations

import math

from orchestrator.admission import AdmissionLimits, ClassSpec
from orchestrator.clock import Clock
from orchestrator.orchestrator import Orchestrator, OrchestratorSpec
from orchestrator.ports import Plant, Source
from orchestrator.reconfigure import ReconfigureSpec
from orchestrator.recorder import Sink
from orchestrator.telemetry import TelemetrySpec
from orchestrator.turn import ClassName
from plant.cluster import Cluster
from plant.hidden_turns import HiddenTurns
from plant.theory.fluid import Fluid, FluidSpec
from scenarios.build import laws, plants, workloads
from scenarios.build.faults import telemetry_fault_specs
from scenarios.build.gauges import watch_pools, watch_tiers
from scenarios.errors import UserError
from scenarios.schema.laws import Candidate
from scenarios.schema.plants import ClusterPlant, FluidPlant
from scenarios.schema.scenario import Scenario
from scenarios.schema.workloads import PoissonWorkload, SaturatedWorkload, StepWorkload


def spec(scenario: Scenario, seed: int) -> OrchestratorSpec:
    """Return the orchestrator's own part of a scenario."""
    door, record = scenario.admission, scenario.record
    return OrchestratorSpec(
        seed=seed,
        horizon_s=scenario.horizon_s,
        classes=tuple(
            ClassSpec(name=ClassName(name), ttft_s=c.ttft_s, tpot_s=c.tpot_s, weight=c.weight, priority=c.priority)
            for name, c in scenario.classes.items()
        ),
        admission=AdmissionLimits(
            max_release_per_s=_or_inf(door.max_release_per_s),
            slew_per_s2=_or_inf(door.slew_per_s2),
            queue_limit_turns=door.queue_limit_turns,
            order=door.order,
        ),
        telemetry=TelemetrySpec(
            **scenario.telemetry.model_dump(exclude={"faults"}), faults=telemetry_fault_specs(scenario.telemetry.faults)
        ),
        quarantine_after=scenario.dispatch.quarantine_after,
        reconfigure=ReconfigureSpec(**scenario.reconfigure.model_dump()),
        ready_capacity_turns=scenario.ready.capacity_turns,
        smoothing_s=door.smoothing_s,
        midnight_s=scenario.control.midnight_s,
        drain_s=scenario.drain_s,
        snapshot_s=scenario.dispatch.snapshot_s,
        bin_s=scenario.bin_s,
        record_moves=record.events == "all",
    )


def _or_inf(value: float | None) -> float:
    return math.inf if value is None else value


def orchestrator(
    scenario: Scenario, candidate: Candidate, seed: int, clock: Clock, sink: Sink
) -> tuple[Orchestrator, Source]:
    """Join a scenario's workload, plant and one candidate's laws under an orchestrator on `clock`.

    Raises
    ------
    UserError
        A part cannot be built as its table says; the line names the scenario's file and the key.
    """
    with scenario.blamed():
        resolved = with_own_tables(scenario, candidate)
        hidden_turns = HiddenTurns()
        source = workloads.source(resolved, seed, clock, hidden_turns)
        plant = plants.plant(resolved, clock, hidden_turns, seed)
        return joined(resolved, candidate, seed, clock, sink, source, plant, plant), source


def joined(
    scenario: Scenario,
    candidate: Candidate,
    seed: int,
    clock: Clock,
    sink: Sink,
    source: Source,
    plant: Plant,
    recorded: Plant,
) -> Orchestrator:
    """Join a source, a plant and one candidate's laws; the gauges of the plant `recorded` go to the record.

    `recorded` is the plant itself, or the one that it passes its calls on to.
    """
    make = laws.router_maker(candidate.routing)
    routers = range(scenario.dispatch.routers)
    assembled = Orchestrator(
        clock,
        spec(scenario, seed),
        plant,
        source,
        laws.acting_laws(scenario, candidate),
        [make() for _ in routers],
        [make() for _ in routers],
        sink,
    )
    if isinstance(recorded, Cluster):
        watch_pools(assembled.recorder, recorded.pools)
        if recorded.tiers is not None:
            watch_tiers(assembled.recorder, recorded.tiers)
    return assembled


def with_own_tables(scenario: Scenario, candidate: Candidate) -> Scenario:
    """Return the scenario with the candidate's own division of the racks, limits and buffer, where it has them."""
    for part in ("reconfigure", "ready"):
        if getattr(candidate, part) is not None:
            scenario = scenario.model_copy(update={part: getattr(candidate, part)})
    if candidate.pools is None:
        return scenario
    if not isinstance(scenario.plant, ClusterPlant):
        raise UserError(f"candidates.{candidate.name}.pools: the {scenario.plant.kind} plant has no pools to divide")
    return scenario.model_copy(update={"plant": scenario.plant.model_copy(update={"pools": candidate.pools})})


def fluid(scenario: Scenario, candidate: Candidate) -> Fluid:
    """Join the fluid plant to one candidate's admission law.

    Raises
    ------
    UserError
        The law or the residence has no fluid form.
    """
    with scenario.blamed():
        return _flow(scenario, candidate)


def _flow(scenario: Scenario, candidate: Candidate) -> Fluid:
    part, door = scenario.plant, scenario.admission
    assert isinstance(part, FluidPlant)
    law = laws.make_law("admission", candidate.admission, scenario.period_s("admission", candidate.admission))
    steps: list[tuple[float, float]] | None
    match scenario.workload:
        case SaturatedWorkload():
            steps = None
        case PoissonWorkload():
            steps = [(0.0, scenario.workload.rate_per_s)]
        case StepWorkload():
            steps = [(step.at_s, step.rate_per_s) for step in scenario.workload.steps]
        case _:
            raise UserError(f"plant.kind fluid: a flow has no turns, so it cannot play {scenario.workload.kind}")
    rates = steps or []
    waiting = scenario.workload.waiting_turns if isinstance(scenario.workload, SaturatedWorkload) else 0
    fluid_spec = FluidSpec(
        slots=part.slots,
        dead_time_s=part.dead_time_s,
        residence=plants.residence(part.residence),
        max_release_per_s=_or_inf(door.max_release_per_s),
        arrivals_per_s=None if steps is None else lambda t: [rate for at_s, rate in rates if at_s <= t][-1],
        waiting_turns=waiting,
        horizon_s=scenario.horizon_s,
        step_s=part.step_s,
        bin_s=scenario.bin_s,
    )
    try:
        return Fluid(fluid_spec, law)
    except ValueError as error:
        raise UserError(f"plant.kind fluid, candidate {candidate.name}: {error}") from error
