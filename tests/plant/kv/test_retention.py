"""What the retention laws say, and what the store makes of it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.messages import RetentionCommand, RetentionReading, RetentionRule, ReuseReading, TierReading
from orchestrator.ports import Every
from orchestrator.turn import WorkerId
from plant.kv.chains import length
from plant.kv.context import BUSY
from plant.kv.reuse_stats import AGES_S, ReuseStats
from plant.kv.spec import NETWORK, KvSpec, TierSpec
from plant.kv.tiered import TieredStore
from policies.retention.lru import Lru
from policies.retention.reuse_classifier import ReuseClassifier, life_s
from policies.retention.ttl import Ttl
from tests.plant.kv.world import BLOCK, HeapClock, Session, turn

EVERY = Every(period_s=60.0)


def reading(*reuse: ReuseReading, price: float = 0.0, ssd: float | None = None) -> RetentionReading:
    def tier(name: str, at: float) -> TierReading:
        return TierReading(
            name=name, used_bytes=0, capacity_bytes=1, hit_tokens_total=0, evicted_total=0, price_per_byte_s=at
        )

    tiers = (tier("network", price),) + (() if ssd is None else (tier("ssd", ssd),))
    return RetentionReading(now_s=0.0, at_s=0.0, tiers=tiers, reuse=reuse, applied=RetentionCommand())


def kind(name: str, idle: tuple[int, ...], reused: tuple[int, ...]) -> ReuseReading:
    ages = (10.0, 100.0, 1000.0)
    return ReuseReading(kind=name, ages_s=ages, idle=idle, reused=reused, mean_bytes=1e9, rebuild_s=10.0)


def store(clock: HeapClock, **changes: object) -> TieredStore:
    network = TierSpec(capacity_bytes=100 * 64e3)
    spec = KvSpec(bytes_per_token=1000.0, network=network, **changes)  # type: ignore[arg-type]
    return TieredStore(clock, spec)  # type: ignore[arg-type]


def rest(kept: TieredStore, session: Session, blocks: int, kind: str = "tool", keep: int | None = None) -> None:
    chain = session.grow(blocks, keep)
    view = turn(session.scope, chain, length(chain) * BLOCK + 1)
    kept.fetch(view, min(kept.match(chain), view.prompt_tokens - 1), WorkerId(0), lambda _: None, None)
    kept.put(view, length(chain) * BLOCK, WorkerId(0), BUSY)
    kept.put(view, length(chain) * BLOCK, WorkerId(0), kind)


def test_the_least_recently_used_context_goes_first() -> None:
    clock = HeapClock()
    kept = store(clock)
    kept.apply(Lru(EVERY).act(reading()))
    sessions = [Session(k) for k in range(3)]
    for session in sessions:
        rest(kept, session, 40)  # the third needs the room of the first
    assert [kept.match(session.chain()) for session in sessions] == [0, 40 * BLOCK, 40 * BLOCK]
    rest(kept, sessions[1], 1)
    rest(kept, sessions[0], 1)
    assert [kept.match(session.chain()) > 0 for session in sessions] == [True, True, False]
    assert kept.stats.evicted[NETWORK, "capacity"] == 2


def test_a_context_that_is_computed_again_is_the_discarded_one_in_size_and_position() -> None:
    clock = HeapClock()
    kept = store(clock)
    a, b = Session(1), Session(2)
    rest(kept, a, 60)
    before = [(blob.first, blob.blocks, blob.start) for blob in kept.tree], kept.ledger.used_bytes[NETWORK]
    rest(kept, b, 60)
    assert kept.match(a.chain()) == 0
    rest(kept, a, 0)
    after = [(blob.first, blob.blocks, blob.start) for blob in kept.tree], kept.ledger.used_bytes[NETWORK]
    assert after == before
    assert kept.stats.rebuilt_tokens == 60 * BLOCK


def test_what_a_compaction_leaves_behind_goes_at_once_or_when_the_rule_says() -> None:
    for law, left in ((Lru(EVERY), 0), (Lru(EVERY, keep_compacted=True), 50 * BLOCK)):
        clock = HeapClock()
        kept = store(clock)
        kept.apply(law.act(reading()))
        session = Session(1)
        rest(kept, session, 50)
        old = session.chain()
        rest(kept, session, 10, keep=5)
        assert kept.match(session.chain()) == 15 * BLOCK
        assert kept.match(old) == max(left, 5 * BLOCK)


def test_a_life_ends_at_the_laws_next_word_and_not_before() -> None:
    clock = HeapClock()
    kept = store(clock)
    law = Ttl(EVERY, ttl_s=300.0)
    session = Session(1)
    kept.apply(law.act(reading()))
    rest(kept, session, 10)
    clock.run(299.0)
    kept.apply(law.act(reading()))
    assert kept.match(session.chain()) == 10 * BLOCK
    clock.run(360.0)
    assert kept.match(session.chain()) == 10 * BLOCK
    kept.apply(law.act(reading()))
    assert kept.match(session.chain()) == 0
    assert kept.stats.evicted[NETWORK, "expired"] == 1


def test_a_full_tier_sends_its_oldest_to_ssd_and_fetches_it_back_into_the_shared_tier() -> None:
    clock = HeapClock()
    kept = store(clock, ssd=TierSpec(capacity_bytes=1e9))
    sessions = [Session(k) for k in range(4)]
    for session in sessions:
        rest(kept, session, 40)
    assert all(kept.match(session.chain()) == 40 * BLOCK for session in sessions)
    assert kept.stats.demoted == 2
    rest(kept, sessions[0], 1)
    assert kept.stats.promoted == 1
    assert kept.stats.hit_tokens[2] == 40 * BLOCK


def test_a_capacity_in_tokens_is_clipped_to_the_tiers_memory_and_said_so() -> None:
    kept = store(HeapClock())
    applied = kept.apply(RetentionCommand(capacity_tokens=10**9))
    assert applied.capacity_tokens == 100 * BLOCK
    assert kept.apply(RetentionCommand(capacity_tokens=640)).capacity_tokens == 640


def test_a_kind_that_returns_is_kept_and_one_that_does_not_is_let_go() -> None:
    law = ReuseClassifier(EVERY, rebuild_price_per_s=1.0, prior_contexts=1.0)
    soon = kind("tool", (1000, 100, 10), (900, 90, 9))
    never = kind("human", (1000, 1000, 1000), (0, 0, 0))
    command = law.act(reading(soon, never, price=5e-12))
    lives = {rule.kind: rule.discard_after_s for rule in command.rules or ()}
    assert lives["tool"] == 1000.0
    assert lives["human"] == 0.0
    assert lives["compacted"] == 0.0
    assert command.order == "value"


def test_without_any_reading_the_classifier_keeps_what_it_knows_nothing_of() -> None:
    command = ReuseClassifier(EVERY, rebuild_price_per_s=1.0).act(reading())
    assert [rule.kind for rule in command.rules or ()] == ["compacted"]


@given(
    hazards=st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3),
    saving=st.floats(0.01, 100.0),
    price=st.floats(1e-14, 1e-8),
)
def test_the_life_is_the_one_that_pays_best(hazards: list[float], saving: float, price: float) -> None:
    seen = kind("tool", (1, 1, 1), (0, 0, 0))
    edges = (0.0, *seen.ages_s)

    def worth(bins: int) -> float:
        """Of keeping through so many bins: expected saving less rent."""
        alive, total = 1.0, 0.0
        for i in range(bins):
            total += alive * (hazards[i] * saving - price * seen.mean_bytes * (edges[i + 1] - edges[i]))
            alive *= 1.0 - hazards[i]
        return total

    life = life_s(seen, hazards, saving, price)
    best = max(worth(bins) for bins in range(4))
    assert worth(edges.index(life)) == pytest.approx(best, abs=1e-9 * max(1.0, abs(best)) + 1e-12)


def test_returns_are_counted_by_age_even_after_the_state_was_discarded() -> None:
    returns = ReuseStats()
    for session in range(10):
        returns.rests(session, "tool", 0.0, 5.0, 7)
    for session, at_s in ((0, 3.0), (1, 9.9), (2, 45.0), (3, 4000.0)):
        assert returns.returns(session, at_s) == 7
    (tool,) = returns.readings(5000.0, lambda tokens: 2.0 * tokens)
    assert tool.ages_s == AGES_S
    assert tool.idle[:3] == (10, 8, 8)
    assert tool.reused[:3] == (2, 0, 1)
    assert sum(tool.reused) == 4
    assert (tool.mean_bytes, tool.rebuild_s) == (5.0, 14.0)
    assert returns.returns(99, 1.0) == 0


@given(
    st.lists(
        st.tuples(st.sampled_from(("rests", "returns", "reads")), st.integers(0, 7), st.floats(0.0, 120.0)), max_size=60
    )
)
def test_returns_are_those_of_a_recount_whenever_they_were_read(steps: list[tuple[str, int, float]]) -> None:
    """Between readings nothing is counted twice, or forgotten before its time."""
    edges, kinds = (10.0, 60.0, 300.0), ("tool", "human")
    returns = ReuseStats(edges)
    waiting: dict[int, tuple[str, float]] = {}
    ended: list[tuple[str, float, bool]] = []  # kind, age, came back
    now_s = 0.0
    for what, session, span_s in steps:
        now_s += span_s
        if what == "rests":
            waiting[session] = (kinds[session % 2], now_s)
            returns.rests(session, kinds[session % 2], now_s, 1.0, 7)
        elif what == "returns":
            kind, since_s = waiting.pop(session, ("", now_s))
            if kind:
                ended.append((kind, now_s - since_s, now_s - since_s <= edges[-1]))
            assert returns.returns(session, now_s) == (7 if kind and ended[-1][2] else 0)
        else:
            for late in [s for s, (_, since_s) in waiting.items() if now_s - since_s > edges[-1]]:
                kind, since_s = waiting.pop(late)
                ended.append((kind, now_s - since_s, False))
            ages = [*ended, *((kind, now_s - since_s, False) for kind, since_s in waiting.values())]
            for row in returns.readings(now_s, lambda tokens: tokens):
                of_kind = [(age_s, back) for kind, age_s, back in ages if kind == row.kind]
                starts = (-1.0, *edges[:-1])
                assert row.idle == tuple(sum(age_s > start for age_s, _ in of_kind) for start in starts)
                assert row.reused == tuple(
                    sum(back and low < age_s <= high for age_s, back in of_kind) for low, high in zip(starts, edges)
                )


def test_a_rule_names_its_kind_alone() -> None:
    clock = HeapClock()
    kept = store(clock)
    tool, human = Session(1), Session(2)
    rest(kept, tool, 10, "tool")
    rest(kept, human, 10, "human")
    clock.run(100.0)
    rule = RetentionRule(kind="human", demote_after_s=math.inf, discard_after_s=50.0)
    kept.apply(RetentionCommand(rules=(rule,)))
    assert kept.match(tool.chain()) == 10 * BLOCK
    assert kept.match(human.chain()) == 0
