"""Levels of what tiers hold: each is at every instant the sum of what counts in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.levels import TimeWeightedLevel
from plant.kv.tier_levels import TimedBytes, TimedDict


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def now(self) -> float:
        return self.now_s


CHANGES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1000), st.floats(0.0, 5.0)), max_size=40)


@given(CHANGES, st.sampled_from([(0, 1, 2, 3), (0, 0, 0, 0), (0, 1, 0, 1)]))
def test_bytes_that_share_a_level_add_up_in_it_weighted_by_time(
    changes: list[tuple[int, int, float]], shares: tuple[int, ...]
) -> None:
    clock, levels = Clock(), [TimeWeightedLevel() for _ in range(4)]
    used = TimedBytes(clock, [levels[k] for k in shares])  # type: ignore[arg-type]  # only `now` is asked
    held, areas = [0] * 4, [0.0] * 4
    for index, value, wait_s in changes:
        for k in range(4):
            areas[k] += held[k] * wait_s
        clock.now_s += wait_s
        held[shares[index]] += value - used[index]
        used[index] = value
        assert [level.value for level in levels] == held
    for level, area in zip(levels, areas):
        mean, low, high = level.close(0.0, clock.now_s)
        assert low <= mean <= high
        if clock.now_s > 1e-3:
            assert mean * clock.now_s == pytest.approx(area, abs=1e-6 * (1.0 + 4000.0 * clock.now_s))


def test_the_level_of_a_dict_is_the_number_of_its_entries() -> None:
    timed: TimedDict[str, int] = TimedDict(Clock())  # type: ignore[arg-type]  # only `now` is asked
    timed["a"], timed["b"], timed["a"] = 1, 2, 3
    assert timed.level.value == 2
    del timed["a"]
    assert timed.level.value == 1
