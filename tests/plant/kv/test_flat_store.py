"""The flat store against plain sets of block ids."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.turn import ClassName, KvChain, KvRun, TurnId, TurnView, WorkerId
from plant.kv.context import BUSY
from plant.kv.flat_store import FlatStore, Intervals

runs = st.lists(
    st.builds(KvRun, st.integers(0, 2), st.integers(0, 40), st.integers(1, 12)), min_size=0, max_size=4
).map(tuple)


def turn(chain: KvChain) -> TurnView:
    return TurnView(TurnId(0), 0, ClassName("chat"), 0, 0, 0.0, 1000, chain)


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 12)), max_size=20), st.integers(0, 80))
def test_intervals_are_a_set_of_integers(pieces: list[tuple[int, int]], probe: int) -> None:
    kept, plain = Intervals(), set[int]()
    for first, length in pieces:
        kept.add(first, first + length)
        plain |= set(range(first, first + length))
    run = 0
    while probe + run in plain:
        run += 1
    assert kept.run(probe) == run


@given(st.lists(runs, max_size=8), runs)
@settings(max_examples=150)
def test_a_hit_is_the_longest_leading_part_stored_and_never_passes_a_gap(
    history: list[tuple[KvRun, ...]], asked: tuple[KvRun, ...]
) -> None:
    store, plain = FlatStore(), set[tuple[int, int]]()
    for chain in history:
        store.put(turn(KvChain(chain, 64)), 0, WorkerId(1), BUSY)
        plain |= {(run.scope, run.first + k) for run in chain for k in range(run.blocks)}
    hit = 0
    for scope, block in ((run.scope, run.first + k) for run in asked for k in range(run.blocks)):
        if (scope, block) not in plain:
            break
        hit += 64
    assert store.match(KvChain(asked, 64)) == hit


def test_the_last_workers_to_decode_and_to_fill_a_context_are_near_it() -> None:
    store = FlatStore()
    chain = KvChain((KvRun(7, 0, 3),), 64)
    assert store.near(chain) == ()
    store.put(turn(chain), 192, WorkerId(4), BUSY)
    store.put(turn(chain), 192, WorkerId(5), "tool")
    assert store.near(KvChain((KvRun(7, 0, 9),), 64)) == (5, 4)
    store.put(turn(chain), 192, WorkerId(5), BUSY)
    assert store.near(chain) == (5,)
