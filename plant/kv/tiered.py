"""The KV store with tiers that the cluster asks: what a turn finds, fetches and leaves behind. Read `put` first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from orchestrator.clock import Clock
from orchestrator.levels import TimeWeightedLevel
from orchestrator.messages import RetentionCommand, ReuseReading, TierReading
from orchestrator.turn import KvChain, TurnView, WorkerId
from plant.kv.blob_sources import BlobSources
from plant.kv.chains import length
from plant.kv.context import BUSY, Context
from plant.kv.context_ledger import ContextLedger
from plant.kv.context_updater import ContextUpdater
from plant.kv.fetch import Fetch, FetchResources
from plant.kv.prefix_tree import PrefixTree
from plant.kv.rack_caches import RackCaches
from plant.kv.retention_sweep import sweep
from plant.kv.reuse_stats import ReuseStats
from plant.kv.spec import NETWORK, NODE, SSD, TIER_NAMES, KvSpec
from plant.kv.tier_levels import TimedBytes, TimedDict
from plant.kv.tier_manager import TierManager
from plant.kv.tier_stats import TierStats
from plant.kv.transfer_engine import TransferEngine
from plant.links.shared_link import SharedLink

READ_EVERY_S = 10.0
"""Tier figures are gathered no more often; the law that reads them acts in minutes."""
REUSE_EVERY_S = 60.0
"""Nor figures of reuse: they cost a step for every context at rest."""


class TieredStore:
    """A `KvStore` with tiers.

    Parameters
    ----------
    clock : Clock
    spec : KvSpec
    uplinks : sequence of SharedLink
        One a rack.
    rack_of : callable
        The rack of a worker.
    rebuild_s : callable
        Seconds to compute a context of so many tokens anew.
    """

    def __init__(
        self,
        clock: Clock,
        spec: KvSpec,
        uplinks: Sequence[SharedLink] = (),
        rack_of: Callable[[WorkerId], int] = lambda worker: 0,
        rebuild_s: Callable[[float], float] = lambda tokens: 0.0,
    ) -> None:
        self._clock, self.spec, self._rebuild_s = clock, spec, rebuild_s
        self.tree = tree = PrefixTree(len(TIER_NAMES), spec.sizes)
        self._asked_tokens, self._cached_tokens, self._cached_bytes = (TimeWeightedLevel() for _ in range(3))
        tree.used_bytes = self._used_bytes = TimedBytes(clock, [TimeWeightedLevel() for _ in TIER_NAMES])
        self.caches: RackCaches | None = None
        if spec.rack_cache_bytes > 0.0 and uplinks:
            self.caches = tree.replicas = RackCaches(len(uplinks), spec.rack_cache_bytes, spec.sizes)
            self.caches.used_bytes = TimedBytes(clock, [self._cached_bytes] * len(uplinks))
        self.engine = engine = TransferEngine(clock, spec, uplinks, rack_of) if spec.timed else None
        self._plain = engine is None and self.caches is None and spec.ssd is None  # all hits are the network's
        self.stats = stats = TierStats()
        self.ledger = ledger = ContextLedger(tree, 1 if spec.node is None else spec.node.servers)
        self._contexts: TimedDict[int, Context] = TimedDict(clock)
        self._waiting: TimedDict[Context, None] = TimedDict(clock)
        ledger.contexts, ledger.waiting = self._contexts, self._waiting
        self.manager = manager = TierManager(clock, spec, tree, ledger, engine, stats)
        self._reuse = ReuseStats()
        self._updater = ContextUpdater(clock, spec.sizes, ledger, manager, stats, self._reuse)
        self._sources = sources = BlobSources(tree, self.caches, rack_of, spec.hot_holders)
        self._fetch_resources: FetchResources | None = None
        if engine is not None:
            self._fetch_resources = FetchResources(clock, tree, engine, sources, spec.stages, manager.serve)
        self._reuse_readings: tuple[ReuseReading, ...] = ()
        self._tier_readings: tuple[TierReading, ...] = ()
        self._reuse_at_s = self._tiers_at_s = -math.inf

    # ------------------------------------------------ questions
    def match(self, chain: KvChain, session: int | None = None) -> int:
        """Return the tokens of the longest leading part of the chain that is kept and can be resumed.

        What a session's next context has in common with its last one is kept as long as that is.
        """
        last = None if session is None else self.ledger.contexts.get(session)
        blocks = self.tree.match_blocks(chain, 0 if last is None else last.shared_with(chain))
        if self.spec.snapshot_bytes:
            blocks = self.tree.resumable_blocks(chain, blocks)
        tokens = blocks * chain.block_tokens
        return tokens - tokens % self.spec.reuse_tokens

    def near(self, chain: KvChain) -> Sequence[WorkerId]:
        """Return the workers that last decoded and last filled a context of the chain's last scope, if it is kept."""
        return self.ledger.places.near(chain)

    def fetch_s(self, turn: TurnView, cached_tokens: int, worker: WorkerId) -> float:
        """Estimate the seconds to bring so much of the turn's context to a worker, as busy as links are now."""
        engine = self.engine
        if engine is None or not cached_tokens:
            return 0.0
        key, block_tokens = turn.session_id, turn.context.block_tokens
        context = self.ledger.contexts.get(key)
        source = worker if context is None else context.worker
        blob_parts = self.tree.find(turn.context, -(-cached_tokens // block_tokens))
        sizes = self._sources.bytes_by_source(blob_parts, block_tokens, cached_tokens, worker)
        return max((engine.fetch_s(key, tier, worker, source, size) for tier, size in sizes.items()), default=0.0)

    # ------------------------------------------------ a turn asks for its context
    def fetch(
        self, turn: TurnView, cached_tokens: int, worker: WorkerId, ready: Callable[[object], object], arg: object
    ) -> Fetch | None:
        """Bring the kept part of the turn's context to a worker; None: nothing has to move, or it takes no time.

        `ready(arg)` is called when the fill may begin: all of it is there, or the first part of several.
        """
        ledger, session, stats = self.ledger, turn.session_id, self.stats
        prompt_tokens, chain = turn.prompt_tokens, turn.context
        now_s = self._clock.now()
        known = self._reuse.returns(session, now_s)
        context = ledger.contexts.get(session)
        if context is not None and context.kind != BUSY:
            ledger.queues.touch(context, BUSY)
        stats.asked_tokens += prompt_tokens
        stats.cached_tokens += cached_tokens
        self._asked_tokens.add(prompt_tokens, now_s)
        self._cached_tokens.add(cached_tokens, now_s)
        stats.computed_bytes += (prompt_tokens - cached_tokens) * self.spec.bytes_per_token
        if known and (context is None or context.tokens < known):  # what was discarded of it is computed anew
            stats.rebuilt_tokens += max(0, min(known, prompt_tokens) - cached_tokens)
        resources = self._fetch_resources
        if resources is None or not cached_tokens:
            if cached_tokens:
                self._count_instant_fetch(turn, cached_tokens, worker)
            return None
        blocks = -(-cached_tokens // chain.block_tokens)
        if context is not None and self._covers(context, chain, blocks):
            block_sizes = self.tree.sizes
            size_bytes = blocks * block_sizes.block_bytes
            stats.hit_tokens[NETWORK] += cached_tokens
            stats.taken_bytes[NETWORK] += size_bytes
            sizes = {NETWORK: size_bytes + block_sizes.snapshot_bytes}
            return Fetch(resources, turn, blocks, worker, context, sizes, ready, arg)
        blob_parts = self.tree.find(chain, blocks)
        sizes = self._sources.bytes_by_source(blob_parts, chain.block_tokens, cached_tokens, worker, stats)
        return Fetch(resources, turn, blob_parts, worker, context, sizes, ready, arg)

    def _count_instant_fetch(self, turn: TurnView, cached_tokens: int, worker: WorkerId) -> None:
        """Count a fetch that takes no time."""
        stats, chain = self.stats, turn.context
        if self._plain:
            stats.hit_tokens[NETWORK] += cached_tokens
            stats.taken_bytes[NETWORK] += round(cached_tokens * self.spec.bytes_per_token)
            return
        blocks = -(-cached_tokens // chain.block_tokens)
        blob_parts = self.tree.find(chain, blocks)
        self._sources.bytes_by_source(blob_parts, chain.block_tokens, cached_tokens, worker, stats)
        self._sources.warm(chain, blocks, worker)

    def _covers(self, context: Context, chain: KvChain, blocks: int) -> bool:
        """Tell whether a session's last context alone holds so many blocks of a chain in the network tier."""
        if self.caches is not None or context.home != NETWORK or context.reader is not None:
            return False
        return blocks <= context.settled and blocks <= context.shared_with(chain)

    # ------------------------------------------------ a worker gives state back
    def put(self, turn: TurnView, tokens: int, worker: WorkerId, kind: str) -> None:
        """Keep a context of `tokens` positions; `kind` says what it will wait for, BUSY while its turn goes on."""
        chain, manager = turn.context, self.manager
        context = self.ledger.contexts.get(turn.session_id)
        blocks = context.blocks if context is not None and context.chain is chain else length(chain)
        if not blocks:
            return
        private = round((tokens - blocks * chain.block_tokens) * self.spec.bytes_per_token) + self.spec.snapshot_bytes
        private = private if private > 0 else 0
        if context is not None and context.home == NETWORK:
            if context.chain is chain or (context.blocks == blocks and context.chain == chain):
                if manager.can_defer(context, private):  # the answer's suffix: nothing new has a name
                    self._use(context, tokens, kind, worker)
                    manager.defer(context, private)
                    return
            elif self._updater.append(context, chain, blocks, private, worker):  # what nearly every turn does
                self._use(context, tokens, kind, worker)
                return
        self._put_anew(context, turn, blocks, private, tokens, worker, kind)

    def _put_anew(
        self, old: Context | None, turn: TurnView, blocks: int, private: int, tokens: int, worker: WorkerId, kind: str
    ) -> None:
        """Keep a context whose last one is on its way, or is no part of it."""
        ledger, chain = self.ledger, turn.context
        new_bytes = deferred_bytes = 0
        if old is not None:
            new_bytes, deferred_bytes = self.manager.mover.halt(old), old.deferred_bytes
        if old is None or old.chain != chain or old.home != NETWORK:
            context = self._updater.replace(old, new_bytes, turn.session_id, chain, blocks, worker)
            if context is not old:
                new_bytes = 0
            new_bytes += ledger.unsettled_bytes(context) + deferred_bytes
        else:
            context = old
            ledger.unstage(context)
        new_bytes += ledger.resize_private(context, private)
        self._use(context, tokens, kind, worker)
        self.manager.place(context, new_bytes)

    def _use(self, context: Context, tokens: int, kind: str, worker: WorkerId) -> None:
        now_s = self._clock.now()
        self.ledger.use(context, tokens, kind, now_s, worker)
        if kind != BUSY:
            self._reuse.rests(context.key, kind, now_s, self.ledger.size_bytes(context), tokens)

    # ------------------------------------------------ the law, and what it sees
    def apply(self, command: RetentionCommand) -> RetentionCommand:
        """Take over the rules, and apply them at once to what lies here; return what was set."""
        manager = self.manager
        manager.rules.set(command)
        tokens = command.capacity_tokens
        if tokens is not None:
            manager.capacity_bytes[NETWORK] = min(tokens * self.spec.bytes_per_token, manager.physical_bytes[NETWORK])
            tokens = math.floor(manager.capacity_bytes[NETWORK] / self.spec.bytes_per_token)
        sweep(manager, self.ledger.queues, self._clock.now())
        return replace(command, capacity_tokens=tokens)

    def _read_tiers(self) -> tuple[TierReading, ...]:
        """Return the state of each tier that there is."""
        spec, stats = self.spec, self.stats
        copies = {NETWORK: spec.replicas}
        return tuple(
            TierReading(
                name=TIER_NAMES[tier],
                used_bytes=float(self.ledger.used_bytes[tier] * copies.get(tier, 1)),
                capacity_bytes=self.manager.capacity_bytes[tier] * copies.get(tier, 1),
                hit_tokens_total=stats.hit_tokens[tier],
                evicted_total=stats.evicted_from(tier),
                price_per_byte_s=part.price_per_byte_s,
            )
            for tier, part in ((NODE, spec.node), (NETWORK, spec.network), (SSD, spec.ssd))
            if part is not None
        )

    def tier_readings(self, hbm: Callable[[], TierReading]) -> tuple[TierReading, ...]:
        """Return accelerator memory and the tiers as they stood at most READ_EVERY_S ago."""
        now_s = self._clock.now()
        if now_s - self._tiers_at_s >= READ_EVERY_S:
            self._tier_readings, self._tiers_at_s = (hbm(), *self._read_tiers()), now_s
        return self._tier_readings

    def reuse_readings(self) -> tuple[ReuseReading, ...]:
        """Return how contexts came back, as it stood at most REUSE_EVERY_S ago."""
        now_s = self._clock.now()
        if now_s - self._reuse_at_s >= REUSE_EVERY_S:
            self._reuse_readings, self._reuse_at_s = self._reuse.readings(now_s, self._rebuild_s), now_s
        return self._reuse_readings

    def values(self) -> Iterator[tuple[str, float]]:
        """Yield every figure by name: sums since the start, and levels (`used_bytes`, `staging_bytes`, `contexts`)."""
        yield from self.stats.values()
        for reading in self._read_tiers():
            yield f"used_bytes.{reading.name}", reading.used_bytes
            if reading.capacity_bytes < math.inf:
                yield f"capacity_bytes.{reading.name}", reading.capacity_bytes
        if self.caches is not None:
            yield "used_bytes.rack_cache", sum(self.caches.used_bytes)
        yield "contexts", len(self.ledger.contexts)
        yield "staged_contexts", len(self.ledger.waiting)
        yield "staging_bytes", self.manager.mover.staging_bytes
        if self.engine is not None:
            yield from ((f"moved_bytes.{name}", moved) for name, moved in self.engine.moved_bytes.items())
            yield from ((f"link_bytes.{name}", moved) for name, moved in self.engine.link_bytes())
            yield "rerouted", self.engine.rerouted

    def levels(self) -> dict[str, dict[str, tuple[TimeWeightedLevel, int]]]:
        """Return what is recorded over time (`plant/signals.py`): by source and tier, a level and what it counts for.

        What belongs to no tier stands under the empty name.
        """
        spec, levels = self.spec, self._used_bytes.levels
        used = {
            TIER_NAMES[tier]: (levels[tier], spec.replicas if tier == NETWORK else 1)
            for tier, part in ((NODE, spec.node), (NETWORK, spec.network), (SSD, spec.ssd))
            if part is not None
        }
        if self.caches is not None:
            used["rack_cache"] = (self._cached_bytes, 1)
        store_levels = {"contexts": self._contexts.level, "staged_contexts": self._waiting.level}
        store_levels |= {"asked_tokens": self._asked_tokens, "cached_tokens": self._cached_tokens}
        return {"used_bytes": used, **{name: {"": (level, 1)} for name, level in store_levels.items()}}
