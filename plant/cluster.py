"""The cluster plant: racks of fill, decode or aggregated workers behind the `Plant` port.

Plain functions on the clock's heap. Calls make jobs with a promise on them; workers (`fill`, `decode`, `aggregated`,
`recorded`) tell the cluster of ends; no call and no reading does work for every worker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial
from math import fsum
from typing import Any

from orchestrator.clock import Clock
from orchestrator.errors import ContextOverflow, Evicted, SteadyflowError, WorkerLost
from orchestrator.messages import BatchCommand, PlantReading, RetentionCommand, Role
from orchestrator.ports import Applied, Filled, PlantFact, Ready, Retired, Staged
from orchestrator.turn import EMPTY_CHAIN, ConfigurationName, KvChain, KvRef, TurnId, TurnView, WorkerId, new
from plant.cluster_events import ClusterEvents
from plant.cluster_spec import ConfigurationSpec, PoolSpec, RackSpec
from plant.faults import FaultSpec
from plant.fleet import Fleet, WorkerNode
from plant.hidden_turns import HiddenTurns
from plant.kv.capacity_checks import check_fits, hbm, prefill_s
from plant.kv.flat_store import FlatStore, KvStore
from plant.kv.spec import KvSpec
from plant.kv.tiered import TieredStore
from plant.links.transfer import Transfer
from plant.workers.aggregated import AggregatedBatch
from plant.workers.fill import chunk_spans_s
from plant.workers.job import FETCHING, OVER, WAITING, Job
from plant.workers.pool_counters import set_caps
from plant.workers.staging import EvictedKv, left_kv


class Cluster:
    """A cluster of workers.

    Parameters
    ----------
    clock : Clock
    truths : HiddenTurns
        Hidden halves of the turns; the workload forgets each when its turn has ended.
    racks, configurations, pools : sequences of specs
    faults : sequence of FaultSpec
    kv : KvSpec or None
        The tiers in which contexts are kept between turns; None: a flat store without limits.
    load_stream : int
        Key of the random stream of loading times and failures.

    Raises
    ------
    ValueError
        The pools do not fit the racks, or name a configuration that is not prepared; a fault of a thing that is not.
    """

    def __init__(
        self,
        clock: Clock,
        truths: HiddenTurns,
        *,
        racks: Sequence[RackSpec],
        configurations: Sequence[ConfigurationSpec],
        pools: Sequence[PoolSpec],
        faults: Sequence[FaultSpec] = (),
        kv: KvSpec | None = None,
        load_stream: int = 0,
    ) -> None:
        self._clock, self._loop, self._truths = clock, clock.loop, truths
        self._store: KvStore = FlatStore()
        self._desk = desk = ClusterEvents(truths, self._store, self._largest)
        self._promises, self._progress = desk.promises, desk.progress
        if kv is not None:
            racks = [rack.at_efficiency(kv.efficiency_ratio, kv.per_object_s) for rack in racks]
        self._fleet = Fleet(clock, racks, configurations, pools, desk, load_stream)
        self._sites, self.pools = self._fleet.sites, self._fleet.pools
        self.tiers: TieredStore | None = None
        if kv is not None:
            check_fits(kv, configurations)
            rebuild_s = partial(prefill_s, list(self.pools.values()))
            self.tiers = tiers = TieredStore(clock, kv, self._fleet.links, self._rack, rebuild_s)
            self._store = tiers
            desk.use(tiers, clock.now)
            if tiers.traffic is not None:
                self._fleet.know_storage(tiers.traffic.named(), tiers.traffic.links_changed)
        self._fleet.schedule(faults)
        self._moved_bytes = 0.0
        self._swapping: dict[TurnId, Job] = {}

    # ------------------------------------------------ the three verbs of a turn
    def fill(self, worker: WorkerId, turn: TurnView, prefix: KvRef) -> asyncio.Future[Filled]:
        """Prefill or midfill the turn; what the store holds of its context is not computed again."""
        site = self._sites[worker]
        engine = site.engine
        if engine is None or not site.fills:
            return self._refused(site, "fill")
        turn_id, _, _, _, _, _, prompt_tokens, chain = turn
        generated = self._progress.pop(turn_id, 0) if self._progress and site.decodes else 0
        context = prompt_tokens + generated
        spec = site.spec
        if spec.kv_capacity_tokens is not None and context + site.decodes > spec.kv_capacity_tokens:
            return self._failed(ContextOverflow(f"{context} tokens do not fit worker {worker}"))
        cached = self.cached_tokens(turn) if chain is not EMPTY_CHAIN else 0
        truth, headroom = self._truths[turn_id], spec.headroom_tokens
        job = Job(turn, truth, site, True, context - cached, cached, generated, headroom)
        work = job.promise(self._loop, self._promises)
        if self.tiers is not None:
            job.fetch = self._store.fetch(turn, cached, worker, self._fetched, (job, site.epoch))
        if job.fetch is None:
            engine.enter(job)
        else:
            job.state = FETCHING
        return work

    def stage(self, worker: WorkerId, kv: KvRef) -> asyncio.Future[Staged]:
        """Bring the KV state to the worker over the uplinks of both racks; at once where it already lies."""
        site = self._sites[worker]
        dock = site.dock
        if site.engine is None:
            return self._refused(site, "stage")
        here = new(KvRef, (kv.chain, kv.tokens, worker))
        if type(kv) is EvictedKv:  # it is nowhere else: it is there to be sent as long as its worker is
            if self._fleet.gone(kv):
                return self._failed(WorkerLost(f"worker {kv.worker} was lost, and the state on it"))
            here = left_kv(here, site.epoch)
        size_bytes = kv.tokens * site.spec.kv_bytes_per_token + site.spec.kv_bytes_per_turn
        if dock is None or kv.worker == worker or not kv.tokens or size_bytes <= 0.0:
            future = self._clock.future()
            future.set_result(new(Staged, (here, 0.0)))
            return future
        work: asyncio.Future[Staged] = asyncio.Future(loop=self._loop)
        shipment = dock.expect(work, Staged(here, size_bytes))
        rack, path = self._fleet.racks[site.rack], self._fleet.path(kv.worker, site)
        alone_s = size_bytes / rack.flow_bytes_per_s
        self._moved_bytes += size_bytes
        if type(kv) is EvictedKv:
            shipment.gone = partial(self._fleet.gone, kv)
        shipment.transfer = Transfer(self._clock, path, size_bytes, rack.latency_s, alone_s, shipment.arrived)
        return work

    def decode(self, worker: WorkerId, turn: TurnView, kv: Staged) -> asyncio.Future[Retired]:
        """Join the batch and run to the last token, which the fill has already begun with the first."""
        site = self._sites[worker]
        engine = site.engine
        if engine is None or not site.decodes:
            return self._refused(site, "decode")
        if self.tiers is not None:
            self._stop_idling(self.tiers, turn)
        if isinstance(engine, AggregatedBatch):
            held = engine.held(turn.turn_id)
            if held is not None:
                work = held.promise(self._loop, self._promises)
                if held.steps > 0:
                    engine.claim(held)
                else:
                    held.joined_s = self._clock.now()
                    engine.release(held)
                    self._desk.retired(held)
                return work
        generated = self._progress.pop(turn.turn_id, 0) if self._progress else 0
        context = turn.prompt_tokens + generated
        spec = site.spec
        if spec.kv_capacity_tokens is not None and context >= spec.kv_capacity_tokens:
            return self._failed(ContextOverflow(f"{context} tokens do not fit worker {worker}"))
        missing = max(0, context - self._lying_tokens(spec, turn, kv.kv))
        swapped = generated > 0 and missing > 0 and spec.preemption == "swap"
        if spec.times is None or swapped:
            missing = 0
        job = Job(turn, self._truths[turn.turn_id], site, False, missing, 0, generated, spec.headroom_tokens)
        if job.steps <= 0 and spec.times is not None:
            work = job.promise(self._loop, self._promises)
            job.joined_s, job.state = self._clock.now(), OVER
            self._desk.retired(job)
            return work
        if swapped:
            return self._fetch(site, job)
        work = job.promise(self._loop, self._promises)
        engine.enter(job)
        return work

    def withdraw(self, promise: asyncio.Future[Any]) -> bool:
        """Take the work of a promise off its worker now, and cancel the promise; tell whether it was under way."""
        return self._promises.withdraw(promise)

    # ------------------------------------------------ questions
    def room(self, worker: WorkerId, turn: TurnView) -> bool:
        """Tell whether the worker's memory would take the turn now, beside what it holds."""
        site = self._sites[worker]
        engine = site.engine
        if engine is None:
            return False
        tokens = turn.prompt_tokens
        if self._progress:
            tokens += self._progress.get(turn.turn_id, 0)
        return engine.room(tokens)

    def fits(self, turn: TurnView) -> bool:
        """Tell whether the present workers could ever fill and decode the turn's context."""
        tokens, fleet = turn.prompt_tokens, self._fleet
        return tokens < fleet.decodable_tokens and tokens <= fleet.fillable_tokens

    def cached_tokens(self, turn: TurnView) -> int:
        """Return the stored tokens of the turn's context; at least one token of a prompt is always computed."""
        if not turn.context.runs:
            return 0
        return min(self._store.match(turn.context, turn.session_id), turn.prompt_tokens - 1)

    def holding(self, prefix: KvChain) -> Sequence[tuple[WorkerId, int]]:
        """Return the workers that last decoded and last filled this context, and the tokens kept of it."""
        tokens = self._store.match(prefix)
        return tuple((worker, tokens) for worker in self._store.near(prefix)) if tokens else ()

    def cost_s(self, worker: WorkerId, turn: TurnView) -> float | None:
        """Estimate the seconds of the turn's own fill there: what is missing, in chunks."""
        site = self._sites[worker]
        if site.spec.times is None:
            return None
        cached = self.cached_tokens(turn)
        fill_s = fsum(chunk_spans_s(site.spec.times, turn.prompt_tokens - cached, cached, site.pool.chunk_cap))
        return fill_s + self._store.fetch_s(turn, cached, worker)

    def read(self) -> PlantReading:
        """Return the counters as they stand; O(pools)."""
        now = self._clock.now()
        pools = {name: pool.reading(now) for name, pool in self.pools.items()}
        tiers = self.tiers
        if tiers is None:
            return new(PlantReading, (now, pools, (), ()))
        return new(PlantReading, (now, pools, tiers.recent(lambda: hbm(pools, tiers.spec)), tiers.reuse()))

    def totals(self) -> dict[str, float]:
        """Return sums since the start: prompt tokens, those found stored, bytes staged, late facts, overflows."""
        desk = self._desk
        return {
            "prompt_tokens": desk.prompt_tokens,
            "hit_tokens": desk.hit_tokens,
            "staged_bytes": self._moved_bytes,
            "late_facts": desk.late,
            "overflows": desk.overflows,
        }

    def facts(self) -> Iterator[PlantFact]:
        """Yield, once each, the facts since the last call; the first call yields every worker as joined."""
        return self._fleet.facts()

    # ------------------------------------------------ commands
    def reconfigure(self, worker: WorkerId, to: ConfigurationName) -> asyncio.Future[Ready]:
        """Load and warm the configuration on a drained worker."""
        return self._fleet.reconfigure(self._sites[worker], to)

    def evict(self, worker: WorkerId, turn_id: TurnId | None) -> None:
        """Send a turn away with its state, or all turns without."""
        site = self._sites[worker]
        swapping = None if turn_id is None else self._swapping.get(turn_id)
        if turn_id is None:
            self._fleet.vacate(site)
        elif swapping is not None and swapping.state == FETCHING:
            swapping.state = OVER
            self._desk.evicted(swapping, keep_kv=False)
        elif site.engine is not None:
            site.engine.evict(turn_id)

    def apply(self, command: BatchCommand | RetentionCommand) -> Applied:
        """Set the caps of a configuration's workers, or of all; each worker takes them up at its next change."""
        if isinstance(command, BatchCommand):
            named = command.configuration
            return set_caps(self.pools.values() if named is None else [self.pools[named]], command)
        if self.tiers is None:
            return Applied(RetentionCommand(), True, {})  # a store without limits keeps everything
        applied = self.tiers.apply(command)
        return Applied(applied, applied != command, {})

    # ------------------------------------------------ inside
    def _fetch(self, site: WorkerNode, job: Job) -> asyncio.Future[Any]:
        """Bring swapped-out state back from host memory before the job enters its worker."""
        job.state = FETCHING
        self._swapping[job.turn_id] = job
        work = job.promise(self._loop, self._promises)
        lost = job.context_tokens if site.spec.role is Role.AGGREGATED else job.generated_tokens
        span_s = lost * site.spec.kv_bytes_per_token / site.spec.swap_bytes_per_s
        self._clock.at(self._clock.now() + span_s, self._fetched, (job, site.epoch))
        return work

    def _fetched(self, arrival: tuple[Job, int]) -> None:
        job, epoch = arrival
        self._swapping.pop(job.turn_id, None)
        site = self._sites[job.place.id]
        if job.state != FETCHING:
            return
        if site.engine is None or site.epoch != epoch:
            job.state = OVER
            self._desk.lost(site, [job], [])
            return
        if site.vacated:
            job.state = OVER
            self._desk.evicted(job, keep_kv=False)
            return
        job.state = WAITING
        site.engine.enter(job)

    def _lying_tokens(self, spec: ConfigurationSpec, turn: TurnView, kv: KvRef) -> int:
        """Return the positions whose state a turn that comes to decode finds at the worker."""
        if type(kv) is EvictedKv:
            return kv.tokens
        return turn.prompt_tokens if spec.role is Role.DECODE else max(kv.tokens, self.cached_tokens(turn))

    def _largest(self) -> float:
        return self._fleet.decodable_tokens

    def _rack(self, worker: WorkerId) -> int:
        return self._sites[worker].rack

    def _stop_idling(self, tiers: TieredStore, turn: TurnView) -> None:
        """From its fill to its decode a turn's state lay in accelerator memory without work (E20)."""
        since_s = self._desk.lying.pop(turn.turn_id, None) if self._desk.lying is not None else None
        if since_s is not None:
            size_bytes = turn.prompt_tokens * tiers.spec.bytes_per_token
            tiers.ledger.idle_hbm_byte_s += size_bytes * (self._clock.now() - since_s)

    def _failed(self, error: Exception) -> asyncio.Future[Any]:
        future = self._clock.future()
        future.set_exception(error)
        return future

    def _refused(self, site: WorkerNode, verb: str) -> asyncio.Future[Any]:
        if site.vacated:
            return self._failed(Evicted())
        if site.engine is None:
            return self._failed(WorkerLost(f"worker {site.id} serves nothing now"))
        raise SteadyflowError(f"worker {site.id} is of role {site.spec.role}: it cannot {verb}")
