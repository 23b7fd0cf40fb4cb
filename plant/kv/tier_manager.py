"""The tiers' rules of room: what is stored where, what waits, and what is demoted or discarded. Read `place` first.

    place    into the network tier, or, where that has no room yet, into its node, to be drained as soon as it has
    relief   a nearly full network tier sends its oldest contexts to SSD; a tier that must have room discards them

The fast path looks at heads of queues only.
"""

from __future__ import annotations

from collections.abc import Container

from orchestrator.clock import Clock
from orchestrator.turn import WorkerId
from plant.kv.context import AT_REST, DEMOTING, Context
from plant.kv.context_ledger import ContextLedger
from plant.kv.context_mover import ContextMover
from plant.kv.prefix_tree import PrefixTree
from plant.kv.retention_rules import RetentionRules
from plant.kv.spec import NETWORK, NODE, SSD, KvSpec
from plant.kv.tier_stats import CAPACITY, NO_ROOM, SERVER_LOST, TierStats
from plant.kv.transfer_engine import TransferEngine

HIGH_WATER = 0.9
"""The network tier begins to send contexts to SSD when it is so full, so that room is there when it is wanted."""


class TierManager:
    """Contexts in tiers of bounded size.

    Parameters
    ----------
    clock : Clock
    spec : KvSpec
    tree : PrefixTree
    ledger : ContextLedger
    engine : TransferEngine or None
        None: nothing takes time.
    stats : TierStats

    Attributes
    ----------
    rules : RetentionRules
    physical_bytes, capacity_bytes : sequence of float
        By tier, one copy of each blob: what the memory holds, and what the retention law leaves of it.
    """

    def __init__(
        self,
        clock: Clock,
        spec: KvSpec,
        tree: PrefixTree,
        ledger: ContextLedger,
        engine: TransferEngine | None,
        stats: TierStats,
    ) -> None:
        self._clock, self._spec, self._tree, self._ledger, self._stats = clock, spec, tree, ledger, stats
        self.mover = ContextMover(clock, spec, ledger, engine, stats, self._landed, self.serve)
        self._engine = engine
        self.rules = RetentionRules()
        self.physical_bytes = (
            spec.node.capacity_bytes if spec.node is not None and engine is not None else 0.0,
            spec.network.capacity_bytes / spec.replicas,
            spec.ssd.capacity_bytes if spec.ssd is not None else 0.0,
        )
        self.capacity_bytes = list(self.physical_bytes)
        self._used_bytes = ledger.used_bytes
        self._relief = HIGH_WATER if spec.ssd is not None else 1.0
        self._waiting = ledger.waiting
        self._via_nodes = self.mover.via_nodes

    # ------------------------------------------------ from a worker into the tiers
    def place(self, context: Context, new_bytes: int) -> None:
        """Store a context whose first `settled` blocks lie in its home tier; `new_bytes` are at its worker."""
        context.pin()  # room for it is not made out of itself
        via_node = self._fits_its_node(context, new_bytes)
        if via_node and (self._waiting or not self._fits_network(context)):
            self._ledger.stage(context)
            if self.make_room(0, now=True):  # what was promoted from SSD needs room too
                self.mover.stage(context, new_bytes)
            else:
                self.discard(context, NO_ROOM)
        else:
            self._ledger.settle(context)
            if self.make_room(0, now=True):
                self.mover.write(context, new_bytes, via_node=via_node)
            else:
                self.discard(context, NO_ROOM)
        context.unpin()
        self._relieve()

    def has_spare_room(self, context: Context, new_bytes: int, worker: WorkerId) -> bool:
        """Tell whether a context at rest may grow by so much, and be written at once, with room to spare everywhere."""
        capacity_bytes = self.capacity_bytes
        if self._waiting or self._used_bytes[NETWORK] + new_bytes > self._relief * capacity_bytes[NETWORK]:
            return False
        if not self._via_nodes:
            return True
        size_bytes = new_bytes + context.private_bytes + context.deferred_bytes
        return self._ledger.fits_node(worker, size_bytes, capacity_bytes[NODE])

    def _fits_its_node(self, context: Context, new_bytes: int) -> bool:
        """Tell whether the node tier has room for the unsettled part of a context, and for what it sends."""
        if not self._via_nodes or (context.blocks <= context.settled and context.tail != NODE):
            return False
        size_bytes = self._ledger.unsettled_bytes(context) + context.private_bytes
        return self._ledger.fits_node(context.worker, max(new_bytes, size_bytes), self.capacity_bytes[NODE])

    def _fits_network(self, context: Context) -> bool:
        """Tell whether the network tier has room for a context now; old ones are discarded for it if SSD takes none."""
        need_bytes = self._ledger.unsettled_bytes(context)
        if context.tail != NETWORK:
            need_bytes += context.private_bytes
        return self.make_room(need_bytes, now=self._spec.ssd is None)

    def can_defer(self, context: Context, private_bytes: int) -> bool:
        """Tell whether a context's private bytes may grow where it lies, whatever carries it now."""
        more = private_bytes - context.private_bytes
        if more < 0 or context.phase == DEMOTING:
            return False
        return context.tail != NODE or self._ledger.fits_node(context.node, more, self.capacity_bytes[NODE])

    def defer(self, context: Context, private_bytes: int) -> None:
        """Let a context grow by a suffix, which is sent with the session's next write."""
        self._ledger.defer_private(context, private_bytes)
        if self._used_bytes[NETWORK] > self._relief * self.capacity_bytes[NETWORK]:
            context.pin()
            if not self.make_room(0, now=True):
                self.discard(context, NO_ROOM)
            context.unpin()
            self._relieve()

    # ------------------------------------------------ what waits in nodes
    def serve(self) -> None:
        """Drain what is staged, in order, as far as the network tier has room."""
        while self._waiting:
            context = next(iter(self._waiting))
            need_bytes = self._missing_bytes(context) + context.private_bytes
            if need_bytes > self.capacity_bytes[NETWORK]:
                self.discard(context, NO_ROOM)
            elif self.make_room(need_bytes, now=self._spec.ssd is None):
                self.mover.drain_staged(context)
            else:
                return

    def _missing_bytes(self, context: Context) -> int:
        """Return the bytes of the unsettled part that the network tier does not have."""
        sizes, missing = self._tree.sizes, 0
        for blob, low, high in self._tree.find(context.chain):
            if high > context.settled and not blob.held[NETWORK]:
                low = max(low, context.settled)
                missing += sizes.span_bytes(low, high - low)
        return missing

    def _landed(self) -> None:
        """A context has come to rest in the network tier."""
        if self._spec.ssd is not None:
            self._relieve()
        if self._waiting:
            self.serve()

    # ------------------------------------------------ room
    def make_room(self, need_bytes: int, *, now: bool) -> bool:
        """Make room in the network tier; tell whether it is there. `now`: by discarding, if there is no other way."""
        limit = self.capacity_bytes[NETWORK]
        while self._used_bytes[NETWORK] + need_bytes > limit:
            if not now and self._used_bytes[NETWORK] - self._ledger.leaving_bytes + need_bytes <= limit:
                return False  # it is on its way
            victim = self._victim(NETWORK)
            if victim is None:
                return False
            if (now and self._spec.timed) or not self.demote(victim):
                self._evict(victim)
        return True

    def _relieve(self) -> None:
        """Keep a margin of the network tier free by sending the oldest to SSD."""
        if self._spec.ssd is None:
            return
        limit = HIGH_WATER * self.capacity_bytes[NETWORK]
        while self._used_bytes[NETWORK] - self._ledger.leaving_bytes > limit:
            victim = self._victim(NETWORK)
            if victim is None or not self.demote(victim):
                return

    def _victim(self, tier: int) -> Context | None:
        queue = self._ledger.queues.tiers[tier]
        if self.rules.order == "value":
            return queue.least_valued(self._clock.now(), self.rules.discard_after_s)
        return queue.oldest()

    def demote(self, context: Context) -> bool:
        """Begin to send a context at rest from the network tier to SSD; tell whether SSD takes it."""
        size_bytes = self._ledger.size_bytes(context)
        if self._spec.ssd is None or size_bytes > self.capacity_bytes[SSD]:
            return False
        while self._used_bytes[SSD] + size_bytes > self.capacity_bytes[SSD]:
            victim = self._victim(SSD)
            if victim is None:
                return False
            self._evict(victim)
        self.mover.demote(context)
        return True

    def discard(self, context: Context, reason: str) -> None:
        """Give a context up; its text stays with the client."""
        self.mover.halt(context)
        self._ledger.forget(context)
        self._stats.count_eviction(context, reason, context.blocks, self._tree.sizes)

    def lose_server(self, name: str, gone: Container[str]) -> int:
        """Give up the contexts at rest whose every copy lies on servers that are `gone`; return how many.

        `name`, as `network.0`, is the one that was lost just now. What a fill reads at this instant is kept: it waits
        for the link.
        """
        tier = NETWORK if name.startswith("network.") else SSD
        lost = [
            context
            for context in self._ledger.contexts.values()
            if context.home == tier
            and context.phase == AT_REST
            and not context.pins
            and self._engine is not None
            and all(server in gone for server in self._engine.servers_of(context.key, tier))
        ]
        for context in lost:
            self.discard(context, SERVER_LOST)
        return len(lost)

    def _evict(self, context: Context) -> None:
        """Give up the leaf of a context at rest, or all of it where contexts are kept whole or little is left."""
        blocks = self._spec.evict_blocks
        if not blocks or blocks >= context.blocks:
            self.discard(context, CAPACITY)
            return
        self._stats.count_eviction(context, CAPACITY, blocks, self._tree.sizes)
        self._ledger.trim(context, blocks)
