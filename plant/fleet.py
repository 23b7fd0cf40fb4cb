"""The workers of a cluster and their life cycle: start, reconfiguration, faults and recovery, with an epoch on each.

A worker's epoch grows whenever it loses what it held; results of an older epoch are dropped and counted.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from orchestrator.clock import Clock
from orchestrator.errors import Evicted, LoadFailed, SteadyflowError, WorkerLost
from orchestrator.messages import DECODES, FILLS, Role
from orchestrator.ports import PlantFact, WorkerInfo
from orchestrator.turn import ConfigurationName, WorkerId
from plant.cluster_events import ClusterEvents
from plant.cluster_spec import ConfigurationSpec, PoolSpec, RackSpec, each, lay_out
from plant.faults import SlowedTimes
from plant.links.shared_link import SharedLink
from plant.workers.aggregated import AggregatedBatch
from plant.workers.decode import ContinuousBatch
from plant.workers.fill import FillWorker
from plant.workers.job import Job
from plant.workers.load_draws import load_fails, load_span_s
from plant.workers.pool_counters import Pool
from plant.workers.recorded import RecordedWorker
from plant.workers.staging import EvictedKv, StagingBuffer

Engine = ContinuousBatch | FillWorker | RecordedWorker


def _largest(specs: Sequence[ConfigurationSpec], roles: tuple[Role, ...]) -> float:
    """Return the positions of the largest memory among workers of these roles; 0 where there is none."""
    capacities = [spec.kv_capacity_tokens for spec in specs if spec.role in roles]
    return max((math.inf if tokens is None else float(tokens) for tokens in capacities), default=0.0)


class WorkerNode:
    """One worker: its rack, its configuration, its engine (None: nothing is loaded) and its staging buffer."""

    __slots__ = (
        "decodes", "engine", "epoch", "failed", "fills", "id", "loading", "pool", "rack", "slowdown", "spec", "staging",
        "vacated",
    )  # fmt: skip

    def __init__(self, worker: WorkerId, rack: int, spec: ConfigurationSpec, pool: Pool) -> None:
        self.id, self.rack = worker, rack
        self.epoch = 0
        self.slowdown = 1.0
        self.failed = self.vacated = False  # vacated: it evicts every turn until it serves its next configuration
        self.engine: Engine | None = None
        self.loading: asyncio.Future[None] | None = None  # resolves when its next configuration serves
        self.staging: StagingBuffer | None = None
        self.spec, self.pool = spec, pool
        self.fills = self.decodes = False

    def withdraw(self, job: Job) -> None:
        """Remove a job that was withdrawn."""
        if self.engine is not None:
            self.engine.withdraw(job)

    def info(self) -> WorkerInfo:
        """Return what the orchestrator knows of this worker."""
        spec = self.spec
        slots = self.pool.slots if spec.role in DECODES else spec.slots
        return WorkerInfo(self.id, self.rack, spec.name, spec.role, slots, spec.staging_turns, self.epoch)


class Fleet:
    """All workers of a cluster.

    Raises
    ------
    ValueError
        Pools larger than the racks, or of a configuration that is not prepared.
    """

    def __init__(
        self,
        clock: Clock,
        racks: Sequence[RackSpec],
        configurations: Sequence[ConfigurationSpec],
        pools: Sequence[PoolSpec],
        events: ClusterEvents,
        load_stream: int = 0,
    ) -> None:
        self._clock, self._events, self._load_stream = clock, events, load_stream
        self.racks = each(racks)
        self.links = [SharedLink(clock, rack.uplink_bytes_per_s, rack.flow_bytes_per_s) for rack in self.racks]
        self.pools: dict[ConfigurationName, Pool] = {spec.name: Pool(spec) for spec in configurations}
        for spec in pools:
            if spec.configuration not in self.pools:
                raise ValueError(f"pool of {spec.configuration}: no such configuration; there are {list(self.pools)}")
        self.nodes: list[WorkerNode] = []
        self.fillable_tokens = self.decodable_tokens = 0.0
        self._facts: list[PlantFact] = []
        self._heard: Callable[[], None] = lambda: None
        rack_numbers = iter(lay_out(racks, pools))
        for spec in pools:
            pool = self.pools[spec.configuration]
            for _ in range(spec.workers):
                node = WorkerNode(WorkerId(len(self.nodes)), next(rack_numbers), pool.spec, pool)
                self.nodes.append(node)
                self._start_serving(node)

    def facts(self) -> Iterator[PlantFact]:
        """Return the facts since the last call, once each."""
        facts, self._facts = self._facts, []
        return iter(facts)

    def listen(self, heard: Callable[[], None]) -> None:
        """Call `heard` after each later fact."""
        self._heard = heard

    def report(self, kind: Any, node: WorkerNode | None, detail: str) -> None:  # Any: a literal type of PlantFact
        """Add a fact, and have it heard at this instant."""
        info = node.info() if node is not None else None
        self._facts.append(PlantFact(kind, self._clock.now(), info, detail))
        self._heard()

    def _update_largest_contexts(self) -> None:
        """Update the largest context that a worker could fill, and could decode (math.inf: not modelled).

        Taken over the workers that are present; where there is none, over the prepared configurations, as a turn waits
        for such a worker.
        """
        prepared = [pool.spec for pool in self.pools.values()]
        present = [pool.spec for pool in self.pools.values() if pool.active or pool.pending]
        self.fillable_tokens = _largest(present, FILLS) or _largest(prepared, FILLS)
        self.decodable_tokens = _largest(present, DECODES) or _largest(prepared, DECODES)

    # ------------------------------------------------ reconfiguration
    def reconfigure(self, node: WorkerNode, to: ConfigurationName) -> asyncio.Future[None]:
        """Load and warm a prepared configuration on a drained worker. Cancelling the Future stops nothing."""
        future = self._clock.future()
        pool = self.pools[to]
        if node.engine is None and not node.failed:
            raise SteadyflowError(f"worker {node.id} is not serving, so it cannot be reconfigured")
        if node.engine is not None and (node.engine.load() or (node.staging is not None and len(node.staging))):
            raise SteadyflowError(f"worker {node.id} is not drained: {node.engine.load()} turns are on it")
        loaded_weights = node.spec.weights
        self._stop_serving(node)
        node.pool, node.spec, node.failed = pool, pool.spec, False
        pool.pending += 1
        self._update_largest_contexts()
        span_s = load_span_s(pool.spec, loaded_weights, self._load_stream, node.id, node.epoch)
        if pool.spec.fails_at_ratio < 1.0 and load_fails(pool.spec, self._load_stream, node.id, node.epoch):
            span_s *= pool.spec.fails_at_ratio
        node.loading = future
        self._clock.at(self._clock.now() + span_s, self._ready, (node, node.epoch, future))
        return future

    def _ready(self, load: tuple[WorkerNode, int, asyncio.Future[None]]) -> None:
        node, epoch, future = load
        if epoch != node.epoch:
            self._events.late += 1
            return
        node.pool.pending -= 1
        node.loading = None
        if load_fails(node.spec, self._load_stream, node.id, epoch):
            node.failed = True
            self._update_largest_contexts()
            if not future.done():
                future.set_exception(LoadFailed(f"worker {node.id} did not come up as {node.spec.name}"))
            return
        self._start_serving(node)
        if not future.done():
            future.set_result(None)

    def _start_serving(self, node: WorkerNode) -> None:
        spec, pool = node.spec, node.pool
        node.fills, node.decodes = spec.role in FILLS, spec.role in DECODES
        node.staging, node.vacated = None, False
        if spec.times is None:
            node.engine = RecordedWorker(self._clock, spec, pool, self._events)
        elif spec.role is Role.AGGREGATED:
            node.engine = AggregatedBatch(self._clock, spec, pool, self._events)
            node.staging = StagingBuffer(self._events.pending_work)
        elif spec.role is Role.DECODE:
            node.engine = ContinuousBatch(self._clock, spec, pool, self._events)
            node.staging = StagingBuffer(self._events.pending_work)
        else:
            node.engine = FillWorker(self._clock, spec, pool, self._events)
        if node.slowdown != 1.0:
            self._retime(node)
        pool.add_workers(1, self._clock.now())
        self._update_largest_contexts()
        self.report("joined", node, spec.name)

    def _stop_serving(self, node: WorkerNode) -> list[Job]:
        """End the worker's epoch; return the jobs that it had."""
        jobs: list[Job] = []
        if node.engine is not None:
            jobs = node.engine.close()
            node.pool.add_workers(-1, self._clock.now())
        elif not node.failed:
            node.pool.pending -= 1
        node.engine = None
        node.fills = node.decodes = False
        node.epoch += 1
        self._update_largest_contexts()
        return jobs

    def serve_queues(self, raised: Sequence[ConfigurationName]) -> None:
        """Let in who waits at the workers of these configurations, whose batch caps have been raised."""
        for node in self.nodes if raised else ():
            if node.engine is not None and node.spec.name in raised:
                node.engine.serve_queue()

    def vacate(self, node: WorkerNode) -> None:
        """Evict every turn at once, without its state, and refuse later ones."""
        if node.engine is None:
            return
        jobs, kv_transfers = node.engine.close(), node.staging.close() if node.staging is not None else []
        node.staging, node.vacated = None, True
        node.fills = node.decodes = False
        for job in jobs:
            self._events.evicted(job, keep_kv=False)
        for kv_transfer in kv_transfers:
            kv_transfer.fail(Evicted())

    def path(self, source: WorkerId | None, node: WorkerNode) -> list[SharedLink]:
        """Return the uplinks that KV state crosses to a worker; none within a rack. Source None: shared storage."""
        if source is None:
            return [self.links[node.rack]]
        rack = self.nodes[source].rack
        return [] if rack == node.rack else [self.links[rack], self.links[node.rack]]

    def is_lost(self, kv: EvictedKv) -> bool:
        """Return whether the worker with the only copy of an evicted turn's state has been lost since."""
        return kv.worker is None or self.nodes[kv.worker].epoch != kv.epoch

    # ------------------------------------------------ faults
    def lose(self, node: WorkerNode) -> None:
        """Lose a worker and everything on it, or what it was loading."""
        epoch, loading = node.epoch, node.loading
        jobs = self._stop_serving(node)
        node.loading = None
        self.report("lost", node, f"epoch {epoch}: {len(jobs)} turns")
        self._events.lost(node, jobs, node.staging.close() if node.staging is not None else [])
        if loading is not None and not loading.done():
            loading.set_exception(WorkerLost(f"worker {node.id} was lost as it loaded {node.spec.name}"))

    def restore(self, node: WorkerNode) -> None:
        """Bring a lost worker back, empty."""
        if node.engine is None:
            self._start_serving(node)

    def slow(self, node: WorkerNode, factor: float) -> None:
        """Make every step of a worker take `factor` times as long."""
        node.slowdown = factor
        self._retime(node)
        self.report("slowed", node, f"x{factor:g}")

    def _retime(self, node: WorkerNode) -> None:
        times = node.spec.times
        if node.engine is not None and times is not None:
            node.engine.retime(times if node.slowdown == 1.0 else SlowedTimes(times, node.slowdown))
