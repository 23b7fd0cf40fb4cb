"""From a workload's table to a source of turns."""

from __future__ import annotations

from orchestrator.clock import Clock
from orchestrator.ports import Source
from orchestrator.rng import stream_key
from orchestrator.turn import ClassName
from plant.hidden_turns import HiddenTurns
from scenarios.build import trace_workloads
from scenarios.errors import UserError, nearest
from scenarios.schema.scenario import Scenario
from scenarios.schema.workloads import (
    ClassShare,
    LengthLaw,
    PoissonWorkload,
    RequestsWorkload,
    SaturatedWorkload,
    StepWorkload,
    Synthetic,
)
from scenarios.workloads.returning import Returning, ReturnSpec
from scenarios.workloads.synthetic import ClassMix, Lengths, Poisson, Saturated, TurnFactory


def source(scenario: Scenario, seed: int, clock: Clock, hidden_turns: HiddenTurns) -> Source:
    """Return the scenario's source of turns, with clients that come back where it says so."""
    first = _first_turns(scenario, seed, clock, hidden_turns)
    if not scenario.clients.attempts:
        return first
    spec = ReturnSpec(**scenario.clients.model_dump())
    return Returning(first, clock, hidden_turns, spec, stream_key(seed, "clients.jitter"))


def _first_turns(scenario: Scenario, seed: int, clock: Clock, hidden_turns: HiddenTurns) -> Source:
    part = scenario.workload
    if isinstance(part, RequestsWorkload):
        raise UserError(
            'workload.kind "requests": they come over HTTP, by `steadyflow serve`; no simulation plays them'
        )
    if not isinstance(part, Synthetic):
        return trace_workloads.source(part, scenario, seed, clock, hidden_turns)
    factory = TurnFactory(seed, part.kind, mixes(part, list(scenario.classes)), hidden_turns)
    match part:
        case SaturatedWorkload():
            return Saturated(clock, factory, part.waiting_turns)
        case PoissonWorkload():
            return Poisson(clock, factory, seed, [(0.0, part.rate_per_s)], part.turns)
        case StepWorkload():
            return Poisson(clock, factory, seed, [(step.at_s, step.rate_per_s) for step in part.steps], part.turns)


def mixes(part: Synthetic, classes: list[str]) -> list[ClassMix]:
    """Return each class's share and lengths; without `by_class`, every class has an equal share."""
    for name in part.by_class:
        if name not in classes:
            raise UserError(f"workload.by_class.{name}: no such class{nearest(name, classes)}")
    shares = part.by_class or {name: ClassShare() for name in classes}
    return [
        ClassMix(
            name=ClassName(name),
            share=mix.share,
            prompt=_lengths(mix.prompt or part.prompt),
            output=_lengths(mix.output or part.output),
        )
        for name, mix in shares.items()
    ]


def _lengths(law: LengthLaw) -> Lengths:
    return Lengths(shape=law.shape, mean_tokens=law.mean_tokens, cv_ratio=law.cv_ratio, high_tokens=law.high_tokens)
