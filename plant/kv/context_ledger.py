"""Every change of a kept context, booked with the bytes that it takes in each tier. Nothing moves or takes time here.

A context is held whole, from its first block, so that what is kept of a chain never has a gap. Space is taken when a
move begins and given back when it ends; a move that is halted is undone.
"""

from __future__ import annotations

from orchestrator.turn import KvChain, WorkerId
from plant.kv.chains import head
from plant.kv.context import AT_REST, BUSY, COMPACTED, DEMOTING, DRAINING, GONE, STAGING, WAITING, Context
from plant.kv.last_places import LastPlaces
from plant.kv.lru_queues import LruQueues
from plant.kv.prefix_tree import PrefixTree
from plant.kv.spec import NETWORK, NODE, SSD


class ContextLedger:
    """Contexts by session: their phases, their order of use, and the bytes of each in the tiers.

    Parameters
    ----------
    tree : PrefixTree
    nodes : int
        Nodes that are distinguished, each with an equal part of the node tier; 1: they share one pool.

    Attributes
    ----------
    contexts : dict
        By key.
    queues : LruQueues
    places : LastPlaces
    waiting : dict
        Contexts staged in their nodes until the network tier has room, in order.
    used_bytes : list of int
        By tier, one copy of each blob; the private bytes of contexts are among them.
    leaving_bytes : int
        Of the network tier, on their way to SSD.
    node_bytes : dict
        Of each worker's own node.
    """

    def __init__(self, tree: PrefixTree, nodes: int = 1) -> None:
        self._tree, self._nodes = tree, nodes
        self.contexts: dict[int, Context] = {}
        self.waiting: dict[Context, None] = {}
        self.queues = LruQueues()
        self.places = LastPlaces()
        self.used_bytes = tree.used_bytes
        self.leaving_bytes = 0
        self.node_bytes: dict[WorkerId, int] = {}

    # ------------------------------------------------ questions
    def size_bytes(self, context: Context) -> int:
        """Return the bytes of a whole context."""
        return self._tree.sizes.span_bytes(0, context.blocks) + context.private_bytes

    def unsettled_bytes(self, context: Context) -> int:
        """Return the bytes of the blocks that do not lie in its home tier."""
        return self._tree.sizes.span_bytes(context.settled, context.blocks - context.settled)

    def fits_node(self, node: WorkerId, size_bytes: int, capacity_bytes: float) -> bool:
        """Tell whether a node has room for more; all of them together hold `capacity_bytes`, each an equal part."""
        if self._nodes == 1:
            return self.used_bytes[NODE] + size_bytes <= capacity_bytes
        return self.node_bytes.get(node, 0) + size_bytes <= capacity_bytes / self._nodes

    def use(self, context: Context, tokens: int, kind: str, now_s: float, worker: WorkerId) -> None:
        """Note that a worker gives a context back, so many tokens long."""
        context.tokens, context.since_s, context.worker = tokens, now_s, worker
        self.queues.touch(context, kind)
        places = self.places.filled if kind == BUSY else self.places.decoded
        places[context.chain.runs[-1].scope] = worker

    # ------------------------------------------------ content
    def replace(
        self, old: Context | None, carried: int, key: int, chain: KvChain, blocks: int, worker: WorkerId
    ) -> Context:
        """Put a new context in the place of an old one, which hands its first `carried` blocks over.

        What the network tier has of the chain already, of whomever, is settled.
        """
        context = Context(key, chain, blocks, worker)
        settled = self._network_blocks(chain, carried) if carried < blocks else carried
        self._tree.hold(chain, carried, settled, NETWORK)
        context.settled = settled
        if old is not None:
            self.forget(old, carried)
        self.contexts[key] = context
        return context

    def append(self, context: Context, chain: KvChain, blocks: int, private_bytes: int, worker: WorkerId) -> bool:
        """Let a context at rest go on under a longer chain, in one step if nothing of the new part is kept yet."""
        if not self._tree.append(chain, context.blocks, blocks, NETWORK):
            return False
        context.put_chain(chain, blocks, blocks)
        context.deferred_bytes, context.worker = 0, worker
        self.resize_private(context, private_bytes)
        return True

    def go_on(self, context: Context, chain: KvChain, blocks: int, worker: WorkerId) -> None:
        """Let a context at rest go on under a longer chain, without its private bytes."""
        known = settled = context.blocks
        self._unmark_end(context)
        if not self._tree.follows(chain, known, blocks):
            settled = self._network_blocks(chain, known)
            self._tree.hold(chain, known, settled, NETWORK)
        context.put_chain(chain, blocks, settled)
        context.worker, context.deferred_bytes = worker, 0
        self.resize_private(context, 0)

    def leave_behind(self, context: Context, key: int, now_s: float) -> None:
        """Keep under a key of its own what its session has turned away from."""
        self.queues.remove(context)
        del self.contexts[context.key]
        context.key, context.since_s = key, now_s
        self.contexts[key] = context
        self.queues.touch(context, COMPACTED)
        self.unstage(context)

    def trim(self, context: Context, blocks: int) -> None:
        """Release the last blocks of a context at rest, and what belongs to its end: its leaf goes first."""
        self._unmark_end(context)
        kept, scope = context.blocks - blocks, context.chain.runs[-1].scope
        self._tree.release(context.chain, kept, context.blocks, context.home)
        self.resize_private(context, 0)
        context.put_chain(head(context.chain, kept), kept, kept)
        context.tokens, context.deferred_bytes = kept * context.chain.block_tokens, 0
        if context.chain.runs[-1].scope != scope:
            self.places.forget(scope)

    def resize_private(self, context: Context, size_bytes: int) -> int:
        """Give a context other bytes of its own; return by how many it has grown."""
        grown = size_bytes - context.private_bytes
        self.used_bytes[context.tail] += grown
        if context.tail == NODE and context.node_bytes:
            self.node_bytes[context.node] += grown
            context.node_bytes += grown
        context.private_bytes = size_bytes
        return grown if grown > 0 else 0

    def defer_private(self, context: Context, size_bytes: int) -> None:
        """Let a context grow by a suffix that is sent with the session's next write."""
        if context.phase == DRAINING and context.tail == NODE:
            self.used_bytes[NETWORK] += size_bytes - context.private_bytes  # it takes space at both ends
        context.deferred_bytes += self.resize_private(context, size_bytes)

    # ------------------------------------------------ phases
    def stage(self, context: Context) -> None:
        """The unsettled part is copied into its worker's node, to wait there."""
        context.enter(STAGING)
        self._tree.hold(context.chain, context.settled, context.blocks, NODE)
        self._mark_end(context)
        self._move_private(context, NODE)
        self._charge(context, self.unsettled_bytes(context) + context.private_bytes)

    def wait(self, context: Context) -> None:
        """It is in its node, and waits for room in the network tier."""
        context.enter(WAITING)
        self.waiting[context] = None

    def drain_staged(self, context: Context) -> None:
        """What has waited is sent to the network tier; it takes space at both ends."""
        context.enter(DRAINING)
        del self.waiting[context]
        self._tree.hold(context.chain, context.settled, context.blocks, NETWORK)
        self.used_bytes[NETWORK] += context.private_bytes

    def settle(self, context: Context) -> None:
        """Book the whole of a context at rest in the network tier, before what is new of it is written there."""
        self._tree.extend(context.chain, context.settled, context.blocks, NETWORK)
        self._mark_end(context)
        if context.tail != NETWORK:
            self._move_private(context, NETWORK)
        context.settled = context.blocks

    def write(self, context: Context, bounce_bytes: int) -> None:
        """New state of a settled context is sent to the network tier, `bounce_bytes` of it through its node's DRAM."""
        context.enter(DRAINING)
        if bounce_bytes:
            self.used_bytes[NODE] += bounce_bytes
            self._charge(context, bounce_bytes)
            context.bounce_bytes = bounce_bytes

    def land(self, context: Context) -> None:
        """The last byte is in the network tier."""
        context.enter(AT_REST)
        if context.bounce_bytes:
            self._free_bounce(context)
        if context.tail == NODE:
            self._tree.release(context.chain, context.settled, context.blocks, NODE)
            self._discharge(context)
            self._move_private(context, NETWORK, at_both=True)
            context.settled = context.blocks

    def demote(self, context: Context) -> None:
        """A context is sent from the network tier to SSD; it takes space at both ends."""
        context.enter(DEMOTING)
        self._tree.hold(context.chain, 0, context.blocks, SSD)
        self.used_bytes[SSD] += context.private_bytes
        self.leaving_bytes += self.size_bytes(context)

    def demoted(self, context: Context) -> None:
        """It lies on SSD."""
        context.enter(AT_REST)
        self.leaving_bytes -= self.size_bytes(context)
        self._tree.release(context.chain, 0, context.blocks, NETWORK)
        self._move_private(context, SSD, at_both=True)
        self.queues.remove(context)
        context.home = SSD
        self.queues.add(context)

    def halt(self, context: Context) -> None:
        """Undo the move that is under way; what was staged in a node stays there."""
        phase = context.phase
        if phase == AT_REST:
            return
        context.enter(AT_REST)
        if context.bounce_bytes:
            self._free_bounce(context)
        if phase == WAITING:
            del self.waiting[context]
        elif phase == DRAINING and context.tail == NODE:
            self._tree.release(context.chain, context.settled, context.blocks, NETWORK)
            self.used_bytes[NETWORK] -= context.private_bytes
        elif phase == DEMOTING:
            self._tree.release(context.chain, 0, context.blocks, SSD)
            self.used_bytes[SSD] -= context.private_bytes
            self.leaving_bytes -= self.size_bytes(context)

    def unstage(self, context: Context) -> None:
        """Give up a halted context's hold of its node, if it has one."""
        if context.tail == NODE:
            self._unmark_end(context)
            self._discharge(context)
            self._tree.release(context.chain, context.settled, context.blocks, NODE)

    def forget(self, context: Context, carried: int = 0) -> None:
        """Release all that a halted context holds, save its first `carried` blocks, which another has taken over."""
        context.enter(GONE)
        if context.reader is not None:
            context.reader.hold_alone()
            context.reader = None
        self._unmark_end(context)
        self.queues.remove(context)
        self._tree.release(context.chain, carried, context.settled, context.home)
        self.unstage(context)
        self.used_bytes[context.tail] -= context.private_bytes
        if self.contexts.get(context.key) is context:
            del self.contexts[context.key]
            if context.kind != COMPACTED:
                self.places.forget(context.chain.runs[-1].scope)

    # ------------------------------------------------ inside
    def _network_blocks(self, chain: KvChain, known: int) -> int:
        """Return how many leading blocks of a chain the network tier has; the first `known` for sure."""
        blocks = known
        for blob, _low, high in self._tree.find(chain):
            if not blob.held[NETWORK]:
                break
            blocks = max(blocks, high)
        return blocks

    def _mark_end(self, context: Context) -> None:
        """Let the tree know where a context ends: a hybrid has a snapshot there."""
        if not context.end_marked and self._tree.sizes.snapshot_bytes:
            context.end_marked = True
            self._tree.mark_end(context.chain, context.blocks, there=True)

    def _unmark_end(self, context: Context) -> None:
        if context.end_marked:
            context.end_marked = False
            self._tree.mark_end(context.chain, context.blocks, there=False)

    def _move_private(self, context: Context, tier: int, *, at_both: bool = False) -> None:
        """Count a context's private bytes in another tier; `at_both`: there they are counted already."""
        self.used_bytes[context.tail] -= context.private_bytes
        if not at_both:
            self.used_bytes[tier] += context.private_bytes
        context.tail = tier

    def _charge(self, context: Context, size_bytes: int) -> None:
        """Count bytes in the DRAM of the node where a context's worker is."""
        node = context.node = context.worker
        context.node_bytes = size_bytes
        self.node_bytes[node] = self.node_bytes.get(node, 0) + size_bytes

    def _discharge(self, context: Context) -> None:
        if context.node_bytes:
            self.node_bytes[context.node] -= context.node_bytes
            context.node_bytes = 0

    def _free_bounce(self, context: Context) -> None:
        self.used_bytes[NODE] -= context.bounce_bytes
        self.node_bytes[context.node] -= context.node_bytes
        context.bounce_bytes = context.node_bytes = 0
