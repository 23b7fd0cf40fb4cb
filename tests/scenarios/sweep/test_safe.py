"""The largest safe value lies on the calm side of the boundary, and its margin is to the next measured point."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.sweep import Axis, Point, Sweep
from scenarios.sweep.safe import calm, safe_range, safe_text
from scenarios.sweep.sweep import WORDS

VALUES = [0.2, 0.4, 0.8, 1.6]


def test_a_gain_is_safe_up_to_the_last_calm_value() -> None:
    safe = safe_range(VALUES, ["steady", "ringing", "limit_cycle", "unbounded"])
    assert safe is not None
    assert (safe.limit, safe.beyond, safe.rising) == (0.4, 0.8, True)
    assert safe.margin == pytest.approx(2.0)


def test_a_dwell_is_safe_from_the_least_calm_value_on() -> None:
    safe = safe_range(VALUES, ["limit_cycle", "limit_cycle", "steady", "steady"])
    assert safe is not None
    assert (safe.limit, safe.beyond, safe.rising) == (0.8, 0.4, False)


def test_an_axis_that_is_calm_everywhere_or_at_neither_end_has_no_boundary() -> None:
    everywhere = safe_range(VALUES, ["steady"] * 4)
    assert everywhere is not None
    assert everywhere.beyond is None
    assert safe_range(VALUES, ["echo", "steady", "steady", "echo"]) is None


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=12))
def test_every_value_within_the_safe_range_was_calm_and_the_next_was_not(words: list[str]) -> None:
    values = [float(i + 1) for i in range(len(words))]
    safe = safe_range(values, words)
    if safe is None:
        assert not calm(words[0])
        assert not calm(words[-1])
        return
    inside = [w for v, w in zip(values, words) if (v <= safe.limit) == safe.rising or v == safe.limit]
    assert all(map(calm, inside))
    assert safe.beyond is None or not calm(dict(zip(values, words))[safe.beyond])


def test_a_map_says_the_safe_range_for_each_value_of_its_other_axis() -> None:
    axes = tuple(Axis(path=f"plant.{name}", values=(1.0, 2.0), log=False) for name in ("a_s", "b_s"))
    points = tuple(
        Point(
            values={"plant.a_s": a, "plant.b_s": b},
            measured={"verdict": "limit_cycle" if a * b > 2 else "steady"},
            expected=None,
        )
        for a in (1.0, 2.0)
        for b in (1.0, 2.0)
    )
    sentence = safe_text(Sweep(candidate="x", signal="s", axes=axes, points=points))
    assert "With b_s = 1: every " in sentence
    assert "With b_s = 2: the largest safe " in sentence
    assert "a factor of 2 away, is not." in sentence
