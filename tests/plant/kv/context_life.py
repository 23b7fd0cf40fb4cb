"""A machine that drives the ledger of kept contexts through every phase, and counts the bytes of every tier beside."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from orchestrator.turn import KvChain, KvRun, WorkerId
from plant.kv.chains import BlobSizes, length
from plant.kv.context import (
    AT_REST,
    DEMOTING,
    DRAINING,
    GONE,
    PHASE_NAMES,
    PHASES,
    STAGING,
    TRANSITIONS,
    WAITING,
    Context,
    IllegalPhase,
    Phase,
)
from plant.kv.context_ledger import ContextLedger
from plant.kv.prefix_tree import PrefixTree
from plant.kv.spec import NETWORK, NODE, SSD
from tests.plant.kv.world import Session, names

SIZES = BlobSizes(block_bytes=1000, snapshot_bytes=70_000, snapshot_blocks=4)
TIERS = (NODE, NETWORK, SSD)
SESSIONS = 4
WHICH = st.integers(0, 40)  # of those that there are
PRIVATE = st.integers(0, 900)


class Reader:
    """A fetch that relies on a context, and holds what it needs itself once that is given up."""

    def __init__(self, tree: PrefixTree, context: Context) -> None:
        self._tree, self.context, self.chain, self.blocks = tree, context, context.chain, context.settled
        self.alone = False
        context.pin(self)

    def hold_alone(self) -> None:
        self.alone = True
        self._tree.hold(self.chain, 0, self.blocks, NETWORK)

    def end(self) -> None:
        self.context.unpin(self)
        if self.alone:
            self._tree.release(self.chain, 0, self.blocks, NETWORK)


def claims(context: Context) -> Iterator[tuple[int, int, int, int]]:
    """Yield (tier, first block, end, private bytes) of what a context takes, as its phase says."""
    blocks, settled, private = context.blocks, context.settled, context.private_bytes
    in_node = context.tail == NODE
    yield context.home, 0, settled, 0 if in_node else private
    if in_node:
        yield NODE, settled, blocks, private
    if context.phase == DRAINING:
        yield (NETWORK, settled, blocks, private) if in_node else (NODE, 0, 0, context.bounce_bytes)
    if context.phase == DEMOTING:
        yield SSD, 0, blocks, private


class ContextLife(RuleBasedStateMachine):
    """Four sessions, two of which share a head, on two workers; whoever drives the ledger is free in what it does."""

    def __init__(self) -> None:
        super().__init__()
        self.tree = PrefixTree(len(TIERS), SIZES)
        self.ledger = ContextLedger(self.tree, nodes=2)
        head = KvRun(99, 0, 6)
        self.sessions = [Session(k, head if k < 2 else None) for k in range(SESSIONS)]
        self.readers: list[Reader] = []
        self.lost: list[tuple[int, KvChain]] = []
        self.left_behind = 0

    def pick(self, which: int, *phases: Phase) -> Context | None:
        """Return one of the contexts, in one of some phases if any are given; None: there is none."""
        some = [c for c in self.ledger.contexts.values() if not phases or c.phase in phases]
        return some[which % len(some)] if some else None

    def place(self, context: Context, private: int, staged: bool, bounce: int) -> None:
        """Store a context at rest: through its node to wait there, or at once."""
        self.ledger.resize_private(context, private)
        self.ledger.use(context, context.blocks * 64, "tool", 0.0, context.worker)
        if staged and context.blocks > context.settled:
            self.ledger.stage(context)
        else:
            self.ledger.settle(context)
            self.ledger.write(context, bounce)

    def put(self, session: int, chain: KvChain, worker: int) -> Context:
        """Replace a session's context, as far as it has one, by one of this chain."""
        ledger, old, blocks, carried = self.ledger, self.ledger.contexts.get(session), length(chain), 0
        if old is not None:
            ledger.halt(old)
            shared = old.shared_with(chain)
            if shared == old.settled == old.blocks and old.home == NETWORK:
                ledger.go_on(old, chain, blocks, WorkerId(worker))
                return old
            carried = min(shared, old.settled) if old.home == NETWORK else 0
        return ledger.replace(old, carried, session, chain, blocks, WorkerId(worker))

    @rule(
        session=st.integers(0, SESSIONS - 1),
        grow=st.integers(1, 8),
        private=PRIVATE,
        worker=st.integers(0, 1),
        staged=st.booleans(),
        bounce=st.integers(0, 5000),
    )
    def fill(self, session: int, grow: int, private: int, worker: int, staged: bool, bounce: int) -> None:
        context = self.put(session, self.sessions[session].grow(grow), worker)
        self.place(context, private, staged, bounce)

    @rule(session=st.integers(0, SESSIONS - 1), grow=st.integers(1, 6), private=PRIVATE)
    def append(self, session: int, grow: int, private: int) -> None:
        """What nearly every turn does: the chain goes on where nothing of its new part is kept."""
        context = self.ledger.contexts.get(session)
        if context is None or context.phase != AT_REST or context.tail != NETWORK or context.end_marked:
            return
        if context.chain != self.sessions[session].chain():
            return
        chain = self.sessions[session].grow(grow)
        if self.ledger.append(context, chain, length(chain), private, context.worker):
            self.ledger.write(context, 0)
        else:
            self.place(self.put(session, chain, 0), private, False, 0)

    @rule(which=WHICH, more=PRIVATE)
    def suffix(self, which: int, more: int) -> None:
        context = self.pick(which, AT_REST, STAGING, WAITING, DRAINING)
        if context is not None:
            self.ledger.defer_private(context, context.private_bytes + more)

    @rule(which=WHICH, steps=st.integers(1, 3))
    def move(self, which: int, steps: int) -> None:
        """Transfers end, or begin for what waits or rests."""
        context, ledger = self.pick(which), self.ledger
        if context is None:
            return
        step = {STAGING: ledger.wait, WAITING: ledger.drain_staged, DRAINING: ledger.land, DEMOTING: ledger.demoted}
        for _ in range(steps):
            if context.phase != AT_REST:
                step[context.phase](context)
            elif context.home == NETWORK:
                ledger.demote(context)

    @rule(which=WHICH, private=PRIVATE)
    def halt(self, which: int, private: int) -> None:
        """A move is stopped, and the context is stored again from where it is."""
        context = self.pick(which, STAGING, WAITING, DRAINING, DEMOTING)
        if context is not None:
            self.ledger.halt(context)
            self.ledger.unstage(context)
            self.place(context, private, False, 0)

    @rule(tier=st.sampled_from((NETWORK, SSD)), blocks=st.integers(1, 30))
    def evict(self, tier: int, blocks: int) -> None:
        victim = self.ledger.queues.tiers[tier].oldest()
        if victim is None:
            return
        assert victim.phase == AT_REST
        assert not victim.pins
        if blocks < victim.blocks:
            self.ledger.trim(victim, blocks)
        else:
            self.ledger.forget(victim)

    @rule(session=st.integers(0, SESSIONS - 1), kept=st.integers(0, 12), keep_old=st.booleans(), staged=st.booleans())
    def compact(self, session: int, kept: int, keep_old: bool, staged: bool) -> None:
        """A session turns away from most of its context; the old one goes, or is kept under a key of its own."""
        old = self.ledger.contexts.get(session)
        chain = self.sessions[session].grow(3, kept)
        if old is not None and keep_old:
            self.ledger.halt(old)
            self.left_behind += 1
            self.ledger.leave_behind(old, -self.left_behind, 0.0)
            if old.home == NETWORK:
                self.place(old, old.private_bytes, staged, 0)
        self.place(self.put(session, chain, 0), 0, staged, 0)

    @rule(which=WHICH)
    def pin(self, which: int) -> None:
        context = self.pick(which)
        if context is not None and context.home == NETWORK and context.reader is None:
            self.readers.append(Reader(self.tree, context))

    @precondition(lambda self: self.readers)
    @rule(which=WHICH)
    def unpin(self, which: int) -> None:
        self.readers.pop(which % len(self.readers)).end()

    @rule(which=WHICH)
    def lose(self, which: int) -> None:
        context = self.pick(which)
        if context is None:
            return
        self.ledger.halt(context)
        self.ledger.forget(context)
        assert context.phase == GONE
        if context.key >= 0:
            self.lost.append((context.key, context.chain))

    @precondition(lambda self: self.lost)
    @rule(which=WHICH, private=PRIVATE, staged=st.booleans())
    def rebuild(self, which: int, private: int, staged: bool) -> None:
        """What was lost is computed again: the same blocks at the same positions."""
        session, chain = self.lost.pop(which % len(self.lost))
        if session not in self.ledger.contexts:
            context = self.put(session, chain, 1)
            self.place(context, private, staged, 0)
            assert self.tree.match_blocks(chain) == length(chain)

    @rule(which=WHICH, to=st.sampled_from(PHASES))
    def a_move_against_the_table_is_refused(self, which: int, to: Phase) -> None:
        context = self.pick(which)
        if context is None or to in TRANSITIONS[context.phase]:
            return
        phase = context.phase
        with pytest.raises(IllegalPhase, match=PHASE_NAMES[phase]):
            context.enter(to)
        assert context.phase == phase

    @invariant()
    def bytes_of_every_tier_are_those_that_the_phases_say(self) -> None:
        held: dict[int, set[tuple[int, int, int]]] = {tier: set() for tier in TIERS}
        private = dict.fromkeys(TIERS, 0)
        for context in self.ledger.contexts.values():
            for tier, low, high, extra in claims(context):
                held[tier].update(names(context.chain, low, high))
                private[tier] += extra
        for reader in self.readers:
            if reader.alone:
                held[NETWORK].update(names(reader.chain, 0, reader.blocks))
        for tier in TIERS:
            snapshots = sum(1 for _, _, at in held[tier] if (at + 1) % SIZES.snapshot_blocks == 0)
            expected = len(held[tier]) * SIZES.block_bytes + snapshots * SIZES.snapshot_bytes + private[tier]
            assert self.ledger.used_bytes[tier] == expected

    @invariant()
    def each_context_stands_once_in_the_queue_of_its_home(self) -> None:
        queued = [
            (tier, kind, context)
            for tier, queue in enumerate(self.ledger.queues.tiers)
            for kind, row in queue.rows.items()
            for context in row.values()
        ]
        assert len(queued) == len(self.ledger.contexts)
        assert all(c.home == tier and c.kind == kind and self.ledger.contexts[c.key] is c for tier, kind, c in queued)
        waiting = [c for c in self.ledger.contexts.values() if c.phase == WAITING]
        assert set(self.ledger.waiting) == set(waiting)

    @invariant()
    def nodes_hold_what_is_on_its_way_through_them(self) -> None:
        at = dict.fromkeys((WorkerId(0), WorkerId(1)), 0)
        leaving = 0
        for context in self.ledger.contexts.values():
            at[context.node] += context.node_bytes
            assert (context.node_bytes > 0) <= (context.tail == NODE or context.bounce_bytes > 0)
            leaving += self.ledger.size_bytes(context) if context.phase == DEMOTING else 0
        assert all(self.ledger.node_bytes.get(node, 0) == size for node, size in at.items())
        assert self.ledger.leaving_bytes == leaving

    @invariant()
    def nothing_that_a_reader_relies_on_is_given_up(self) -> None:
        for reader in self.readers:
            assert self.tree.match_blocks(reader.chain) >= reader.blocks

    @invariant()
    def every_story_is_a_path_through_the_table(self) -> None:
        phases = {name: phase for phase, name in enumerate(PHASE_NAMES)}
        for context in self.ledger.contexts.values():
            story = [Phase(phases[name]) for name in context.story()]
            assert all(after in TRANSITIONS[before] for before, after in pairwise(story))

    def teardown(self) -> None:
        """When every context is given up and every reader has ended, nothing is left."""
        for context in list(self.ledger.contexts.values()):
            self.ledger.halt(context)
            self.ledger.forget(context)
        for reader in self.readers:
            reader.end()
        assert not any(self.ledger.used_bytes)
        assert not any(self.ledger.node_bytes.values())
        assert not list(self.tree)
