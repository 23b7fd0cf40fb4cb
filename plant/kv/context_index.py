"""The contexts that are kept, and what each holds in the tree: books only, nothing moves here."""

from __future__ import annotations

from orchestrator.clock import Clock
from orchestrator.turn import WorkerId
from plant.kv.chains import head
from plant.kv.lru_queues import COMPACTED, Context, LruQueue
from plant.kv.prefix_tree import PrefixTree
from plant.kv.spec import NODE, TIER_NAMES, KvSpec


class ContextIndex:
    """Contexts by session, and the shelves on which those at rest lie.

    Parameters
    ----------
    clock : Clock
    spec : KvSpec
    tree : PrefixTree
    """

    def __init__(self, clock: Clock, spec: KvSpec, tree: PrefixTree) -> None:
        self._clock, self._spec, self._tree = clock, spec, tree
        self.contexts: dict[int, Context] = {}
        self.filled_at: dict[int, WorkerId] = {}  # by scope: who last filled a context of it
        self.decoded_at: dict[int, WorkerId] = {}
        self._used = tree.used_bytes  # by tier: blobs, and the contexts' own bytes beside them
        self.node_bytes: dict[WorkerId, int] = {}  # of each worker's own node, where nodes are told apart
        self._nodes = spec.node.servers if spec.node is not None else 1
        self.shelves = [LruQueue() for _ in TIER_NAMES]
        self._stamps = 0

    def now_s(self) -> float:
        """Return the present."""
        return self._clock.now()

    def used_bytes(self, tier: int) -> int:
        """Return what lies in a tier, one copy of each blob."""
        return self._used[tier]

    # ------------------------------------------------ shelves
    def touch(self, context: Context, kind: str) -> None:
        """Make a context the youngest of a kind."""
        self._stamps = context.stamp = self._stamps + 1
        rows, key = self.shelves[context.home].rows, context.key
        row = rows[kind]
        if kind == context.kind and key in row:
            row.move_to_end(key)
            return
        rows[context.kind].pop(key, None)
        context.kind = kind
        row[key] = context

    def rename(self, context: Context, key: int, kind: str) -> None:
        """Keep a context under another key, and as another kind."""
        self.shelves[context.home].take(context)
        del self.contexts[context.key]
        context.key = key
        self.contexts[key] = context
        self.touch(context, kind)

    # ------------------------------------------------ holds
    def mark(self, context: Context) -> None:
        """Let the tree know where a context ends: a hybrid has a snapshot there."""
        if not context.marked and self._tree.sizes.snapshot_bytes:
            context.marked = True
            self._tree.mark_end(context.chain, context.blocks, there=True)

    def unmark(self, context: Context) -> None:
        """Strike that note out: the context is about to grow, or to go."""
        if context.marked:
            context.marked = False
            self._tree.mark_end(context.chain, context.blocks, there=False)

    def size_bytes(self, context: Context) -> int:
        """Return the bytes of a whole context."""
        return self._tree.sizes.span_bytes(0, context.blocks) + context.extra_bytes

    def move_extra(self, context: Context, tier: int) -> None:
        """Count a context's own bytes in another tier."""
        self._used[context.tail] -= context.extra_bytes
        self._used[tier] += context.extra_bytes
        context.tail = tier

    def resize_extra(self, context: Context, size_bytes: int) -> int:
        """Give a context other bytes of its own; return by how many it has grown."""
        grown = size_bytes - context.extra_bytes
        self._used[context.tail] += grown
        if context.tail == NODE and context.node_bytes:
            self.node_bytes[context.node] += grown
            context.node_bytes += grown
        context.extra_bytes = size_bytes
        return grown if grown > 0 else 0

    def charge(self, context: Context, size_bytes: int) -> None:
        """Count bytes in the DRAM of the node where a context's worker is."""
        node = context.node = context.worker
        context.node_bytes = size_bytes
        self.node_bytes[node] = self.node_bytes.get(node, 0) + size_bytes

    def discharge(self, context: Context) -> None:
        """They have left it."""
        if context.node_bytes:
            self.node_bytes[context.node] -= context.node_bytes
            context.node_bytes = 0

    def fits_node(self, node: WorkerId, size_bytes: int, capacity_bytes: float) -> bool:
        """Tell whether a node has room for more; all of them together hold `capacity_bytes`, each an equal part."""
        if self._nodes == 1:
            return self._used[NODE] + size_bytes <= capacity_bytes
        return self.node_bytes.get(node, 0) + size_bytes <= capacity_bytes / self._nodes

    def forget(self, context: Context, carried: int = 0) -> None:
        """Release all that a halted context holds, save its first `carried` blocks, which another has taken over."""
        if context.guest is not None:
            context.guest.stand_alone()
        self.unmark(context)
        self.shelves[context.home].take(context)
        self._tree.release(context.chain, carried, context.settled, context.home)
        self.unstage(context)
        self._used[context.tail] -= context.extra_bytes
        if self.contexts.get(context.key) is context:
            del self.contexts[context.key]
            if context.kind != COMPACTED:
                scope = context.chain.runs[-1].scope
                self.filled_at.pop(scope, None)
                self.decoded_at.pop(scope, None)

    def trim(self, context: Context, blocks: int) -> None:
        """Release the last blocks of a context at rest, and what belongs to its end: its leaf goes first."""
        self.unmark(context)
        kept, scope = context.blocks - blocks, context.chain.runs[-1].scope
        self._tree.release(context.chain, kept, context.blocks, context.home)
        self.resize_extra(context, 0)
        context.chain, context.blocks, context.settled = head(context.chain, kept), kept, kept
        context.tokens, context.owed_bytes, context.compared = kept * context.chain.block_tokens, 0, None
        if context.chain.runs[-1].scope != scope:
            self.filled_at.pop(scope, None)
            self.decoded_at.pop(scope, None)

    def unstage(self, context: Context) -> None:
        """Give up a halted context's hold of its node, if it has one."""
        if context.tail == NODE:
            self.unmark(context)
            self.discharge(context)
            self._tree.release(context.chain, context.settled, context.blocks, NODE)
