"""The tiers and the contexts in them: what is staged, drained, demoted and discarded, and when. Read `place` first.

    place    new state -> through its node's DRAM -> network DRAM, or straight there where a node has no room;
             where the network tier has none yet, it is staged in its node and drained as soon as there is some
    relief   a nearly full network tier sends its oldest contexts to SSD; a tier that must have room discards them

A context is held whole, from its first block, so that what is kept of a chain never has a gap. Space is taken when a
transfer begins and given back when it ends. The fast path looks at heads of queues only.
"""

from __future__ import annotations

import math
from functools import partial

from orchestrator.clock import Clock
from orchestrator.turn import WorkerId
from plant.kv.context_index import ContextIndex
from plant.kv.lru_queues import AT_REST, DEMOTING, DRAINING, STAGING, WAITING, Context
from plant.kv.prefix_tree import PrefixTree
from plant.kv.retention_rules import Rules
from plant.kv.routed_transfer import RoutedTransfer
from plant.kv.spec import NETWORK, NODE, SSD, KvSpec
from plant.kv.tier_stats import CAPACITY, NO_ROOM, TierStats
from plant.kv.transfer_engine import TransferEngine

HIGH_WATER = 0.9
"""The network tier begins to send contexts to SSD when it is so full, so that room is there when it is wanted."""


