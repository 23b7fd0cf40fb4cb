"""The laws of the tiered store, under any order of turns, transfers, faults and words of the retention law."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from orchestrator.messages import RetentionCommand, RetentionRule
from orchestrator.turn import KvRun, TurnView, WorkerId
from plant.kv.context import AT_REST, BUSY, DEMOTING, DRAINING
from plant.kv.spec import NETWORK, NODE, SSD, KvSpec, TierSpec
from plant.kv.tiered import TieredStore
from plant.links.shared_link import SharedLink
from tests.plant.kv.world import BLOCK, HeapClock, Session, names, turn

BYTES = 1000.0
KINDS = ("tool", "human", "ended", "unknown")


class Flight:
    """A turn on its way: its fetch, and whether it may fill."""

    def __init__(self, view: TurnView, worker: WorkerId, cached: int) -> None:
        self.view, self.worker, self.cached = view, worker, cached
        self.fetch: Any = None
        self.ready = False


class StoreLaws(RuleBasedStateMachine):
    """Six sessions, two of which share a head, on four workers in two racks."""

    @initialize(
        node=st.none() | st.integers(20, 200),
        network=st.integers(60, 400),
        ssd=st.none() | st.integers(100, 400),
        timed=st.booleans(),
        caches=st.booleans(),
        stages=st.integers(1, 3),
        snapshots=st.booleans(),
        nodes=st.sampled_from((1, 4)),
        leaf=st.sampled_from((0, 8)),
    )
    def build(
        self,
        node: int | None,
        network: int,
        ssd: int | None,
        timed: bool,
        caches: bool,
        stages: int,
        snapshots: bool,
        nodes: int,
        leaf: int,
    ) -> None:
        block = BYTES * BLOCK
        rate = {"bytes_per_s": 40 * block} if timed else {}
        self.spec = KvSpec(
            bytes_per_token=BYTES,
            node=None if node is None else TierSpec(capacity_bytes=node * block, servers=nodes, **rate),
            network=TierSpec(capacity_bytes=2 * network * block, servers=2, **rate),
            ssd=None if ssd is None else TierSpec(capacity_bytes=ssd * block, **rate),
            replicas=2,
            rack_cache_bytes=40 * block if caches else 0.0,
            hot_holders=2,
            nic_bytes_per_s=60 * block if timed else float("inf"),
            stages=stages,
            evict_tokens=leaf * BLOCK,
            snapshot_bytes=int(block) if snapshots else 0,
            snapshot_tokens=8 * BLOCK,
        )
        self.clock = HeapClock()
        links = [SharedLink(self.clock, 50 * block), SharedLink(self.clock, 50 * block)]  # type: ignore[arg-type]
        self.store = TieredStore(self.clock, self.spec, links, lambda worker: int(worker) // 2)  # type: ignore[arg-type]
        head = KvRun(99, 0, 6)
        self.sessions = [Session(k, head if k < 2 else None) for k in range(6)]
        self.flights: dict[int, Flight] = {}

    @rule(
        which=st.integers(0, 5), grow=st.integers(1, 25), keep=st.none() | st.integers(0, 40), worker=st.integers(0, 3)
    )
    def a_turn_asks(self, which: int, grow: int, keep: int | None, worker: int) -> None:
        if which in self.flights:
            return
        chain = self.sessions[which].grow(grow, keep)
        tokens = sum(run.blocks for run in chain.runs) * BLOCK + 17
        view = turn(which, chain, tokens)
        matched = self.store.match(chain)
        assert self.store.match(chain, which) == matched  # knowing whose it is saves time, and changes nothing
        cached = min(matched, tokens - 1)
        assert 0 <= cached < tokens
        assert cached <= self.store.tree.match_blocks(chain) * BLOCK
        flight = self.flights[which] = Flight(view, WorkerId(worker), cached)
        flight.fetch = self.store.fetch(view, cached, flight.worker, self._ready, which)
        if flight.fetch is None:
            flight.ready = True

    def _ready(self, which: Any) -> None:
        flight = self.flights[which]
        assert not flight.ready
        flight.ready = True

    @rule(which=st.integers(0, 5))
    def a_turn_is_cancelled(self, which: int) -> None:
        flight = self.flights.pop(which, None)
        if flight is not None and flight.fetch is not None:
            flight.fetch.cancel()

    @rule(which=st.integers(0, 5), kind=st.sampled_from(KINDS), output=st.integers(1, 400))
    def a_turn_fills_and_retires(self, which: int, kind: str, output: int) -> None:
        flight = self.flights.get(which)
        if flight is None or not flight.ready or (flight.fetch is not None and flight.fetch.done_s is None):
            return
        del self.flights[which]
        view = flight.view
        self.store.put(view, view.prompt_tokens, flight.worker, BUSY)
        self.clock.run(self.clock.now() + 0.01 * (output % 7))
        self.store.put(view, view.prompt_tokens + output - 1, flight.worker, kind)

    @rule(span_s=st.floats(0.0, 20.0))
    def time_passes(self, span_s: float) -> None:
        self.clock.run(self.clock.now() + span_s)

    @rule(
        kind=st.sampled_from((*KINDS, "compacted")),
        demote_s=st.sampled_from((0.0, 5.0, float("inf"))),
        discard_s=st.sampled_from((0.0, 30.0, float("inf"))),
        order=st.sampled_from(("lru", "value")),
    )
    def the_law_speaks(self, kind: str, demote_s: float, discard_s: float, order: Any) -> None:
        rules = (RetentionRule(kind=kind, demote_after_s=demote_s, discard_after_s=discard_s),)
        self.store.apply(RetentionCommand(rules=rules, order=order))

    @rule(server=st.integers(0, 1), rate=st.sampled_from((0.0, 0.5, 1.0)))
    def a_link_changes(self, server: int, rate: float) -> None:
        engine = self.store.engine
        if engine is not None:
            engine.network[server].set_rate(rate * 40 * BYTES * BLOCK)
            engine.links_changed()

    @rule()
    def both_copies_are_lost(self) -> None:
        gone = {"network.0", "network.1"}
        for name in sorted(gone):
            self.store.manager.lose_server(name, gone)

    @invariant()
    def bytes_are_those_of_contexts_and_fetches(self) -> None:
        if not hasattr(self, "store"):
            return
        store, sizes = self.store, self.spec.sizes
        held: list[set[tuple[int, int, int]]] = [set(), set(), set()]
        recounted = [0, 0, 0]
        for context in store.ledger.contexts.values():
            held[context.home].update(names(context.chain, 0, context.settled))
            if context.tail == NODE:
                held[NODE].update(names(context.chain, context.settled, context.blocks))
                if context.phase == DRAINING:
                    held[NETWORK].update(names(context.chain, context.settled, context.blocks))
                    recounted[NETWORK] += context.private_bytes
            if context.phase == DEMOTING:
                held[SSD].update(names(context.chain, 0, context.blocks))
                recounted[SSD] += context.private_bytes
            recounted[context.tail] += context.private_bytes
            recounted[NODE] += context.bounce_bytes
        for flight in self.flights.values():
            if flight.fetch is not None and flight.fetch.done_s is None:
                for low, high, tier in flight.fetch._pinned:
                    held[tier].update(names(flight.view.context, low, high))
        for tier in (NODE, NETWORK, SSD):
            size = sum(sizes.span_bytes(at, 1) for _, _, at in held[tier]) + recounted[tier]
            assert store.ledger.used_bytes[tier] == size
            assert size <= max(store.manager.capacity_bytes[tier], 0.0) + 1e-6

    @invariant()
    def no_node_holds_more_than_its_part(self) -> None:
        if not hasattr(self, "store") or self.spec.node is None:
            return
        ledger = self.store.ledger
        at: dict[WorkerId, int] = {}
        for context in ledger.contexts.values():
            at[context.node] = at.get(context.node, 0) + context.node_bytes
            here = context.tail == NODE or context.bounce_bytes > 0
            assert (context.node_bytes > 0) <= here
        assert {node: size for node, size in ledger.node_bytes.items() if size} == {n: s for n, s in at.items() if s}
        if self.spec.node.servers > 1:
            assert all(size <= self.spec.node.capacity_bytes / 4 for size in at.values())

    @invariant()
    def nothing_that_a_turn_waits_for_is_discarded(self) -> None:
        for flight in getattr(self, "flights", {}).values():
            if flight.fetch is not None and flight.fetch.done_s is None:
                assert self.store.tree.match_blocks(flight.view.context) * BLOCK >= flight.cached

    @invariant()
    def caches_hold_no_more_than_they_can(self) -> None:
        caches = getattr(self, "store", None) and self.store.caches
        if caches:
            sizes = self.spec.sizes
            for rack, row in enumerate(caches._rows):
                assert sum(sizes.span_bytes(blob.start, blob.blocks) for blob in row) == caches.used_bytes[rack]
                assert caches.used_bytes[rack] <= 40 * BYTES * BLOCK
                assert all(blob in set(self.store.tree) for blob in row)

    def teardown(self) -> None:
        """Let every transfer end and give every context up: nothing is left anywhere."""
        if not hasattr(self, "store"):
            return
        store = self.store
        for flight in self.flights.values():
            if flight.fetch is not None:
                flight.fetch.cancel()
        if store.engine is not None:
            for link in store.engine.network:
                link.set_rate(40 * BYTES * BLOCK)
            store.engine.links_changed()
        self.clock.run()
        assert all(
            c.phase == AT_REST and c.settled == c.blocks
            for c in store.ledger.contexts.values()
            if c not in store.ledger.waiting
        )
        for context in list(store.ledger.contexts.values()):
            store.manager.discard(context, "expired")
        self.clock.run()
        assert len(store.tree) == 0
        assert not any(store.tree.used_bytes)
        assert not store.ledger.waiting
        assert [store.ledger.used_bytes[tier] for tier in (NODE, NETWORK, SSD)] == [0, 0, 0]
        assert store.engine is None or len(store.engine) == 0
        assert store.caches is None or not any(store.caches.used_bytes)
        assert not any(row for queue in store.ledger.queues.tiers for row in queue.rows.values())
        assert abs(store.manager.mover.staging_bytes) < 1e-6


TestStoreLaws = StoreLaws.TestCase
TestStoreLaws.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_a_long_storm_reaches_every_path_and_breaks_no_law() -> None:
    """Chance alone seldom fills SSD or a rack's cache: a long seeded storm in a tight store does."""
    chance = Random(20260930)
    storm = StoreLaws()
    storm.build(node=90, network=150, ssd=200, timed=True, caches=True, stages=2, snapshots=True, nodes=1, leaf=0)
    for step in range(3000):
        which = chance.randrange(6)
        if chance.random() < 0.45:
            storm.a_turn_asks(which, chance.randint(1, 12), chance.choice((None, None, None, 20)), chance.randrange(4))
        elif chance.random() < 0.8:
            storm.a_turn_fills_and_retires(which, chance.choice(KINDS), chance.randint(1, 400))
        elif chance.random() < 0.1:
            storm.a_turn_is_cancelled(which)
        elif chance.random() < 0.2:
            storm.a_link_changes(chance.randrange(2), chance.choice((0.0, 0.5, 1.0, 1.0)))
        elif chance.random() < 0.2:
            discard_s = chance.choice((0.0, 30.0, float("inf")))
            storm.the_law_speaks(chance.choice(("compacted", "tool")), 5.0, discard_s, chance.choice(("lru", "value")))
        storm.time_passes(chance.expovariate(1.0))
        if sum(s.next_id for s in storm.sessions) and max(len(s.ids) for s in storm.sessions) > 70:
            for session in storm.sessions:
                session.ids = session.ids[:10]
        if step % 5 == 0:
            storm.bytes_are_those_of_contexts_and_fetches()
            storm.nothing_that_a_turn_waits_for_is_discarded()
            storm.caches_hold_no_more_than_they_can()
    figures = dict(storm.store.values())
    storm.both_copies_are_lost()
    storm.bytes_are_those_of_contexts_and_fetches()
    figures |= {name: value for name, value in storm.store.values() if name.endswith("server_lost")}
    unreached = [
        name
        for name, value in figures.items()
        if not value and not name.startswith(("staged", "staging", "used_bytes.node"))
    ]
    storm.teardown()
    assert not unreached


def test_the_oldest_context_loses_its_leaf_first_and_what_is_left_is_still_found() -> None:
    capacity, leaf = 40, 8
    spec = KvSpec(bytes_per_token=1.0, network=TierSpec(capacity_bytes=capacity * BLOCK), evict_tokens=leaf * BLOCK)
    store = TieredStore(HeapClock(), spec)  # type: ignore[arg-type]  # a heap is clock enough
    old, young = Session(1), Session(2)
    for session in (old, young):
        store.put(turn(session.scope, session.grow(25), 25 * BLOCK), 25 * BLOCK, WorkerId(0), "tool")
    assert store.match(old.chain()) == (25 - 2 * leaf) * BLOCK  # ten blocks were missing: two leaves
    assert store.match(young.chain()) == 25 * BLOCK
    view = turn(1, old.grow(1), 26 * BLOCK)
    cached = store.match(view.context)
    store.fetch(view, cached, WorkerId(0), lambda _: None, None)
    assert store.stats.rebuilt_tokens == 25 * BLOCK - cached
    store.put(view, 26 * BLOCK, WorkerId(0), "tool")
    assert store.match(old.chain()) == 26 * BLOCK
    assert store.ledger.used_bytes[NETWORK] <= capacity * BLOCK
