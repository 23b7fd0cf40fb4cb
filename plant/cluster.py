"""The cluster plant: racks of fill, decode or aggregated workers behind the `Plant` port.

Plain functions on the clock's heap. Each call makes a job and returns a Future of its result; workers (`fill`,
`decode`, `aggregated`, `recorded`) report to `cluster_events`, which completes the Futures. No call and no reading
does work for every worker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import fsum
from typing import Any

from orchestrator.clock import Clock
from orchestrator.errors import ContextOverflow, Evicted, SteadyflowError, WorkerLost
from orchestrator.messages import BatchCommand, PlantReading, RetentionCommand, Role
from orchestrator.ports import Applied, Filled, PlantFact, Retired, Staged
from orchestrator.turn import EMPTY_CHAIN, ConfigurationName, KvChain, KvRef, TurnId, TurnView, WorkerId, new
from plant.cluster_events import ClusterEvents
from plant.cluster_spec import ConfigurationSpec, PoolSpec, RackSpec
from plant.fault_schedule import FaultSchedule
from plant.faults import FaultSpec, PoisonSpec
from plant.fleet import Fleet, WorkerNode
from plant.hidden_turns import HiddenTurns
from plant.job_arrivals import JobArrivals
from plant.kv.capacity_checks import check_fits, hbm, prefill_s
from plant.kv.flat_store import FlatStore, KvStore
from plant.kv.spec import KvSpec
from plant.kv.tiered import TieredStore
from plant.kv_staging import KvStaging
from plant.pending_work import failed_future
from plant.poison import Poison
from plant.workers.aggregated import AggregatedBatch
from plant.workers.decode import ContinuousBatch
from plant.workers.fill import chunk_spans_s
from plant.workers.job import FETCHING, OVER, Job
from plant.workers.pool_counters import set_caps
from plant.workers.staging import EvictedKv


class Cluster:
    """A cluster of workers.

    Parameters
    ----------
    clock : Clock
    hidden_turns : HiddenTurns
        Output lengths and the like; the workload removes each when its turn has ended.
    racks, configurations, pools, faults, poisons : sequences of specs
    kv : KvSpec or None
        The tiers in which contexts are kept between turns; None: a flat store without limits.
    load_stream : int
        Key of the random stream of loading times and failures.

    Raises
    ------
    ValueError
        The pools do not fit the racks, or name a configuration that is not prepared; a fault names no existing thing.
    """

    def __init__(
        self,
        clock: Clock,
        hidden_turns: HiddenTurns,
        *,
        racks: Sequence[RackSpec],
        configurations: Sequence[ConfigurationSpec],
        pools: Sequence[PoolSpec],
        faults: Sequence[FaultSpec] = (),
        poisons: Sequence[PoisonSpec] = (),
        kv: KvSpec | None = None,
        load_stream: int = 0,
    ) -> None:
        self._clock, self._loop, self._hidden_turns = clock, clock.loop, hidden_turns
        self._store: KvStore = FlatStore()
        self._events = events = ClusterEvents(hidden_turns, self._store, self._decodable_tokens)
        self._pending_work, self._progress = events.pending_work, events.progress
        if kv is not None:
            racks = [rack.at_efficiency(kv.efficiency_ratio, kv.per_object_s) for rack in racks]
        self._fleet = Fleet(clock, racks, configurations, pools, events, load_stream)
        schedule = FaultSchedule(clock, self._fleet)
        self._nodes, self.pools = self._fleet.nodes, self._fleet.pools
        self.tiers: TieredStore | None = None
        if kv is not None:
            check_fits(kv, configurations)
            rebuild_s = partial(prefill_s, list(self.pools.values()))
            self.tiers = tiers = TieredStore(clock, kv, self._fleet.links, self._rack, rebuild_s)
            self._store = tiers
            events.use_store(tiers, clock.now)
            if tiers.engine is not None:
                schedule.set_storage_links(
                    tiers.engine.storage_links(), tiers.engine.links_changed, tiers.manager.lose_server
                )
        schedule.schedule(faults)
        self._poison = Poison(clock, schedule, poisons, load_stream) if poisons else None
        self._staging = KvStaging(clock, self._fleet)
        self._arrivals = JobArrivals(clock, self._fleet, events)

    # ------------------------------------------------ the three verbs of a turn
    def fill(self, worker: WorkerId, turn: TurnView, prefix: KvRef) -> asyncio.Future[Filled]:
        """Prefill or midfill the turn; what the store holds of its context is not computed again."""
        node = self._nodes[worker]
        engine = node.engine
        if engine is None or not node.fills:
            return self._refused(node, "fill")
        turn_id, _, _, _, _, _, prompt_tokens, chain = turn
        generated = self._progress.pop(turn_id, 0) if self._progress and node.decodes else 0
        context = prompt_tokens + generated
        spec = node.spec
        if spec.kv_capacity_tokens is not None and context + node.decodes > spec.kv_capacity_tokens:
            return failed_future(self._clock, ContextOverflow(f"{context} tokens do not fit worker {worker}"))
        cached = self.cached_tokens(turn) if chain is not EMPTY_CHAIN else 0
        hidden, headroom = self._hidden_turns[turn_id], spec.headroom_tokens
        job = Job(turn, hidden, node, True, context - cached, cached, generated, headroom)
        future = job.new_future(self._loop, self._pending_work)
        if self.tiers is not None:
            job.fetch = self._store.fetch(turn, cached, worker, self._arrivals.arrived, (job, node.epoch))
        if job.fetch is None:
            engine.enter(job)
        else:
            job.state = FETCHING
        return future

    def stage(self, worker: WorkerId, kv: KvRef) -> asyncio.Future[Staged]:
        """Bring the KV state to the worker over the uplinks of both racks; at once where it is there already."""
        node = self._nodes[worker]
        return self._refused(node, "stage") if node.engine is None else self._staging.stage(node, kv)

    def decode(self, worker: WorkerId, turn: TurnView, kv: Staged) -> asyncio.Future[Retired]:
        """Join the batch and run to the last token, which the fill has already begun with the first."""
        node = self._nodes[worker]
        engine = node.engine
        if engine is None or not node.decodes:
            return self._refused(node, "decode")
        if self._poison is not None:
            self._poison.decodes(worker, turn, node.epoch)
        if self.tiers is not None:
            self._count_idle_hbm(self.tiers, turn)
        if isinstance(engine, AggregatedBatch):
            held = engine.held(turn.turn_id)
            if held is not None:
                future = held.new_future(self._loop, self._pending_work)
                if held.steps > 0:
                    engine.claim(held)
                else:
                    held.joined_s = self._clock.now()
                    engine.release(held)
                    self._events.retired(held)
                return future
        generated = self._progress.pop(turn.turn_id, 0) if self._progress else 0
        context = turn.prompt_tokens + generated
        spec = node.spec
        if spec.kv_capacity_tokens is not None and context >= spec.kv_capacity_tokens:
            return failed_future(self._clock, ContextOverflow(f"{context} tokens do not fit worker {worker}"))
        missing = max(0, context - self._present_tokens(spec, turn, kv.kv))
        swapped = generated > 0 and missing > 0 and spec.preemption == "swap"
        if spec.times is None or swapped:
            missing = 0
        job = Job(turn, self._hidden_turns[turn.turn_id], node, False, missing, 0, generated, spec.headroom_tokens)
        future = job.new_future(self._loop, self._pending_work)
        if job.steps <= 0 and spec.times is not None:
            job.joined_s, job.state = self._clock.now(), OVER
            self._events.retired(job)
        elif swapped:
            self._arrivals.swap_in(node, job)
        else:
            engine.enter(job)
        return future

    def withdraw(self, future: asyncio.Future[Any]) -> bool:
        """Take the work behind a Future off its worker now, and cancel it; return whether it was under way."""
        return self._pending_work.withdraw(future)

    # ------------------------------------------------ questions
    def has_room(self, worker: WorkerId, turn: TurnView) -> bool:
        """Return whether the worker's memory would take the turn now, beside what it holds."""
        node = self._nodes[worker]
        engine = node.engine
        if engine is None:
            return False
        tokens = turn.prompt_tokens
        if self._progress:
            tokens += self._progress.get(turn.turn_id, 0)
        return engine.has_room(tokens)

    def fits(self, turn: TurnView) -> bool:
        """Return whether the present workers could ever fill and decode the turn's context."""
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
        """Estimate the seconds of the turn's fill on the worker: what is not kept, in chunks."""
        node = self._nodes[worker]
        if node.spec.times is None:
            return None
        cached = self.cached_tokens(turn)
        fill_s = fsum(chunk_spans_s(node.spec.times, turn.prompt_tokens - cached, cached, node.pool.chunk_cap))
        return fill_s + self._store.fetch_s(turn, cached, worker)

    def read(self) -> PlantReading:
        """Return the counters as they stand; O(pools)."""
        now = self._clock.now()
        pools = {name: pool.reading(now) for name, pool in self.pools.items()}
        tiers = self.tiers
        if tiers is None:
            return new(PlantReading, (now, pools, (), ()))
        return new(
            PlantReading, (now, pools, tiers.tier_readings(lambda: hbm(pools, tiers.spec)), tiers.reuse_readings())
        )

    def generated(self, worker: WorkerId, now_s: float) -> tuple[list[tuple[TurnId, int]], float | None]:
        """Return the tokens after its first that each turn in the worker's batch has by now, and when the next come."""
        engine = self._nodes[worker].engine
        return engine.generated(now_s) if isinstance(engine, ContinuousBatch) else ([], None)

    def totals(self) -> dict[str, float]:
        """Return sums since the start: prompt tokens, the stored part, bytes staged, late facts, overflows."""
        events = self._events
        return {
            "prompt_tokens": events.prompt_tokens,
            "hit_tokens": events.hit_tokens,
            "staged_bytes": self._staging.staged_bytes,
            "late_facts": events.late,
            "overflows": events.overflows,
        }

    def facts(self) -> Iterator[PlantFact]:
        """Yield, once each, the facts since the last call; the first call yields every worker as joined."""
        return self._fleet.facts()

    def listen(self, heard: Callable[[], None]) -> None:
        """Call `heard` at the instant of every later fact."""
        self._fleet.listen(heard)

    # ------------------------------------------------ commands
    def reconfigure(self, worker: WorkerId, to: ConfigurationName) -> asyncio.Future[None]:
        """Load and warm the configuration on a drained worker."""
        return self._fleet.reconfigure(self._nodes[worker], to)

    def evict(self, worker: WorkerId, turn_id: TurnId | None) -> None:
        """Send a turn away with its state, or all turns without."""
        node = self._nodes[worker]
        if turn_id is None:
            self._fleet.vacate(node)
        elif not self._arrivals.evict(turn_id) and node.engine is not None:
            node.engine.evict(turn_id)

    def apply(self, command: BatchCommand | RetentionCommand) -> Applied:
        """Set the caps of a configuration's workers, or of all; each worker takes them up at its next change."""
        if isinstance(command, BatchCommand):
            named = command.configuration
            caps = {name: pool.batch_cap for name, pool in self.pools.items()}
            caps_set = set_caps(self.pools.values() if named is None else [self.pools[named]], command)
            self._fleet.serve_queues([name for name, pool in self.pools.items() if pool.batch_cap > caps[name]])
            return caps_set
        if self.tiers is None:
            return Applied(RetentionCommand(), True, {})  # a store without limits keeps everything
        applied = self.tiers.apply(command)
        return Applied(applied, applied != command, {})

    # ------------------------------------------------ inside
    def _present_tokens(self, spec: ConfigurationSpec, turn: TurnView, kv: KvRef) -> int:
        """Return the positions whose state is at the worker when a turn comes to decode."""
        if type(kv) is EvictedKv:
            return kv.tokens
        return turn.prompt_tokens if spec.role is Role.DECODE else max(kv.tokens, self.cached_tokens(turn))

    def _decodable_tokens(self) -> float:
        return self._fleet.decodable_tokens

    def _rack(self, worker: WorkerId) -> int:
        return self._nodes[worker].rack

    def _count_idle_hbm(self, tiers: TieredStore, turn: TurnView) -> None:
        """Count the time from fill to decode in which a turn's state was in HBM and unused (essay, section 20)."""
        since_s = self._events.idle_since_s.pop(turn.turn_id, None) if self._events.idle_since_s is not None else None
        if since_s is not None:
            size_bytes = turn.prompt_tokens * tiers.spec.bytes_per_token
            tiers.stats.idle_hbm_byte_s += size_bytes * (self._clock.now() - since_s)

    def _refused(self, node: WorkerNode, verb: str) -> asyncio.Future[Any]:
        if node.vacated:
            return failed_future(self._clock, Evicted())
        if node.engine is None:
            return failed_future(self._clock, WorkerLost(f"worker {node.id} serves nothing now"))
        raise SteadyflowError(f"worker {node.id} is of role {node.spec.role}: it cannot {verb}")
