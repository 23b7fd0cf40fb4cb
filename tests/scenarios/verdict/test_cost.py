"""What a swing adds to the slowest hundredth."""

from __future__ import annotations

import numpy as np
import pytest

from scenarios.verdict.flow import added_p99_s


def test_a_latency_that_does_not_swing_has_nothing_added() -> None:
    at = np.arange(0.0, 1000.0, 0.5)
    assert added_p99_s(at, np.full(len(at), 3.0), 30.0) == pytest.approx(0.0, abs=1e-9)


def test_the_swing_of_a_square_wave_is_taken_out_of_the_tail() -> None:
    at = np.arange(0.0, 1200.0, 0.25)
    latency = np.where(at % 40.0 < 20.0, 2.0, 6.0)
    # Without the swing every turn takes the mean, 4 s: the tail at 6 s had 2 s added.
    assert added_p99_s(at, latency, 40.0) == pytest.approx(2.0, abs=0.02)


def test_stretches_without_turns_are_no_trouble() -> None:
    at = np.arange(0.0, 1200.0, 0.25)
    open_half = at % 40.0 < 20.0
    assert added_p99_s(at[open_half], np.full(int(open_half.sum()), 3.0), 40.0) == pytest.approx(0.0, abs=1e-9)
