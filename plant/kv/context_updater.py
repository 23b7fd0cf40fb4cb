"""One object a session: how its next context takes the place of the last one. Read `replace` first.

What a compaction or a branch leaves behind is dropped, or kept as long as the rule for `compacted` says; contexts of
other sessions that share blobs keep them.
"""

from __future__ import annotations

from orchestrator.clock import Clock
from orchestrator.turn import KvChain, WorkerId
from plant.kv.chains import BlobSizes
from plant.kv.context import AT_REST, COMPACTED, Context
from plant.kv.context_ledger import ContextLedger
from plant.kv.reuse_stats import ReuseStats
from plant.kv.spec import NETWORK, SSD
from plant.kv.tier_manager import TierManager
from plant.kv.tier_stats import ABANDONED, TierStats


class ContextUpdater:
    """Puts contexts in each other's place.

    Parameters
    ----------
    clock : Clock
    sizes : BlobSizes
    ledger : ContextLedger
    tiers : TierManager
    stats : TierStats
    reuse : ReuseStats
        Counts what is left behind as a context that begins to wait.
    """

    def __init__(
        self,
        clock: Clock,
        sizes: BlobSizes,
        ledger: ContextLedger,
        tiers: TierManager,
        stats: TierStats,
        reuse: ReuseStats,
    ) -> None:
        self._clock, self._sizes, self._ledger, self._tiers = clock, sizes, ledger, tiers
        self._stats, self._reuse = stats, reuse
        self._left_behind = 0

    def append(self, context: Context, chain: KvChain, blocks: int, private_bytes: int, worker: WorkerId) -> bool:
        """Let a context that lies at rest, and whose session has only added to it, grow where there is room to spare.

        The same as `replace` and `TierManager.place`, without their questions; tell whether it was done.
        """
        settled, tiers = context.blocks, self._tiers
        if context.phase != AT_REST or context.settled != settled or context.end_marked or context.tail != NETWORK:
            return False
        if context.shared_with(chain) != settled:
            return False
        span_bytes, deferred_bytes = self._sizes.span_bytes(settled, blocks - settled), context.deferred_bytes
        if not tiers.has_spare_room(context, span_bytes + private_bytes, worker):
            return False
        if not self._ledger.append(context, chain, blocks, private_bytes, worker):
            return False
        tiers.mover.write(context, span_bytes + deferred_bytes + private_bytes, via_node=tiers.mover.via_nodes)
        return True

    def replace(
        self, old: Context | None, unsent_bytes: int, session: int, chain: KvChain, blocks: int, worker: WorkerId
    ) -> Context:
        """Put a new chain in the place of a session's last one, with what is kept of it settled in the network tier."""
        carried = 0
        if old is not None:
            shared = old.shared_with(chain)
            if shared == old.settled == old.blocks and old.home == NETWORK:
                self._ledger.go_on(old, chain, blocks, worker)
                return old
            if shared < old.blocks and self._tiers.rules.life_s(COMPACTED) > 0.0:
                self._leave_behind(old, unsent_bytes)
                old = None
            else:
                carried = min(shared, old.settled) if old.home == NETWORK else 0
                if shared < old.blocks:
                    self._stats.count_eviction(old, ABANDONED, old.blocks - shared, self._sizes)
                self._stats.promoted += old.home == SSD
        return self._ledger.replace(old, carried, session, chain, blocks, worker)

    def _leave_behind(self, old: Context, unsent_bytes: int) -> None:
        """Keep what a session has turned away from, under a key of its own, as long as the rules say."""
        self._left_behind += 1
        now_s = self._clock.now()
        self._ledger.leave_behind(old, -self._left_behind, now_s)
        self._reuse.rests(old.key, COMPACTED, now_s, self._sizes.span_bytes(0, old.blocks), old.tokens)
        self._tiers.place(old, unsent_bytes)
