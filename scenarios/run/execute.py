"""Run one candidate of a scenario on one seed, judge the record and summarise it."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from orchestrator.catalogue import HEADLINE
from orchestrator.errors import LawFailed
from orchestrator.real_clock import run_real
from orchestrator.recorder import Sink
from orchestrator.turn import ConfigurationName
from orchestrator.virtual_clock import run_virtual
from plant.cluster import Cluster
from plant.model.measured import OutsideTable
from plant.workers.pool_counters import Pool
from scenarios.build import assemble, conversations, loop_separation, measured, plants
from scenarios.catalogue.verdict import signal_of
from scenarios.errors import UserError, nearest
from scenarios.run import logged, metrics
from scenarios.run.environment import environment
from scenarios.run.kv import TierWatch, kv_figures
from scenarios.run.load import load
from scenarios.run.notes import notes_of
from scenarios.run.plant_estimate import estimated_plant
from scenarios.run.pools import PoolWatch, Times, stranded, swing
from scenarios.run.progress import Progress, watch
from scenarios.run.record import RunData, RunFolder
from scenarios.run.recovery import fault_spans, recovery
from scenarios.run.result import Run
from scenarios.run.sink import FolderSink, MemorySink
from scenarios.schema.laws import Candidate
from scenarios.schema.load import to_toml
from scenarios.schema.plants import FluidPlant
from scenarios.schema.scenario import Scenario
from scenarios.schema.trace_workloads import ReplayWorkload
from scenarios.schema.workloads import PoissonWorkload, SaturatedWorkload, StepWorkload
from scenarios.verdict.flow import flow_of, flow_word, headline
from scenarios.verdict.run import column, judge_run, window_of
from scenarios.workloads.player import Counted


@dataclass
class Ended:
    """What a simulation returns beside its record."""

    why: str
    end_s: float
    cpu_s: float
    trace: dict[str, Any] | None = None
    kv: dict[str, float] | None = None
    pools: tuple[Times, Mapping[ConfigurationName, Pool]] | None = None
    notes: dict[str, Any] = field(default_factory=dict)


def run(
    scenario: Scenario,
    candidate: str | None = None,
    *,
    seed: int | None = None,
    out: Path | None = None,
    rate: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Run:
    """Run one candidate.

    Parameters
    ----------
    scenario : Scenario
    candidate : str, optional
        Its name; None: the first.
    seed : int, optional
        None: the scenario's.
    out : Path, optional
        A new folder for the record; None: the record stays in memory.
    rate : float, optional
        Run on the real clock at this many seconds a second; None: on the virtual clock.
    progress : callable, optional
        Called with simulated time and turns, 200 times over the horizon.

    Raises
    ------
    UserError
        No such candidate, or the folder exists.
    """
    names = [each.name for each in scenario.candidates]
    name = names[0] if candidate is None else candidate
    if name not in names:
        raise UserError(f"no candidate {name}{nearest(name, names)}; there are {', '.join(names)}")
    seed = scenario.seed if seed is None else seed
    logged.started(scenario.horizon_s, scenario=scenario.title, candidate=name, seed=seed)
    done = _recorded(scenario, scenario.candidate(name), seed, out, rate, progress)
    logged.ended(done.summary, scenario=scenario.title, candidate=name, seed=seed)
    return done


def _recorded(
    scenario: Scenario,
    chosen: Candidate,
    seed: int,
    out: Path | None,
    rate: float | None,
    progress: Callable[[Progress], None] | None,
) -> Run:
    name = chosen.name
    if out is None:
        memory = MemorySink()
        ended = _simulate(scenario, chosen, seed, memory, rate, progress)
        return Run(judged(scenario, chosen, seed, ended, memory.data(name, scenario.title, scenario.question)))
    with RunFolder(out) as folder:
        ended = _simulate(scenario, chosen, seed, FolderSink(folder), rate, progress)
        raw = folder.read_back(name, scenario.title, scenario.question)
        data = judged(scenario, chosen, seed, ended, raw)
        folder.finish(
            candidate=name,
            title=data.title,
            question=data.question,
            meta=data.meta,
            summary=data.summary,
            verdicts=data.verdicts,
            scenario_toml=data.scenario_toml,
        )
    return Run(load(out))


def _simulate(
    scenario: Scenario,
    candidate: Candidate,
    seed: int,
    sink: Sink,
    rate: float | None,
    progress: Callable[[Progress], None] | None,
) -> Ended:
    sink = logged.watched(sink, candidate=candidate.name, seed=seed)
    began = time.process_time()
    if isinstance(scenario.plant, FluidPlant):
        fluid = assemble.fluid(scenario, candidate)
        sink.signals(fluid.run())
        return Ended("horizon", scenario.horizon_s, time.process_time() - began)

    async def main(clock: Any) -> Ended:  # Any: a VirtualClock or a RealClock
        orchestrator, source = assemble.orchestrator(scenario, candidate, seed, clock, sink)
        if progress is not None:
            watch(clock, orchestrator.ledger, scenario.horizon_s, progress)
        tiers = orchestrator.plant.tiers if isinstance(orchestrator.plant, Cluster) else None
        pool_watch = (
            PoolWatch(clock, orchestrator.plant.pools, orchestrator.registry.seconds, scenario.warmup_s)
            if isinstance(orchestrator.plant, Cluster)
            else None
        )
        tier_watch = None if tiers is None else TierWatch(clock, tiers, scenario.warmup_s)
        start = time.process_time()
        why = await orchestrator.run()
        ended = Ended(why, clock.now(), time.process_time() - start, conversations.facts(scenario))
        ended.notes = notes_of(orchestrator)
        if isinstance(source, Counted):
            ended.notes["workload"] = source.statistics()
        ended.kv = None if tier_watch is None else tier_watch.gained()
        if pool_watch is not None and isinstance(orchestrator.plant, Cluster):
            ended.pools = (pool_watch.gained(), orchestrator.plant.pools)
        return ended

    try:
        return run_virtual(main) if rate is None else run_real(main, rate)
    except BaseExceptionGroup as group:  # a user needs the error inside the task group's wrapping
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, OutsideTable):
            raise UserError(f"times: {error}") from None
        if isinstance(error, UserError):
            raise error from None
        if isinstance(error, LawFailed):
            raise UserError(str(error)) from error
        raise
    except OutsideTable as error:
        raise UserError(f"times: {error}") from None


def judged(scenario: Scenario, candidate: Candidate, seed: int, ended: Ended, data: RunData) -> RunData:
    """Return a raw record with its verdicts, summary and manifest."""
    declared = plants.declared(scenario)
    end_s = min(ended.end_s, scenario.horizon_s)
    window_s = (min(scenario.warmup_s, end_s), end_s)
    began = time.process_time()
    endless = isinstance(scenario.workload, SaturatedWorkload)
    slots = declared.slots if declared is not None else _mean_slots(data)
    open_loop = isinstance(scenario.workload, PoissonWorkload | StepWorkload | ReplayWorkload)
    works = metrics.worked(data.signals, window_s)
    verdicts = (
        {}
        if not works
        else judge_run(
            data.signals,
            slots=slots,
            service_per_s=None if declared is None else declared.service_per_s,
            warmup_s=window_s[0],
            horizon_s=window_s[1],
            transit_s=_transit_s(data, window_s) if declared is None else declared.transit_s,
            inputs={"arrivals": "arrival_per_s"} if open_loop else {},
            latencies=_latencies(data, window_s),
            asked=[name for key in scenario.expect.get(candidate.name, {}) if (name := signal_of(key)) is not None],
        )
    )
    objectives = {name: metrics.Objective(ttft_s=c.ttft_s, tpot_s=c.tpot_s) for name, c in scenario.classes.items()}
    summary = metrics.summarize(
        data.turns, data.signals, window_s=window_s, endless_work=endless, objectives=objectives
    )
    if not works:
        summary["flow"] = {**summary["flow"], "fed": None}
    record = window_of(data.signals, *window_s)
    flow = flow_of(column(record, HEADLINE, 1.0), column(record, "backlog_turns_min", 1.0))
    judge_cpu_s = time.process_time() - began
    retired = summary["counts"]["retired"]
    gpus = plants.gpus_by_configuration(scenario)
    facts = measured.measured_facts(scenario)
    worker_seconds = ended.notes.get("worker_seconds") or {"decode": end_s}
    full_summary: dict[str, Any] = {
        "candidate": candidate.name,
        "scenario": scenario.title,
        "seed": seed,
        "verdict": {name: verdict.to_json() for name, verdict in verdicts.items()},
        "headline": headline(verdicts, flow_word(flow, endless_work=endless)) if works else metrics.NO_WORK,
        **summary,
        "gpu_hours": metrics.gpu_hours({k: v for k, v in worker_seconds.items() if k in gpus}, gpus),
        "reconfigurations": ended.notes.get("reconfigurations"),
        "kv": None if ended.kv is None else kv_figures(ended.kv, data.signals, window_s),
        "measured": estimated_plant(data.turns, data.signals, window_s),
        "pools": swing(data.signals, window_s, verdicts),
        "recovery": recovery(data.signals, fault_spans(scenario), window_s[0], end_s),
        "stranded": None if ended.pools is None else stranded(*ended.pools, data.signals, window_s),
        "warnings": [*_warnings(scenario, candidate, facts), *metrics.idle(works, window_s, summary)],
        "trace": ended.trace,
        "cpu_s_by_part": {"span": ended.cpu_s, "verdict": judge_cpu_s},
        "turns_per_cpu_s": retired / ended.cpu_s if ended.cpu_s > 0.0 else None,
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0,
        "ended": ended.why,
    }
    meta = {
        "seed": seed,
        "ended": ended.why,
        "end_s": ended.end_s,
        "trace": ended.trace,
        "times": facts or None,
        "notes": ended.notes,
        "environment": environment(),
    }
    return replace(data, verdicts=verdicts, summary=full_summary, meta=meta, scenario_toml=to_toml(scenario))


def _warnings(scenario: Scenario, candidate: Candidate, facts: Any) -> list[str]:  # Any: as `measured` gives it
    return [*loop_separation.warnings(scenario, candidate), *measured.extrapolation_warnings(facts)]


def _mean_slots(data: RunData) -> float:
    slots = data.signals.get("slots")
    return max(1.0, float(slots.mean())) if slots is not None and len(slots) else 1.0  # 0: unlimited


def _transit_s(data: RunData, window_s: tuple[float, float]) -> float | None:
    """Mean time from release to retirement, measured on turns that ended in the window."""
    turns = data.turns
    if not len(turns):
        return None
    ended = turns["ended_s"].to_numpy(dtype=float)
    spans = ended - turns["released_s"].to_numpy(dtype=float)
    inside = (ended >= window_s[0]) & (ended <= window_s[1]) & np.isfinite(spans)
    return float(spans[inside].mean()) if inside.any() else None


def _latencies(data: RunData, window_s: tuple[float, float]) -> tuple[np.ndarray, np.ndarray] | None:
    turns = data.turns
    if not len(turns):
        return None
    filled = turns["filled_s"].to_numpy(dtype=float)
    ttft = filled - turns["arrived_s"].to_numpy(dtype=float)
    inside = (filled >= window_s[0]) & (filled <= window_s[1])
    return filled[inside], ttft[inside]
