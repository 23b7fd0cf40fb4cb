"""Runs of block ids against the equivalent plain lists."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scenarios.workloads import blocks

ids = st.lists(st.integers(0, 40), max_size=30)


@given(ids)
def test_runs_are_another_spelling_of_the_same_ids(plain: list[int]) -> None:
    runs = blocks.runs_of(plain)
    assert blocks.ids_of(runs) == plain
    assert blocks.count(runs) == len(plain)
    assert blocks.join(runs) == runs


@given(ids, ids)
def test_the_common_head_is_that_of_the_plain_lists(a: list[int], b: list[int]) -> None:
    plain = next((k for k, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    assert blocks.common(blocks.runs_of(a), blocks.runs_of(b)) == plain


@given(ids, st.integers(0, 40))
def test_head_and_tail_make_the_whole(plain: list[int], cut: int) -> None:
    runs = blocks.runs_of(plain)
    assert blocks.ids_of(blocks.head(runs, cut)) == plain[:cut]
    assert blocks.ids_of(blocks.tail(runs, cut)) == plain[cut:]


@given(ids)
def test_the_first_repeat_is_where_the_plain_list_has_it(plain: list[int]) -> None:
    first = next((k for k, i in enumerate(plain) if i in plain[:k]), None)
    assert blocks.before_repeat(blocks.runs_of(plain)) == first


@given(st.lists(ids, max_size=12))
def test_the_seen_set_remembers_exactly_what_was_added(prompts: list[list[int]]) -> None:
    seen, plain = blocks.SeenBlocks(), set[int]()
    for prompt in prompts:
        leading = next((k for k, i in enumerate(prompt) if i not in plain), len(prompt))
        runs = blocks.runs_of(prompt)
        assert seen.leading_blocks(runs) == leading
        seen.add(runs)
        plain.update(prompt)
        assert len(seen) == len(plain)
