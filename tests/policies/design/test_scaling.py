"""Scaling of workers through a start-up delay: critical gains, paths of whole workers, and thresholds."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from policies.design import capacity


def threshold_path(*, load_workers: float, start_workers: int, scale_down_at: float, ticks: int) -> list[int]:
    """Return the path of +-1 scaling on load per worker: up at or above 1, down below `scale_down_at`."""
    path = [start_workers]
    for _ in range(ticks - 1):
        each = load_workers / path[-1]
        path.append(path[-1] + (1 if each >= 1.0 else -1 if each < scale_down_at and path[-1] > 1 else 0))
    return path


@pytest.mark.parametrize(("unseen", "gain", "period"), [(1, 1.0, 6), (2, 0.618, 10), (4, 0.347, 18)])
def test_the_critical_gain_of_scaling_puts_a_root_on_the_unit_circle(unseen: int, gain: float, period: int) -> None:
    assert capacity.critical_gain(unseen) == pytest.approx(gain, abs=5e-4)
    assert capacity.critical_period_ticks(unseen) == period
    roots = capacity.scaling_roots(capacity.critical_gain(unseen), unseen)
    top = roots[np.argmax(np.abs(roots))]
    assert abs(top) == pytest.approx(1, abs=1e-6)
    assert abs(2 * np.pi / np.angle(top)) == pytest.approx(period, rel=1e-6)


def test_gain_one_with_one_unseen_tick_repeats_for_ever_and_counting_what_is_pending_settles_at_once() -> None:
    path = capacity.ceiling_path(need_workers=8, start_workers=4, unseen_ticks=1, ticks=24)
    assert path == [4, 8, 16, 16, 8, 4] * 4
    for unseen in range(5):
        aware = capacity.ceiling_path(
            need_workers=8, start_workers=4, unseen_ticks=unseen, ticks=12, pending_counted=True
        )
        assert aware == [4] + [8] * 11
    held = capacity.ceiling_path(need_workers=8, start_workers=4, unseen_ticks=1, ticks=60, window_ticks=20)
    assert max(held) == 16
    assert held[-30:] == [8] * 30


def test_two_unseen_ticks_at_gain_one_grow() -> None:
    path = capacity.ceiling_path(need_workers=8, start_workers=4, unseen_ticks=2, ticks=13)
    assert path == [4, 8, 16, 32, 32, 16, 4, 1, 1, 2, 16, 128, 512]


@pytest.mark.parametrize("workers", [2, 3, 5, 10])
@pytest.mark.parametrize("down", [0.79, 0.6, 0.45])
def test_the_hysteresis_rule_is_exactly_where_a_constant_load_makes_scaling_chatter(workers: int, down: float) -> None:
    there_and_back = [workers, workers - 1] * 2
    chatters = any(
        threshold_path(load_workers=float(load), start_workers=workers, scale_down_at=down, ticks=4) == there_and_back
        for load in np.linspace(0.01, workers * 1.2, 2000)
    )
    assert chatters != capacity.steps_never_chatter(down, 1.0, workers)


def test_thresholds_of_one_and_six_tenths_chatter_between_one_and_two_workers() -> None:
    path = threshold_path(load_workers=1.18, start_workers=1, scale_down_at=0.6, ticks=8)
    assert path == [1, 2] * 4


def test_a_floor_and_a_quicker_way_down_make_the_lap_of_two_unseen_ticks_shorter_than_the_linear_one() -> None:
    # The linear lap is ten ticks (150 s at 15 s); with at least four workers and one unseen tick on the way down a run
    # took seven (105 s): 4, 8, 16, 32, 32, 16, 4 for ever.
    path = capacity.ceiling_path(
        need_workers=8, start_workers=4, unseen_ticks=2, unseen_down_ticks=1, ticks=70, least_workers=4, most_workers=40
    )
    assert path == [4, 8, 16, 32, 32, 16, 4] * 10
    assert capacity.path_period_ticks(path) == 7
    assert capacity.critical_period_ticks(2) == 10


def test_a_path_stays_within_its_bounds_and_a_limited_step_at_most_doubles() -> None:
    path = capacity.ceiling_path(
        need_workers=20, start_workers=3, unseen_ticks=2, ticks=60, least_workers=3, most_workers=31, up_workers=2
    )
    assert min(path) >= 3
    assert max(path) <= 31
    assert all(after <= max(2 * before, before + 2) for before, after in pairwise(path))


def test_a_path_that_rests_has_no_period() -> None:
    assert capacity.path_period_ticks([4, 8, 8, 8, 8, 8, 8]) is None
    assert capacity.path_period_ticks([1, 2, 1, 2, 1, 2]) == 2