class TierManager(ContextIndex):
    """Contexts by session, in tiers of bounded size: the moves among them.

    Parameters
    ----------
    clock : Clock
    spec : KvSpec
    tree : PrefixTree
    traffic : TransferEngine or None
        None: nothing takes time.
    """

    def __init__(self, clock: Clock, spec: KvSpec, tree: PrefixTree, traffic: TransferEngine | None) -> None:
        super().__init__(clock, spec, tree)
        self._traffic = traffic
        self.ledger = TierStats()
        self.rules = Rules()
        self.physical_bytes = (
            spec.node.capacity_bytes if spec.node is not None and traffic is not None else 0.0,
            spec.network.capacity_bytes / spec.replicas,
            spec.ssd.capacity_bytes if spec.ssd is not None else 0.0,
        )
        self.capacity_bytes = list(self.physical_bytes)
        self._relief = HIGH_WATER if spec.ssd is not None else 1.0
        self._staged = spec.node is not None and traffic is not None
        self._hosts_take_time = spec.node is not None and spec.node.bytes_per_s < math.inf
        self.waiting: dict[Context, None] = {}
        self.staging_bytes = 0.0
        self._leaving_bytes = 0  # of the network tier, on their way to SSD

    # ------------------------------------------------ from a worker into the tiers
    def place(self, context: Context, new_bytes: int) -> None:
        """Store a context whose first `settled` blocks lie in its home tier; `new_bytes` are at its worker."""
        context.pins += 1  # nobody makes room for it out of itself
        self._place(context, new_bytes)
        context.pins -= 1
        self._relieve()

    def _place(self, context: Context, new_bytes: int) -> None:
        chain, blocks, settled = context.chain, context.blocks, context.settled
        via_node = self._staged and (blocks > settled or context.tail == NODE) and self._passes(context, new_bytes)
        if via_node and (self.waiting or not self._has_room(context)):
            self._tree.hold(chain, settled, blocks, NODE)
            self.mark(context)
            self.move_extra(context, NODE)
            span = self._tree.sizes.span_bytes(settled, blocks - settled)
            self.charge(context, span + context.extra_bytes)
            if self.make_room(0, now=True):  # what was promoted from SSD needs room too
                self.ledger.written_bytes[NODE] += new_bytes
                context.phase = STAGING
                self._stage(context, new_bytes)
            else:
                self.discard(context, NO_ROOM)
            return
        self._tree.extend(chain, settled, blocks, NETWORK)
        self.mark(context)
        if context.tail != NETWORK:
            self.move_extra(context, NETWORK)
        context.settled = blocks
        if not self.make_room(0, now=True):
            self.discard(context, NO_ROOM)
            return
        if via_node or self._traffic is None or not new_bytes:
            self.write(context, new_bytes)
        else:
            self.ledger.written_bytes[NETWORK] += new_bytes
            context.phase = DRAINING
            self._drain(context, new_bytes)

    def spare(self, context: Context, new_bytes: int, worker: WorkerId) -> bool:
        """Tell whether a context at rest may grow by so much, and be written at once, with room to spare everywhere."""
        capacity_bytes = self.capacity_bytes
        if self.waiting or self._used[NETWORK] + new_bytes > self._relief * capacity_bytes[NETWORK]:
            return False
        if not self._staged:
            return True
        return self.fits_node(worker, new_bytes + context.extra_bytes + context.owed_bytes, capacity_bytes[NODE])

    def write(self, context: Context, size_bytes: int) -> None:
        """Send a context's new state to the network tier, through its node's DRAM if there is a node tier."""
        self.ledger.written_bytes[NETWORK] += size_bytes
        if self._traffic is None or not size_bytes:
            return
        context.phase = DRAINING
        if not self._staged:
            self._drain(context, size_bytes)
            return
        worker = context.worker
        self.ledger.written_bytes[NODE] += size_bytes
        self._used[NODE] += size_bytes
        self.charge(context, size_bytes)
        self.staging_bytes += size_bytes
        context.passing_bytes = size_bytes
        context.move = self._traffic.write(context.key, worker, size_bytes, partial(self._written, context))

    def _passes(self, context: Context, new_bytes: int) -> bool:
        """Tell whether the node tier has room for the unsettled part of a context, and for what it sends."""
        span = self._tree.sizes.span_bytes(context.settled, context.blocks - context.settled) + context.extra_bytes
        return self.fits_node(context.worker, max(new_bytes, span), self.capacity_bytes[NODE])

    def _has_room(self, context: Context) -> bool:
        """Tell whether the network tier has room for a context now; old ones are discarded for it if SSD takes none."""
        need = self._tree.sizes.span_bytes(context.settled, context.blocks - context.settled)
        if context.tail != NETWORK:
            need += context.extra_bytes
        return self.make_room(need, now=self._spec.ssd is None)

    def _written(self, context: Context, _: RoutedTransfer) -> None:
        self._pass(context)
        context.move = None
        context.phase = AT_REST
        if self._spec.ssd is not None:
            self._relieve()
        if self.waiting:
            self.serve()

    def _pass(self, context: Context) -> None:
        """Free the node of what was on its way through it, and count how long it lay in accelerator memory."""
        size, move = context.passing_bytes, context.move
        if not size or move is None:
            return
        context.passing_bytes = 0
        self._used[NODE] -= size
        self.discharge(context)
        self.staging_bytes -= size
        if self._hosts_take_time:
            until_s, now_s = move.left_source_s(), self._clock.now()
            self.ledger.idle_hbm_byte_s += size * ((until_s if until_s < now_s else now_s) - move.begun_s)

    def grows(self, context: Context, own_bytes: int) -> bool:
        """Tell whether a context's own bytes may grow where it lies, whatever carries it now."""
        more = own_bytes - context.extra_bytes
        if more < 0 or context.phase == DEMOTING:
            return False
        return context.tail != NODE or self.fits_node(context.node, more, self.capacity_bytes[NODE])

    def grow(self, context: Context, own_bytes: int) -> None:
        """Let a context grow by a suffix, which travels with the session's next write."""
        if context.phase == DRAINING and context.tail == NODE:
            self._used[NETWORK] += own_bytes - context.extra_bytes  # it takes space at both ends
        context.owed_bytes += self.resize_extra(context, own_bytes)
        if self._used[NETWORK] > self._relief * self.capacity_bytes[NETWORK]:
            context.pins += 1
            if not self.make_room(0, now=True):
                self.discard(context, NO_ROOM)
            context.pins -= 1
            self._relieve()

    def _stage(self, context: Context, new_bytes: int) -> None:
        assert self._traffic is not None, "staging without time makes no sense"
        begun_s = self._clock.now()
        self.staging_bytes += new_bytes

        def staged(move: RoutedTransfer) -> None:
            self.staging_bytes -= new_bytes
            self.ledger.idle_hbm_byte_s += new_bytes * (self._clock.now() - begun_s)
            context.move = None
            context.phase = WAITING
            self.waiting[context] = None
            self.serve()

        context.move = self._traffic.stage(context.worker, new_bytes, staged)

    def serve(self) -> None:
        """Drain what is staged, in order, as far as the network tier has room."""
        while self.waiting:
            context = next(iter(self.waiting))
            need = self._missing_bytes(context) + context.extra_bytes
            if need > self.capacity_bytes[NETWORK]:
                self.discard(context, NO_ROOM)
                continue
            if not self.make_room(need, now=self._spec.ssd is None):
                return
            del self.waiting[context]
            self._tree.hold(context.chain, context.settled, context.blocks, NETWORK)
            context.phase = DRAINING
            sizes = self._tree.sizes
            tail = sizes.span_bytes(context.settled, context.blocks - context.settled) + context.extra_bytes
            self._used[NETWORK] += context.extra_bytes
            self.ledger.written_bytes[NETWORK] += tail
            self._drain(context, tail)

    def _missing_bytes(self, context: Context) -> int:
        """Return the bytes of the unsettled part that the network tier does not have."""
        sizes, missing = self._tree.sizes, 0
        for blob, low, high in self._tree.find(context.chain):
            if high > context.settled and not blob.held[NETWORK]:
                low = max(low, context.settled)
                missing += sizes.span_bytes(low, high - low)
        return missing

    def _drain(self, context: Context, size_bytes: int) -> None:
        assert self._traffic is not None, "draining without time makes no sense"
        context.move = self._traffic.drain(context.key, context.worker, size_bytes, lambda move: self._drained(context))

    def _drained(self, context: Context) -> None:
        context.move = None
        context.phase = AT_REST
        if context.tail == NODE:
            self._tree.release(context.chain, context.settled, context.blocks, NODE)
            self._used[NODE] -= context.extra_bytes
            self.discharge(context)
            context.tail = NETWORK
            context.settled = context.blocks
        self._relieve()
        self.serve()

    def halt(self, context: Context) -> int:
        """Stop whatever moves a context; return the bytes of it that are still at its worker alone."""
        left = 0
        self._pass(context)
        move, context.move = context.move, None
        if move is not None and self._traffic is not None:
            left = math.ceil(self._traffic.stop(move))
        if context.phase == STAGING and move is not None:
            self.staging_bytes -= move.size_bytes
        elif context.phase == WAITING:
            del self.waiting[context]
        elif context.phase == DRAINING and context.tail == NODE:
            self._tree.release(context.chain, context.settled, context.blocks, NETWORK)
            self._used[NETWORK] -= context.extra_bytes
            left = 0  # it lies in its node
        elif context.phase == DEMOTING:
            self._tree.release(context.chain, 0, context.blocks, SSD)
            self._used[SSD] -= context.extra_bytes
            self._leaving_bytes -= self.size_bytes(context)
            left = 0
        context.phase = AT_REST
        return left

    # ------------------------------------------------ room
    def make_room(self, need: int, *, now: bool) -> bool:
        """Make room in the network tier; tell whether it is there. `now`: by discarding, if there is no other way."""
        limit = self.capacity_bytes[NETWORK]
        while self._used[NETWORK] + need > limit:
            if not now and self._used[NETWORK] - self._leaving_bytes + need <= limit:
                return False  # it is on its way
            victim = self._victim(NETWORK)
            if victim is None:
                return False
            if (now and self._traffic is not None) or not self.demote(victim):
                self._evict(victim)
        return True

    def _relieve(self) -> None:
        """Keep a margin of the network tier free by sending the oldest to SSD."""
        if self._spec.ssd is None:
            return
        limit = HIGH_WATER * self.capacity_bytes[NETWORK]
        while self._used[NETWORK] - self._leaving_bytes > limit:
            victim = self._victim(NETWORK)
            if victim is None or not self.demote(victim):
                return

    def _victim(self, tier: int) -> Context | None:
        shelf = self.shelves[tier]
        if self.rules.order == "value":
            return shelf.least_valued(self._clock.now(), self.rules.discard_after_s)
        return shelf.oldest()

    def demote(self, context: Context) -> bool:
        """Begin to send a context at rest from the network tier to SSD; tell whether SSD takes it."""
        size = self.size_bytes(context)
        if self._spec.ssd is None or size > self.capacity_bytes[SSD]:
            return False
        while self._used[SSD] + size > self.capacity_bytes[SSD]:
            victim = self._victim(SSD)
            if victim is None:
                return False
            self._evict(victim)
        self._tree.hold(context.chain, 0, context.blocks, SSD)
        self._used[SSD] += context.extra_bytes
        self._leaving_bytes += size
        context.phase = DEMOTING
        if self._traffic is None:
            self._demoted(context)
        else:
            context.move = self._traffic.demote(context.key, size, lambda move: self._demoted(context))
        return True

    def _demoted(self, context: Context) -> None:
        self._leaving_bytes -= self.size_bytes(context)
        self._tree.release(context.chain, 0, context.blocks, NETWORK)
        self._used[NETWORK] -= context.extra_bytes
        self.shelves[NETWORK].take(context)
        context.home = context.tail = SSD
        self.shelves[SSD].rows[context.kind][context.key] = context
        context.move = None
        context.phase = AT_REST
        self.ledger.demoted += 1
        self.ledger.written_bytes[SSD] += self.size_bytes(context)
        self.serve()

    def discard(self, context: Context, reason: str) -> None:
        """Give a context up; its text stays with the client."""
        self.halt(context)
        self.forget(context)
        self.ledger.gave_up(context, reason, context.blocks, self._tree.sizes)

    def _evict(self, context: Context) -> None:
        """Give up the leaf of a context at rest, or all of it where contexts are kept whole or little is left."""
        blocks = self._spec.evict_blocks
        if not blocks or blocks >= context.blocks:
            self.discard(context, CAPACITY)
            return
        self.ledger.gave_up(context, CAPACITY, blocks, self._tree.sizes)
        self.trim(context, blocks)
