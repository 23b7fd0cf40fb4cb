"""What holds in every world, whatever the plant, the traffic, the laws and the faults; checked as a run goes and after.

conserved     the ledger's equation, at every probe and at the end
slots         the slots counted are those of active workers; no worker, slot or turn in a pool beyond what exists
memory        KV positions and bytes within what the workers and tiers have
idle          no turn in line beside an open worker that takes it
causal        no turn is filled before it is released, none ends before it is filled
little        mean number in the system = what entered x mean stay, as the turns themselves say
starved       with workers there, turns in flight come to an end
repeated      the same seed gives the same bytes
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from orchestrator.clock import TICK, Clock
from orchestrator.errors import SteadyflowError
from orchestrator.messages import DECODES, FILLS
from orchestrator.orchestrator import Orchestrator
from orchestrator.virtual_clock import run_virtual
from plant.cluster import Cluster
from scenarios.build import assemble
from scenarios.errors import UserError
from scenarios.run.execute import run
from scenarios.run.record import RunData
from scenarios.run.sink import MemorySink
from scenarios.schema.scenario import Scenario
from scenarios.schema.workloads import Synthetic

PROBES = 240
"""Instants at which a run is looked into, evenly spread."""
QUIET_RATIO = 0.4  # of the horizon: with workers there and turns in flight, some turn ends within such a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A law that a run broke: its name above, and what was seen."""

    law: str
    seen: str


class _Violated(Exception):
    def __init__(self, law: str, seen: str) -> None:
        super().__init__(seen)
        self.broken = Broken(law=law, seen=seen)


def broken_law(scenario: Scenario) -> Broken | None:
    """Run the first candidate twice, once with probes; return the first law that did not hold, or None."""
    try:
        first = _probed(scenario)
        second = run(scenario)
        _check_record(scenario, first, second.summary)
        if digest(first) != digest(second.data):
            raise _Violated("repeated", "a second run of the same seed differs")
    except _Violated as violated:
        return violated.broken
    except UserError as error:
        return Broken(law="refused", seen=str(error))
    except BaseExceptionGroup as group:
        inner = _innermost(group)
        return inner.broken if isinstance(inner, _Violated) else _crash(inner)
    except (
        SteadyflowError,
        ArithmeticError,
        LookupError,
        ValueError,
        TypeError,
        AttributeError,
        AssertionError,
    ) as error:
        return _crash(error)
    return None


def _crash(error: BaseException) -> Broken:
    return Broken(law="crash", seen=f"{type(error).__name__}: {error}")


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def digest(data: RunData) -> str:
    """Return a digest of a record's turns, signals and events."""
    digester = hashlib.sha256()
    for table in (data.turns, data.signals):
        for name in table.columns:
            digester.update(name.encode())
            digester.update("\n".join(map(repr, table[name].tolist())).encode())
    digester.update(repr(data.events).encode())
    return digester.hexdigest()


def _probed(scenario: Scenario) -> RunData:
    candidate, sink = scenario.candidates[0], MemorySink()

    async def main(clock: Any) -> None:  # Any: the virtual clock
        orchestrator, _ = assemble.orchestrator(scenario, candidate, scenario.seed, clock, sink)
        strict = scenario.dispatch.snapshot_s is None and candidate.routing.kind == "least_loaded"
        probe = Probe(orchestrator, strict, isinstance(scenario.workload, Synthetic))
        _every(clock, scenario.horizon_s / PROBES, probe.look)
        await orchestrator.run()
        probe.look(clock.now())
        probe.finish(scenario.horizon_s)

    run_virtual(main)
    return sink.data(candidate.name, scenario.title, scenario.question)


def _every(clock: Clock, period_s: float, look: Callable[[float], None]) -> None:
    def again(k: int) -> None:
        look(clock.now())
        clock.at((k + 1) * period_s, again, k + 1, TICK)

    clock.at(period_s, again, 1, TICK)


