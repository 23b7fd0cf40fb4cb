"""From a workload of conversations or of a trace to its source."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from orchestrator.clock import Clock
from orchestrator.ports import Source
from orchestrator.rng import stream_key
from orchestrator.turn import ClassName
from plant.hidden_turns import HiddenTurns
from scenarios.build.conversations import Prepared, prepared
from scenarios.errors import UserError, nearest
from scenarios.schema import trace_workloads as schema
from scenarios.schema.plants import TandemPlant
from scenarios.schema.scenario import Scenario
from scenarios.workloads import arrivals
from scenarios.workloads.lanes import LanesSource
from scenarios.workloads.mixture import Mixture
from scenarios.workloads.player import SourceContext
from scenarios.workloads.sessions import SessionArrivals
from scenarios.workloads.trace_replay import TraceReplay, time_line

Single = schema.LanesWorkload | schema.SessionsWorkload | schema.ReplayWorkload


def source(part: schema.Traffic, scenario: Scenario, seed: int, clock: Clock, hidden_turns: HiddenTurns) -> Source:
    """Return the source of lanes, sessions or a replay, or of several of these at once."""
    births = count()
    if isinstance(part, schema.MixtureWorkload):
        named = part.parts.items()
        return Mixture(
            [_single(name, single, scenario, seed, _Run(clock, hidden_turns, births)) for name, single in named]
        )
    return _single(part.kind, part, scenario, seed, _Run(clock, hidden_turns, births))


class _Run:
    """What all sources of a run share."""

    __slots__ = ("births", "clock", "hidden_turns")

    def __init__(self, clock: Clock, hidden_turns: HiddenTurns, births: Iterator[int]) -> None:
        self.clock = clock
        self.hidden_turns = hidden_turns
        self.births = births


def _single(name: str, part: Single, scenario: Scenario, seed: int, run: _Run) -> Source:
    classes = list(scenario.classes)
    own_class = classes[0] if part.service_class is None else part.service_class
    if own_class not in classes:
        raise UserError(f"workload.service_class: no class {own_class}{nearest(own_class, classes)}")
    stage = SourceContext(
        clock=run.clock,
        hidden_turns=run.hidden_turns,
        births=run.births,
        class_name=ClassName(own_class),
        draw_stream=stream_key(seed, f"{name} draw"),
        draws=1 if isinstance(scenario.plant, TandemPlant) else 0,  # the tandem plant turns one into a residence time
    )
    ready = prepared(part.conversations)
    match part:
        case schema.LanesWorkload():
            return _lanes(name, part, stage, ready, seed)
        case schema.SessionsWorkload():
            return SessionArrivals(
                stage,
                ready.scripts,
                times(part, seed, name),
                seed=seed,
                name=name,
                sessions=part.sessions,
                tree_idle_cap_s=part.tree_idle_cap_s,
                system_idle_cap_s=part.system_idle_cap_s,
            )
        case schema.ReplayWorkload():
            rows = time_line(
                ready.corpus,
                rate_factor=part.rate_factor,
                idle_cap_s=part.idle_cap_s,
                from_s=part.from_s,
                to_s=part.to_s,
            )
            block_tokens = ready.corpus.conversations[0].block_tokens
            return TraceReplay(
                stage, rows, block_tokens=block_tokens, global_scope=ready.is_global, seed=seed, name=name
            )


def _lanes(name: str, part: schema.LanesWorkload, stage: SourceContext, ready: Prepared, seed: int) -> LanesSource:
    return LanesSource(
        stage,
        ready.scripts,
        lanes=part.lanes,
        seed=seed,
        name=name,
        start_window=part.start_window,
        primer=part.primer,
        warmup_turns=part.warmup_turns,
        tree_idle_cap_s=part.tree_idle_cap_s,
        system_idle_cap_s=part.system_idle_cap_s,
        ramp_s=part.ramp_s,
        recycle=part.recycle,
        order=part.order,
    )


def times(part: schema.SessionsWorkload, seed: int, name: str) -> Iterator[float]:
    """Return the arrival times of a workload's sessions, seconds from the start."""
    process = part.arrivals
    match process:
        case None:
            assert part.rate_per_s is not None, "the schema wants one of the two"
            profile = arrivals.constant(part.rate_per_s)
        case schema.ModulatedArrivals():
            profile = arrivals.mmpp(process.rates_per_s, process.dwells_s, stream=stream_key(seed, f"{name} states"))
        case schema.DiurnalArrivals():
            profile = arrivals.diurnal(
                process.mean_per_s, swing_ratio=process.swing_ratio, period_s=process.period_s, peak_s=process.peak_s
            )
        case schema.RampArrivals():
            points = [(point.at_s, point.rate_per_s) for point in process.points]
            profile = arrivals.ramp(points, period_s=process.period_s)
        case schema.BurstArrivals():
            profile = arrivals.bursts(
                process.base_per_s, process.burst_per_s, every_s=process.every_s, length_s=process.length_s
            )
    return arrivals.times(profile, arrivals.unit_gaps(stream_key(seed, f"{name} arrivals"), part.gap_cv_ratio))
