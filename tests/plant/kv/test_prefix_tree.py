"""The blob tree against a plain table of blocks and holders."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from orchestrator.turn import KvChain, KvRun
from plant.kv.chains import BlobSizes, length, shared_blocks
from plant.kv.prefix_tree import PrefixTree
from tests.plant.kv.world import BLOCK, Session, names

SIZES = BlobSizes(block_bytes=1000, snapshot_bytes=70_000, snapshot_blocks=8)
TIERS = 3


class TreeAgainstTable(RuleBasedStateMachine):
    """Sessions hold, branch and let go; every block's holders and every tier's bytes are kept by hand beside."""

    def __init__(self) -> None:
        super().__init__()
        self.tree = PrefixTree(TIERS, SIZES)
        head = KvRun(99, 0, 5)
        self.sessions = [Session(1, head), Session(2, head), Session(3)]
        self.holds: list[tuple[KvChain, int, int, int]] = []
        self.table: list[Counter[tuple[int, int, int]]] = [Counter() for _ in range(TIERS)]

    @rule(
        which=st.integers(0, 2), blocks=st.integers(1, 20), keep=st.none() | st.integers(0, 30), tier=st.integers(0, 2)
    )
    def hold(self, which: int, blocks: int, keep: int | None, tier: int) -> None:
        chain = self.sessions[which].grow(blocks, keep)
        self._hold(chain, 0, length(chain), tier)

    @rule(which=st.integers(0, 2), low=st.integers(0, 30), size=st.integers(0, 30), tier=st.integers(0, 2))
    def hold_a_part(self, which: int, low: int, size: int, tier: int) -> None:
        chain = self.sessions[which].chain()
        low = min(low, length(chain))
        self._hold(chain, low, min(low + size, length(chain)), tier)

    def _hold(self, chain: KvChain, low: int, high: int, tier: int) -> None:
        self.tree.hold(chain, low, high, tier)
        self.table[tier].update(names(chain, low, high))
        self.holds.append((chain, low, high, tier))

    @rule(which=st.integers(0, 10_000))
    def release(self, which: int) -> None:
        if self.holds:
            chain, low, high, tier = self.holds.pop(which % len(self.holds))
            self.tree.release(chain, low, high, tier)
            self.table[tier].subtract(names(chain, low, high))
            self.table[tier] += Counter()

    @invariant()
    def holders_and_bytes_are_those_of_the_table(self) -> None:
        seen: Counter[tuple[int, int, int]] = Counter()
        for blob in self.tree:
            for k in range(blob.blocks):
                name = (blob.scope, blob.first + k, blob.start + k)
                assert [self.table[t][name] for t in range(TIERS)] == blob.held
                seen[name] += 1
        assert set(seen) == {name for table in self.table for name in table}
        assert max(seen.values(), default=1) == 1
        for tier, table in enumerate(self.table):
            snapshots = sum(1 for _, _, at in table if (at + 1) % SIZES.snapshot_blocks == 0)
            assert self.tree.used_bytes[tier] == len(table) * 1000 + snapshots * 70_000

    @invariant()
    def a_match_ends_at_the_first_gap(self) -> None:
        for session in self.sessions:
            chain = session.chain()
            matched = 0
            for name in names(chain):
                if not any(table[name] for table in self.table):
                    break
                matched += 1
            assert self.tree.match_blocks(chain) == matched
            parts = self.tree.find(chain)
            assert sum(high - low for _, low, high in parts) == matched
            assert all(blob.start <= low < high <= blob.start + blob.blocks for blob, low, high in parts)

    @invariant()
    def extents_follow_branches_and_not_turns(self) -> None:
        edges = sum(1 for hold in self.holds for _ in hold[0].runs)
        assert len(self.tree) <= 2 * edges + 2 * len(self.holds)


TestTreeAgainstTable = TreeAgainstTable.TestCase
TestTreeAgainstTable.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


def test_a_context_that_only_grows_stays_one_extent() -> None:
    tree, session = PrefixTree(1, SIZES), Session(1)
    before = session.grow(10)
    tree.hold(before, 0, 10, 0)
    for _ in range(500):
        chain = session.grow(3)
        tree.hold(chain, 0, length(chain), 0)
        tree.release(before, 0, length(before), 0)
        before = chain
    assert len(tree) == 1
    assert len(tree.find(before)) == 1
    assert tree.match_blocks(before) == 1510


def test_releasing_what_nobody_holds_is_refused() -> None:
    tree, chain = PrefixTree(1, SIZES), Session(1).grow(4)
    with pytest.raises(ValueError, match="nobody holds"):
        tree.release(chain, 0, 4, 0)
    tree.hold(chain, 0, 2, 0)
    with pytest.raises(ValueError, match="nobody holds"):
        tree.release(chain, 0, 4, 0)


def test_a_hybrid_resumes_only_where_a_snapshot_is() -> None:
    tree, session = PrefixTree(1, SIZES), Session(1)
    chain = session.grow(21)
    tree.hold(chain, 0, 21, 0)
    assert tree.resumable_blocks(chain, 21) == 16  # the last multiple of 8
    tree.mark_end(chain, 21, there=True)
    assert tree.resumable_blocks(chain, 21) == 21
    assert tree.resumable_blocks(chain, 20) == 16
    branch = KvChain((KvRun(1, 1, 12), KvRun(1, 50, 4)), BLOCK)
    assert tree.resumable_blocks(branch, tree.match_blocks(branch)) == 8
    tree.mark_end(chain, 21, there=False)
    assert tree.resumable_blocks(chain, 21) == 16


def test_shared_blocks_are_counted_by_runs() -> None:
    a = KvChain((KvRun(1, 0, 5), KvRun(2, 10, 7)), BLOCK)
    b = KvChain((KvRun(1, 0, 5), KvRun(2, 10, 3), KvRun(2, 40, 2)), BLOCK)
    assert shared_blocks(a, b) == shared_blocks(b, a) == 8
    assert shared_blocks(a, KvChain((), BLOCK)) == 0