class Probe:
    """Looks into a run.

    `strict`: no line may stand beside an open worker (fresh views, a router that refuses none). `short`: turns are
    short, so that some end within `QUIET_RATIO` of the horizon.
    """

    def __init__(self, orchestrator: Orchestrator, strict: bool, short: bool) -> None:
        self._orchestrator, self._strict, self._short = orchestrator, strict, short
        plant = orchestrator.plant
        self._cluster = plant if isinstance(plant, Cluster) else None
        self._ended, self._progress_s = -1, 0.0

    def look(self, now_s: float) -> None:
        """Raise unless every law of the instant holds."""
        self._orchestrator.ledger.check()
        workers = list(self._orchestrator.registry.workers.values())
        active = [worker for worker in workers if worker.active]
        slots = sum(worker.slots or 0 for worker in active if worker.info.role in DECODES)
        if slots != self._orchestrator.slots():
            raise _Violated(
                "slots", f"{self._orchestrator.slots()} slots at {now_s:g} s, but active workers have {slots}"
            )
        for worker in workers:
            if worker.load_turns < 0 or worker.inside < 0 or worker.load_tokens < 0:
                raise _Violated("slots", f"worker {worker.id} holds {worker.load_turns} turns at {now_s:g} s")
            if self._strict and worker.active and worker.line and worker.inside == 0:
                raise _Violated("idle", f"{len(worker.line)} turns wait for an empty worker {worker.id} at {now_s:g} s")
        for pool in {pool for worker in active for pool in worker.pools}:
            waiting = sum(not waiter.done() for _, waiter in pool.line)  # type: ignore[attr-defined]  # the pool's own
            if self._strict and waiting and (free := pool.least_loaded()) is not None:  # type: ignore[attr-defined]
                raise _Violated("idle", f"{waiting} turns in line at {now_s:g} s beside open worker {free.id}")
        if self._cluster is not None:
            self._look_at(self._cluster, now_s)
        ended = self._orchestrator.ledger.retired + sum(self._orchestrator.ledger.failed.values())
        roles = {worker.info.role for worker in active}
        serves = bool(roles & set(FILLS)) and bool(roles & set(DECODES))
        if ended != self._ended or not serves or not self._orchestrator.ledger.in_flight.value:
            self._ended, self._progress_s = ended, now_s

    def _look_at(self, cluster: Cluster, now_s: float) -> None:
        if sum(pool.active + pool.pending for pool in cluster.pools.values()) > len(
            self._orchestrator.registry.workers
        ):
            raise _Violated("slots", f"the pools have more workers at {now_s:g} s than there are")
        for name, pool in cluster.pools.items():
            if pool.busy_slots < 0 or pool.queued_turns < 0 or pool.queued_tokens < 0 or pool.pending < 0:
                raise _Violated("slots", f"{name} counts less than nothing at {now_s:g} s: {pool.reading(now_s)}")
            if pool.spec.slots is not None and pool.busy_slots > pool.active * pool.spec.slots:
                raise _Violated("slots", f"{name}: {pool.busy_slots} turns on {pool.active} workers at {now_s:g} s")
            capacity = pool.spec.kv_capacity_tokens
            # A member that is alone may outgrow its reservation, never the memory; one position a turn of rounding.
            if capacity and pool.kv_used_tokens(now_s) > capacity * pool.active + pool.busy_slots:
                raise _Violated("memory", f"{name}: {pool.kv_used_tokens(now_s)} positions at {now_s:g} s")
        tiers = cluster.tiers
        for tier in () if tiers is None else cluster.read().tiers:
            if not -1.0 <= tier.used_bytes <= tier.capacity_bytes * (1 + 1e-9) + 1.0:
                raise _Violated("memory", f"tier {tier.name}: {tier.used_bytes} of {tier.capacity_bytes} bytes")

    def finish(self, horizon_s: float) -> None:
        """Raise where turns in flight made no progress although there were workers."""
        quiet_s = horizon_s - self._progress_s
        if self._short and quiet_s > QUIET_RATIO * horizon_s:
            raise _Violated(
                "starved", f"{self._orchestrator.ledger.equation()}: nothing ended for the last {quiet_s:g} s"
            )


def _check_record(scenario: Scenario, data: RunData, summary: Any) -> None:  # Any: the summary's JSON
    turns = data.turns
    at = {name: turns[name].to_numpy(dtype=float) for name in ("arrived_s", "released_s", "filled_s", "ended_s")}
    retired = (turns["outcome"] == "retired").to_numpy(dtype=bool)
    for before, after in (("arrived_s", "released_s"), ("released_s", "filled_s"), ("filled_s", "ended_s")):
        wrong = np.flatnonzero(retired & ~(at[before] <= at[after] + 1e-9))
        if len(wrong):
            raise _Violated("causal", f"turn {turns['turn_id'].iloc[wrong[0]]}: {after} before {before}")
    end_s = max(scenario.horizon_s, float(np.nanmax(at["ended_s"])) if np.isfinite(at["ended_s"]).any() else 0.0)
    stay_s = np.where(np.isfinite(at["ended_s"]), at["ended_s"], end_s) - at["arrived_s"]
    counts = summary["counts"]
    if counts["arrived"] != sum(counts[part] for part in ("retired", "rejected", "failed", "in_flight")):
        raise _Violated("conserved", f"{counts}")
    signals = data.signals
    if len(signals) and "backlog_turns_mean" in signals and summary.get("ended") == "horizon":
        starts = signals["t_s"].to_numpy(dtype=float)
        widths = np.diff(np.append(starts, max(end_s, starts[-1]) if scenario.drain_s else scenario.horizon_s))
        names = [f"{stage}_turns_mean" for stage in ("backlog", "in_flight")]
        level = sum(signals[name].to_numpy(dtype=float) for name in names)
        number, expected = float((level * widths).sum()), float(stay_s.sum())
        if not scenario.drain_s and not math.isclose(number, expected, rel_tol=1e-6, abs_tol=1e-3):
            raise _Violated("little", f"{number:.6g} turn-seconds in the signals, {expected:.6g} in the turns")
    share = signals["decode_occupancy_ratio_max"].to_numpy(dtype=float) if len(signals) else np.zeros(0)
    if (share[np.isfinite(share)] > 1.0).any():
        raise _Violated("slots", f"{np.nanmax(share):g} of the slots in use")
    used = (summary["flow"] or {}).get("decode_utilization_ratio")
    if used is not None and not -1e-9 <= used <= 1.0 + 1e-9:
        raise _Violated("slots", f"utilisation {used:g}")
