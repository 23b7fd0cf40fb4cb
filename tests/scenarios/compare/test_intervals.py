from __future__ import annotations

import numpy as np
import pytest

from scenarios.compare.join import differences, interval, joined


@pytest.mark.parametrize("seeds", [2, 3, 5, 10])
def test_an_interval_of_normal_means_covers_what_it_promises(seeds: int) -> None:
    rng = np.random.default_rng(1)
    draws = rng.normal(10.0, 2.0, (1500, seeds))
    spans = [interval(row)["ci95"] for row in draws]
    covered = np.mean([low <= 10.0 <= high for low, high in spans])
    assert covered == pytest.approx(0.95, abs=0.02)


def test_an_interval_of_skewed_latencies_is_not_far_from_what_it_promises() -> None:
    rng = np.random.default_rng(2)
    draws = rng.exponential(1.0, (1500, 5))
    covered = np.mean([low <= 1.0 <= high for low, high in (interval(row)["ci95"] for row in draws)])
    assert covered > 0.86


def test_equal_values_have_an_interval_of_no_width_and_one_value_has_none() -> None:
    assert interval([3.0, 3.0, 3.0]) == {"mean": 3.0, "ci95": [3.0, 3.0]}
    assert interval([3.0]) == {"mean": 3.0, "ci95": None}


def test_seeds_are_names_and_have_no_mean() -> None:
    both = [{"seed": 7, "x": 1.0}, {"seed": 8, "x": 3.0}]
    assert joined(both)["seed"] == [7, 8]
    assert joined(both)["x"]["mean"] == 2.0
    assert "seed" not in differences(both, both)
