"""From a workload's table to a source of turns."""

from __future__ import annotations

from itertools import count

from orchestrator.clock import Clock
from orchestrator.ports import Source
from orchestrator.rng import stream_key
from orchestrator.turn import ClassName
from plant.truth import Truths
from scenarios.build.conversations import prepared
from scenarios.errors import UserError, nearest
from scenarios.schema.plants import TandemPlant
from scenarios.schema.scenario import Scenario
from scenarios.schema.workloads import (
    ClassShare,
    LanesWorkload,
    LengthLaw,
    Played,
    PoissonWorkload,
    SaturatedWorkload,
    SessionsWorkload,
    StepWorkload,
    Synthetic,
)
from scenarios.workloads.arrivals import constant, times, unit_gaps
from scenarios.workloads.lanes import LanesSource
from scenarios.workloads.player import Stage
from scenarios.workloads.sessions import SessionArrivals
from scenarios.workloads.synthetic import ClassMix, Lengths, Poisson, Saturated, TurnFactory


def source(scenario: Scenario, seed: int, clock: Clock, truths: Truths) -> Source:
    """Return the scenario's source of turns."""
    part = scenario.workload
    if isinstance(part, Played):
        return _played(part, scenario, seed, clock, truths)
    factory = TurnFactory(seed, part.kind, mixes(part, list(scenario.classes)), truths)
    match part:
        case SaturatedWorkload():
            return Saturated(clock, factory, part.waiting_turns)
        case PoissonWorkload():
            return Poisson(clock, factory, seed, [(0.0, part.rate_per_s)], part.turns)
        case StepWorkload():
            return Poisson(clock, factory, seed, [(step.at_s, step.rate_per_s) for step in part.steps], part.turns)


def _played(
    part: LanesWorkload | SessionsWorkload, scenario: Scenario, seed: int, clock: Clock, truths: Truths
) -> Source:
    classes = list(scenario.classes)
    name = classes[0] if part.service_class is None else part.service_class
    if name not in classes:
        raise UserError(f"workload.service_class: no class {name}{nearest(name, classes)}")
    stage = Stage(
        clock=clock,
        truths=truths,
        births=count(),
        class_name=ClassName(name),
        draw_stream=stream_key(seed, f"{part.kind} draw"),
        draws=1 if isinstance(scenario.plant, TandemPlant) else 0,  # the tandem plant turns one into a residence time
    )
    ready = prepared(part.conversations)
    match part:
        case LanesWorkload():
            return LanesSource(
                stage,
                ready.scripts,
                lanes=part.lanes,
                seed=seed,
                start_window=part.start_window,
                primer=part.primer,
                tree_idle_cap_s=part.tree_idle_cap_s,
                system_idle_cap_s=part.system_idle_cap_s,
                ramp_s=part.ramp_s,
                recycle=part.recycle,
                global_scope=ready.is_global,
            )
        case SessionsWorkload():
            gaps = unit_gaps(stream_key(seed, "session arrivals"), part.gap_cv_ratio)
            return SessionArrivals(
                stage,
                ready.scripts,
                times(constant(part.rate_per_s), gaps),
                seed=seed,
                sessions=part.sessions,
                tree_idle_cap_s=part.tree_idle_cap_s,
                system_idle_cap_s=part.system_idle_cap_s,
                global_scope=ready.is_global,
            )


def mixes(part: Synthetic, classes: list[str]) -> list[ClassMix]:
    """Return each class's share and lengths; without `by_class`, every class has an equal share."""
    for name in part.by_class:
        if name not in classes:
            raise UserError(f"workload.by_class.{name}: no such class{nearest(name, classes)}")
    shares = part.by_class or {name: ClassShare() for name in classes}
    return [
        ClassMix(
            name=ClassName(name),
            share=own.share,
            prompt=_lengths(own.prompt or part.prompt),
            output=_lengths(own.output or part.output),
        )
        for name, own in shares.items()
    ]


def _lengths(law: LengthLaw) -> Lengths:
    return Lengths(shape=law.shape, mean_tokens=law.mean_tokens, cv_ratio=law.cv_ratio, high_tokens=law.high_tokens)
