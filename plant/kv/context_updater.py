"""One object a session: how the next turn's context takes the place of the last. Read `succeed` first.

What a compaction or a branch leaves behind is dropped, or kept as long as the rule for `compacted` says; contexts of
other sessions that share blobs keep them.
"""

from __future__ import annotations

from orchestrator.clock import Clock
from orchestrator.turn import KvChain, WorkerId
from plant.kv.chains import continues, shared_blocks
from plant.kv.lru_queues import AT_REST, COMPACTED, Context, ReuseStats
from plant.kv.prefix_tree import PrefixTree
from plant.kv.spec import NETWORK, NODE, SSD
from plant.kv.tier_manager import TierManager
from plant.kv.tier_stats import ABANDONED


def shared_with(context: Context, chain: KvChain) -> int:
    """Return how many leading blocks a context and its session's next one have in common."""
    if context.compared is not chain:
        context.compared = chain
        context.shared = context.blocks if continues(context.chain, chain) else shared_blocks(context.chain, chain)
    return context.shared


class ContextUpdater:
    """Puts contexts in each other's place.

    Parameters
    ----------
    clock : Clock
    tree : PrefixTree
    keep : TierManager
    returns : ReuseStats
        Hears of what is left behind.
    """

    def __init__(self, clock: Clock, tree: PrefixTree, keep: TierManager, returns: ReuseStats) -> None:
        self._clock, self._tree, self._keep, self._returns = clock, tree, keep, returns
        self._left_behind = 0

    def goes_on(self, context: Context, chain: KvChain, blocks: int, own: int, worker: WorkerId) -> bool:
        """Let a context that lies at rest, and whose session has only added to it, grow where there is room to spare.

        The same as `succeed` and `place`, without their questions; tell whether it was done.
        """
        keep, settled = self._keep, context.blocks
        if context.phase != AT_REST or context.settled != settled or context.marked or context.tail != NETWORK:
            return False
        if shared_with(context, chain) != settled:
            return False
        span = self._tree.sizes.span_bytes(settled, blocks - settled)
        if not keep.spare(context, span + own, worker) or not self._tree.append(chain, settled, blocks, NETWORK):
            return False
        new = span + context.owed_bytes + own
        context.chain, context.blocks, context.settled, context.compared = chain, blocks, blocks, None
        context.owed_bytes, context.worker = 0, worker
        keep.resize_extra(context, own)
        keep.write(context, new)
        return True

    def succeed(
        self, old: Context | None, unsent: int, session: int, chain: KvChain, blocks: int, worker: WorkerId
    ) -> Context:
        """Put a new chain in the place of a session's last one, with what is kept of it settled in the network tier."""
        tree, keep = self._tree, self._keep
        context = Context(session, chain, blocks, worker)
        carried = 0
        if old is not None:
            shared = shared_with(old, chain)
            if shared == old.settled == old.blocks and old.home == NETWORK:
                return self._grown(old, chain, blocks, worker)
            if shared < old.blocks and keep.rules.life_s(COMPACTED) > 0.0:
                self._leave_behind(old, unsent)
                old = None
            else:
                carried = min(shared, old.settled) if old.home == NETWORK else 0
                if shared < old.blocks:
                    keep.ledger.gave_up(old, ABANDONED, old.blocks - shared, self._tree.sizes)
        settled = carried
        if carried < blocks:
            for blob, _low, high in tree.find(chain):
                if not blob.held[NETWORK]:
                    break
                settled = max(settled, high)
        tree.hold(chain, carried, settled, NETWORK)
        context.settled = settled
        if old is not None:
            keep.ledger.promoted += old.home == SSD
            keep.forget(old, carried)
        keep.contexts[session] = context
        return context

    def _grown(self, context: Context, chain: KvChain, blocks: int, worker: WorkerId) -> Context:
        """Let a context that its session has only added to go on under its new chain."""
        tree, settled = self._tree, context.blocks
        self._keep.unmark(context)
        context.chain, context.blocks, context.worker, context.owed_bytes = chain, blocks, worker, 0
        context.compared = None
        self._keep.resize_extra(context, 0)
        if not tree.follows(chain, settled, blocks):
            carried = settled
            for blob, _low, high in tree.find(chain):
                if not blob.held[NETWORK]:
                    break
                settled = max(settled, high)
            tree.hold(chain, carried, settled, NETWORK)
        context.settled = settled
        return context

    def _leave_behind(self, old: Context, unsent: int) -> None:
        """Keep what a session has turned away from, under a name of its own, as long as the rules say."""
        keep = self._keep
        self._left_behind += 1
        keep.rename(old, -self._left_behind, COMPACTED)
        old.since_s = self._clock.now()
        self._returns.rests(old.key, COMPACTED, old.since_s, self._tree.sizes.span_bytes(0, old.blocks), old.tokens)
        if old.tail == NODE:
            keep.unstage(old)
        keep.place(old, unsent)
