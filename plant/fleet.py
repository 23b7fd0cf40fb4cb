"""The workers of a cluster through their lives: built, reconfigured, slowed, lost and back, with an epoch on each.

A worker's epoch grows whenever what it held is gone; what was meant for an older epoch is dropped and counted.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from orchestrator.clock import Clock
from orchestrator.errors import Evicted, LoadFailed, SteadyflowError
from orchestrator.messages import DECODES, FILLS, Role
from orchestrator.ports import PlantFact, Ready, WorkerInfo
from orchestrator.turn import ConfigurationName, WorkerId
from plant.cluster_events import ClusterEvents
from plant.cluster_spec import ConfigurationSpec, PoolSpec, RackSpec, each, lay_out
from plant.faults import FaultSpec, SlowedTimes
from plant.links.shared_link import Link, SharedLink
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
    """One worker: its rack, what it serves now, its engine (None: none is loaded) and its dock."""

    __slots__ = (
        "decodes", "dock", "engine", "epoch", "factor", "failed", "fills", "id", "pool", "rack", "spec", "vacated",
    )  # fmt: skip

    def __init__(self, worker: WorkerId, rack: int, spec: ConfigurationSpec, pool: Pool) -> None:
        self.id, self.rack = worker, rack
        self.epoch = 0
        self.factor = 1.0
        self.failed = self.vacated = False  # vacated: it sends everything away until it serves its next configuration
        self.engine: Engine | None = None
        self.dock: StagingBuffer | None = None
        self.spec, self.pool = spec, pool
        self.fills = self.decodes = False

    def withdraw(self, job: Job) -> None:
        """Forget a job whose promise was cancelled."""
        if self.engine is not None:
            self.engine.withdraw(job)

    def info(self) -> WorkerInfo:
        """Return what the orchestrator knows of this worker."""
        spec = self.spec
        slots = self.pool.slots if spec.role in DECODES else spec.slots
        return WorkerInfo(self.id, self.rack, spec.name, spec.role, slots, spec.staging_turns, self.epoch)


class Fleet:
    """All workers.

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
        desk: ClusterEvents,
        load_stream: int = 0,
    ) -> None:
        self._clock, self._desk, self._load_stream = clock, desk, load_stream
        self.racks = each(racks)
        self.links = [SharedLink(clock, rack.uplink_bytes_per_s, rack.flow_bytes_per_s) for rack in self.racks]
        self._faults: list[FaultSpec] = []  # those that last
        self.storage_links: dict[str, Link] = {}
        self._storage_rates: dict[str, float] = {}
        self._links_changed: Callable[[], None] = lambda: None
        self.pools: dict[ConfigurationName, Pool] = {spec.name: Pool(spec) for spec in configurations}
        for asked in pools:
            if asked.configuration not in self.pools:
                raise ValueError(f"pool of {asked.configuration}: no such configuration; there are {list(self.pools)}")
        self.sites: list[WorkerNode] = []
        self.fillable_tokens = self.decodable_tokens = 0.0
        self._facts: list[PlantFact] = []
        homes = iter(lay_out(racks, pools))
        for wanted in pools:
            pool = self.pools[wanted.configuration]
            for _ in range(wanted.workers):
                site = WorkerNode(WorkerId(len(self.sites)), next(homes), pool.spec, pool)
                self.sites.append(site)
                self._open(site)

    def facts(self) -> Iterator[PlantFact]:
        """Return the facts since the last call, once each."""
        facts, self._facts = self._facts, []
        return iter(facts)

    def report(self, kind: Any, site: WorkerNode | None, detail: str) -> None:  # Any: the fact's own literal
        """Note a fact."""
        info = site.info() if site is not None else None
        self._facts.append(PlantFact(kind, self._clock.now(), info, detail))

    def _measure(self) -> None:
        """Note the largest context that a worker could fill, and could decode (math.inf: not modelled).

        Of those that are present; where none is, of those that may come back: a turn waits for them.
        """
        prepared = [pool.spec for pool in self.pools.values()]
        present = [pool.spec for pool in self.pools.values() if pool.active or pool.pending]
        self.fillable_tokens = _largest(present, FILLS) or _largest(prepared, FILLS)
        self.decodable_tokens = _largest(present, DECODES) or _largest(prepared, DECODES)

    # ------------------------------------------------ reconfiguration
    def reconfigure(self, site: WorkerNode, to: ConfigurationName) -> asyncio.Future[Ready]:
        """Load and warm a prepared configuration on a drained worker. Cancelling the Future stops nothing."""
        future = self._clock.future()
        pool = self.pools[to]
        if site.engine is None and not site.failed:
            raise SteadyflowError(f"worker {site.id} is not serving, so it cannot be reconfigured")
        if site.engine is not None and (site.engine.load() or (site.dock is not None and len(site.dock))):
            raise SteadyflowError(f"worker {site.id} is not drained: {site.engine.load()} turns are on it")
        held = site.spec.weights
        self._shut(site)
        site.pool, site.spec, site.failed = pool, pool.spec, False
        pool.pending += 1
        self._measure()
        span_s = load_span_s(pool.spec, held, self._load_stream, site.id, site.epoch)
        self._clock.at(self._clock.now() + span_s, self._ready, (site, site.epoch, future))
        return future

    def _ready(self, load: tuple[WorkerNode, int, asyncio.Future[Ready]]) -> None:
        site, epoch, future = load
        if epoch != site.epoch:
            self._desk.late += 1
            return
        site.pool.pending -= 1
        if load_fails(site.spec, self._load_stream, site.id, epoch):
            site.failed = True
            self._measure()
            if not future.done():
                future.set_exception(LoadFailed(f"worker {site.id} did not come up as {site.spec.name}"))
            return
        self._open(site)
        if not future.done():
            future.set_result(Ready(site.info()))

    def _open(self, site: WorkerNode) -> None:
        spec, pool = site.spec, site.pool
        site.fills, site.decodes = spec.role in FILLS, spec.role in DECODES
        site.dock, site.vacated = None, False
        if spec.times is None:
            site.engine = RecordedWorker(self._clock, spec, pool, self._desk)
        elif spec.role is Role.AGGREGATED:
            site.engine = AggregatedBatch(self._clock, spec, pool, self._desk)
            site.dock = StagingBuffer(self._desk.promises)
        elif spec.role is Role.DECODE:
            site.engine = ContinuousBatch(self._clock, spec, pool, self._desk)
            site.dock = StagingBuffer(self._desk.promises)
        else:
            site.engine = FillWorker(self._clock, spec, pool, self._desk)
        if site.factor != 1.0:
            self._retime(site)
        pool.active += 1
        self._measure()
        self.report("joined", site, spec.name)

    def _shut(self, site: WorkerNode) -> list[Job]:
        """End an epoch: nothing that was here counts any more."""
        jobs: list[Job] = []
        if site.engine is not None:
            jobs = site.engine.close()
            site.pool.active -= 1
        elif not site.failed:
            site.pool.pending -= 1
        site.engine = None
        site.fills = site.decodes = False
        site.epoch += 1
        self._measure()
        return jobs

    def vacate(self, site: WorkerNode) -> None:
        """Send every turn away at once, without its state, and who comes later too."""
        if site.engine is None:
            return
        jobs, shipments = site.engine.close(), site.dock.close() if site.dock is not None else []
        site.dock, site.vacated = None, True
        site.fills = site.decodes = False
        for job in jobs:
            self._desk.evicted(job, keep_kv=False)
        for shipment in shipments:
            shipment.fail(Evicted())

    def path(self, source: WorkerId | None, site: WorkerNode) -> list[SharedLink]:
        """Return the uplinks that state crosses to a worker; none within a rack. Source None: shared storage."""
        if source is None:
            return [self.links[site.rack]]
        rack = self.sites[source].rack
        return [] if rack == site.rack else [self.links[rack], self.links[site.rack]]

    def gone(self, kv: EvictedKv) -> bool:
        """Tell whether the worker that holds a turn's only state has been lost since."""
        return kv.worker is None or self.sites[kv.worker].epoch != kv.epoch

    # ------------------------------------------------ faults
    def know_storage(self, links: Mapping[str, Link], changed: Callable[[], None]) -> None:
        """Learn the links of storage servers, which faults may name, and whom to tell when any link changes."""
        self.storage_links = dict(links)
        self._storage_rates = {name: link.rate_bytes_per_s for name, link in links.items()}
        self._links_changed = changed

    def schedule(self, faults: Sequence[FaultSpec]) -> None:
        """Put the faults on the clock.

        Raises
        ------
        ValueError
            A fault of a worker or rack that does not exist.
        """
        for fault in faults:
            if fault.worker is not None and not 0 <= fault.worker < len(self.sites):
                raise ValueError(f"fault at {fault.at_s:g} s: worker {fault.worker} of {len(self.sites)}")
            if fault.link is not None and fault.link not in self.storage_links:
                known = ", ".join(self.storage_links) or "none that takes time"
                raise ValueError(f"fault at {fault.at_s:g} s: no storage link {fault.link}; there are {known}")
            if fault.rack is not None and not 0 <= fault.rack < len(self.racks):
                raise ValueError(f"fault at {fault.at_s:g} s: rack {fault.rack} of {len(self.racks)}")
            self._clock.at(fault.at_s, self._strike, fault)
            if fault.until_s is not None:
                self._clock.at(fault.until_s, self._heal, fault)

    def _strike(self, fault: FaultSpec) -> None:
        if fault.kind == "lost" and fault.worker is not None and not self._alike(fault):
            self._lose(self.sites[fault.worker])
        self._faults.append(fault)
        self._slow(fault)

    def _heal(self, fault: FaultSpec) -> None:
        self._faults.remove(fault)
        self._slow(fault)
        if fault.kind == "lost" and fault.worker is not None and not self._alike(fault):
            site = self.sites[fault.worker]
            if site.engine is None:
                self._open(site)

    def _alike(self, fault: FaultSpec) -> list[FaultSpec]:
        """Return the faults of one kind that the same thing suffers now: it has recovered when the last has ended."""
        return [other for other in self._faults if other.of == fault.of]

    def _slow(self, fault: FaultSpec) -> None:
        """Let a link or a worker go as slowly as the worst of its faults makes it."""
        factor = max((other.factor for other in self._alike(fault)), default=1.0)
        if fault.kind == "link_down":
            self._set_link(fault, factor)
        elif fault.kind == "slowed" and fault.worker is not None:
            site = self.sites[fault.worker]
            site.factor = factor
            self._retime(site)
            self.report("slowed", site, f"x{factor:g}")

    def _set_link(self, fault: FaultSpec, factor: float) -> None:
        if fault.rack is not None:
            self.links[fault.rack].set_rate(self.racks[fault.rack].uplink_bytes_per_s / factor)
            name = f"rack {fault.rack}"
        else:
            name = str(fault.link)
            self.storage_links[name].set_rate(self._storage_rates[name] / factor)
        self._links_changed()
        self.report("link_up" if factor == 1.0 else "link_down", None, name)

    def _lose(self, site: WorkerNode) -> None:
        info_epoch = site.epoch
        jobs = self._shut(site)
        self.report("lost", site, f"epoch {info_epoch}: {len(jobs)} turns")
        self._desk.lost(site, jobs, site.dock.close() if site.dock is not None else [])

    def _retime(self, site: WorkerNode) -> None:
        times = site.spec.times
        if site.engine is not None and times is not None:
            site.engine.retime(times if site.factor == 1.0 else SlowedTimes(times, site.factor))
