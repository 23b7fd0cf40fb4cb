"""The tiered store behind the cluster's `KvStore` seam: what a turn finds, fetches and leaves behind. Read `put` first.

One object a session: the next turn's context takes the place of the last. What a compaction or a branch leaves behind
is dropped, or kept as long as the rule for `compacted` says; contexts of other sessions that share blobs keep them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from orchestrator.clock import Clock
from orchestrator.messages import RetentionCommand, ReuseReading, TierReading
from orchestrator.turn import KvChain, TurnView, WorkerId
from plant.kv.chains import length
from plant.kv.context_updater import ContextUpdater, shared_with
from plant.kv.fetch import Fetch, sources
from plant.kv.flat_store import last_places
from plant.kv.lru_queues import BUSY, Context, ReuseStats
from plant.kv.prefix_tree import PrefixTree
from plant.kv.rack_caches import RackCaches
from plant.kv.retention_sweep import sweep
from plant.kv.spec import NETWORK, NODE, SSD, TIER_NAMES, KvSpec
from plant.kv.tier_manager import TierManager
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
        self._clock, self.spec, self.rack_of, self._rebuild_s = clock, spec, rack_of, rebuild_s
        self.tree = PrefixTree(len(TIER_NAMES), spec.sizes)
        self.caches: RackCaches | None = None
        if spec.rack_cache_bytes > 0.0 and uplinks:
            self.caches = self.tree.replicas = RackCaches(len(uplinks), spec.rack_cache_bytes, spec.sizes)
        self.traffic = TransferEngine(clock, spec, uplinks, rack_of) if spec.timed else None
        self._plain = self.traffic is None and self.caches is None and spec.ssd is None  # all hits are the network's
        self.keep = TierManager(clock, spec, self.tree, self.traffic)
        self.ledger = self.keep.ledger
        self.returns = ReuseStats()
        self.succession = ContextUpdater(clock, self.tree, self.keep, self.returns)
        self._reuse: tuple[ReuseReading, ...] = ()
        self._reuse_at_s = self._recent_at_s = -math.inf
        self._recent: tuple[TierReading, ...] = ()

    # ------------------------------------------------ questions
    def match(self, chain: KvChain, session: int | None = None) -> int:
        """Return the tokens of the longest leading part of the chain that is kept and can be resumed.

        What a session's next context has in common with its last one is kept as long as that is.
        """
        last = None if session is None else self.keep.contexts.get(session)
        found = self.tree.match_blocks(chain, 0 if last is None else shared_with(last, chain))
        if self.spec.snapshot_bytes:
            found = self.tree.resumable_blocks(chain, found)
        tokens = found * chain.block_tokens
        return tokens - tokens % self.spec.reuse_tokens

    def near(self, chain: KvChain) -> Sequence[WorkerId]:
        """Return the workers that last decoded and last filled a context of the chain's last scope, if it is kept."""
        return last_places(chain, self.keep.decoded_at, self.keep.filled_at)

    def contexts(self) -> Iterator[Context]:
        """Yield every context that is kept."""
        return iter(self.keep.contexts.values())

    def fetch_s(self, turn: TurnView, cached_tokens: int, worker: WorkerId) -> float:
        """Estimate the seconds to bring so much of the turn's context to a worker, as busy as links are now."""
        traffic = self.traffic
        if traffic is None or not cached_tokens:
            return 0.0
        key = turn.session_id
        context = self.keep.contexts.get(key)
        source = worker if context is None else context.worker
        size = turn.context.block_tokens
        found = self.tree.find(turn.context, -(-cached_tokens // size))
        sizes = sources(self, found, size, cached_tokens, worker)
        return max((traffic.fetch_s(key, tier, worker, source, size) for tier, size in sizes.items()), default=0.0)

    # ------------------------------------------------ a turn asks for its context
    def fetch(
        self, turn: TurnView, cached_tokens: int, worker: WorkerId, ready: Callable[[object], object], arg: object
    ) -> Fetch | None:
        """Bring the kept part of the turn's context to a worker; None: nothing has to move, or it takes no time.

        `ready(arg)` is called when the fill may begin: all of it is there, or the first part of several.
        """
        keep, session, ledger = self.keep, turn.session_id, self.ledger
        prompt_tokens, chain = turn.prompt_tokens, turn.context
        known = self.returns.returns(session, self._clock.now())
        context = keep.contexts.get(session)
        if context is not None and context.kind != BUSY:
            keep.touch(context, BUSY)
        ledger.asked_tokens += prompt_tokens
        ledger.cached_tokens += cached_tokens
        ledger.computed_bytes += (prompt_tokens - cached_tokens) * self.spec.bytes_per_token
        if known and (context is None or context.tokens < known):  # what was discarded of it is computed anew
            ledger.rebuilt_tokens += max(0, min(known, prompt_tokens) - cached_tokens)
        traffic = self.traffic
        if traffic is None or not cached_tokens:
            if cached_tokens:
                self._instantly(turn, cached_tokens, worker)
            return None
        blocks = -(-cached_tokens // chain.block_tokens)
        if context is not None and self._covers(context, chain, blocks):
            block_sizes = self.tree.sizes
            size_bytes = blocks * block_sizes.block_bytes
            ledger.hit_tokens[NETWORK] += cached_tokens
            ledger.taken_bytes[NETWORK] += size_bytes
            sizes = {NETWORK: size_bytes + block_sizes.snapshot_bytes}
            return Fetch(self, traffic, turn, blocks, worker, context, sizes, ready, arg)
        found = self.tree.find(chain, blocks)
        sizes = sources(self, found, chain.block_tokens, cached_tokens, worker, ledger)
        return Fetch(self, traffic, turn, found, worker, context, sizes, ready, arg)

    def _instantly(self, turn: TurnView, cached_tokens: int, worker: WorkerId) -> None:
        """Count a fetch that takes no time."""
        ledger = self.ledger
        if self._plain:
            ledger.hit_tokens[NETWORK] += cached_tokens
            ledger.taken_bytes[NETWORK] += round(cached_tokens * self.spec.bytes_per_token)
            return
        blocks = -(-cached_tokens // turn.context.block_tokens)
        found = self.tree.find(turn.context, blocks)
        sources(self, found, turn.context.block_tokens, cached_tokens, worker, ledger)
        self.warm(turn.context, blocks, worker)

    def _covers(self, context: Context, chain: KvChain, blocks: int) -> bool:
        """Tell whether a session's last context alone holds so many blocks of a chain in the network tier."""
        if self.caches is not None or context.home != NETWORK or context.guest is not None:
            return False
        return blocks <= context.settled and blocks <= shared_with(context, chain)

    # ------------------------------------------------ a worker gives state back
    def put(self, turn: TurnView, tokens: int, worker: WorkerId, kind: str) -> None:
        """Keep a context of `tokens` positions; `kind` says what it will wait for, BUSY while its turn goes on."""
        chain, keep = turn.context, self.keep
        now_s, session = self._clock.now(), turn.session_id
        context = keep.contexts.get(session)
        blocks = context.blocks if context is not None and context.chain is chain else length(chain)
        if not blocks:
            return
        own = round((tokens - blocks * chain.block_tokens) * self.spec.bytes_per_token) + self.spec.snapshot_bytes
        own = own if own > 0 else 0
        if context is not None and context.home == NETWORK:
            if context.chain is chain or (context.blocks == blocks and context.chain == chain):
                if keep.grows(context, own):  # the answer's suffix: nothing new has a name
                    self._rest(context, tokens, kind, now_s, worker)
                    keep.grow(context, own)
                    return
            elif self.succession.goes_on(context, chain, blocks, own, worker):  # what nearly every turn does
                self._rest(context, tokens, kind, now_s, worker)
                return
        new = owed = 0
        if context is not None:
            new, owed = keep.halt(context), context.owed_bytes
        if context is None or context.chain != chain or context.home != NETWORK:
            old = context
            context = self.succession.succeed(old, new, session, chain, blocks, worker)
            if context is not old:
                new = 0
            new += self.tree.sizes.span_bytes(context.settled, blocks - context.settled) + owed
        else:
            keep.unstage(context)
        new += keep.resize_extra(context, own)
        self._rest(context, tokens, kind, now_s, worker)
        keep.place(context, new)

    def _rest(self, context: Context, tokens: int, kind: str, now_s: float, worker: WorkerId) -> None:
        context.tokens, context.since_s, context.worker = tokens, now_s, worker
        self.keep.touch(context, kind)
        if kind == BUSY:
            self.keep.filled_at[context.chain.runs[-1].scope] = worker
        else:
            self.keep.decoded_at[context.chain.runs[-1].scope] = worker
            self.returns.rests(context.key, kind, now_s, self.keep.size_bytes(context), tokens)

    # ------------------------------------------------ the law, and what it sees
    def apply(self, command: RetentionCommand) -> RetentionCommand:
        """Take over the rules, and apply them at once to what lies here; return what was set."""
        keep = self.keep
        keep.rules.set(command)
        tokens = command.capacity_tokens
        if tokens is not None:
            keep.capacity_bytes[NETWORK] = min(tokens * self.spec.bytes_per_token, keep.physical_bytes[NETWORK])
            tokens = math.floor(keep.capacity_bytes[NETWORK] / self.spec.bytes_per_token)
        sweep(keep)
        return replace(command, capacity_tokens=tokens)

    def readings(self) -> tuple[TierReading, ...]:
        """Return the state of each tier that there is."""
        spec, keep, ledger = self.spec, self.keep, self.ledger
        copies = {NETWORK: spec.replicas}
        return tuple(
            TierReading(
                name=TIER_NAMES[tier],
                used_bytes=float(keep.used_bytes(tier) * copies.get(tier, 1)),
                capacity_bytes=keep.capacity_bytes[tier] * copies.get(tier, 1),
                hit_tokens_total=ledger.hit_tokens[tier],
                evicted_total=ledger.evicted_from(tier),
                price_per_byte_s=part.price_per_byte_s,
            )
            for tier, part in ((NODE, spec.node), (NETWORK, spec.network), (SSD, spec.ssd))
            if part is not None
        )

    def recent(self, hbm: Callable[[], TierReading]) -> tuple[TierReading, ...]:
        """Return accelerator memory and the tiers as they stood at most READ_EVERY_S ago."""
        now_s = self._clock.now()
        if now_s - self._recent_at_s >= READ_EVERY_S:
            self._recent, self._recent_at_s = (hbm(), *self.readings()), now_s
        return self._recent

    def reuse(self) -> tuple[ReuseReading, ...]:
        """Return how contexts came back, as it stood at most REUSE_EVERY_S ago."""
        now_s = self._clock.now()
        if now_s - self._reuse_at_s >= REUSE_EVERY_S:
            self._reuse, self._reuse_at_s = self.returns.readings(now_s, self._rebuild_s), now_s
        return self._reuse

    def values(self) -> Iterator[tuple[str, float]]:
        """Yield every figure by name: sums since the start, and levels (`used_bytes`, `staging_bytes`, `contexts`)."""
        keep = self.keep
        yield from self.ledger.values()
        for reading in self.readings():
            yield f"used_bytes.{reading.name}", reading.used_bytes
            if reading.capacity_bytes < math.inf:
                yield f"capacity_bytes.{reading.name}", reading.capacity_bytes
        if self.caches is not None:
            yield "used_bytes.rack_cache", sum(self.caches.used_bytes)
        yield "contexts", len(keep.contexts)
        yield "staged_contexts", len(keep.waiting)
        yield "staging_bytes", keep.staging_bytes
        if self.traffic is not None:
            yield from ((f"moved_bytes.{name}", moved) for name, moved in self.traffic.moved_bytes.items())
            yield from ((f"link_bytes.{name}", moved) for name, moved in self.traffic.link_bytes())
            yield "rerouted", self.traffic.rerouted

    def warm(self, chain: KvChain, blocks: int, worker: WorkerId) -> None:
        """Keep copies of what is hot, and has just come by, in the worker's rack."""
        if self.caches is not None:
            rack = self.rack_of(worker)
            for blob, _low, _high in self.tree.find(chain, blocks):
                if blob.held[NETWORK] >= self.spec.hot_holders:
                    self.caches.admit(blob, rack)
