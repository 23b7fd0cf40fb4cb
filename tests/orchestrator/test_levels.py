"""A ramp's mean is its integral, and its extremes are those of what lasted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.levels import TimeWeightedRamp

STEP_S = 0.25
moves = st.tuples(st.integers(1, 40), st.integers(0, 9), st.integers(-3, 3))


@given(moves=st.lists(moves, max_size=12), bins=st.integers(1, 6))
def test_a_ramp_has_the_mean_and_the_extremes_of_its_path(moves: list[tuple[int, int, int]], bins: int) -> None:
    ramp, width_s = TimeWeightedRamp(scale=0.5), 10 * STEP_S
    at: dict[int, list[tuple[int, int]]] = {}
    for step, base, rate in moves:
        at.setdefault(step, []).append((base, rate))
    base = rate = 0.0
    path: list[tuple[float, float]] = []  # at both ends of each step
    for step in range(10 * bins):
        for more, faster in at.get(step, ()):
            now_s = step * STEP_S
            ramp.change(more - faster * now_s, faster, now_s)
            base, rate = base + more - faster * now_s, rate + faster
        path.append((0.5 * (base + rate * step * STEP_S), 0.5 * (base + rate * (step + 1) * STEP_S)))
        if step % 10 == 9:
            closed = ramp.close((step - 9) * STEP_S, (step + 1) * STEP_S)
            inside = path[-10:]
            mean = sum(0.5 * (a + b) * STEP_S for a, b in inside) / width_s
            ends = [end for pair in inside for end in pair]
            lowest = min(ends)
            if lowest >= 0.0:  # a level of turns or bytes is never below nothing
                assert closed == pytest.approx((mean, lowest, max(ends)))


def test_a_change_of_scale_counts_from_its_instant() -> None:
    ramp = TimeWeightedRamp(scale=1.0)
    ramp.change(4.0, 0.0, 0.0)
    ramp.set_scale(0.5, 1.0)
    assert ramp.close(0.0, 2.0) == pytest.approx((3.0, 2.0, 4.0))
    assert ramp.close(2.0, 2.0) == (2.0, 2.0, 2.0)
