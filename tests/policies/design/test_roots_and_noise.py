"""Hopf points, modes of rings and the noise of steady flow, against published numbers and simulated loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from policies.design import echo, loops, noise


@pytest.mark.parametrize(
    ("residence_s", "dead_s", "gain", "period_s"),
    [(10, 2, 0.8502, 7.44), (10, 5, 0.3807, 17.11), (5, 10, 0.3040, 27.45)],
)
def test_hopf_points_are_where_the_rightmost_root_meets_the_axis(
    residence_s: float, dead_s: float, gain: float, period_s: float
) -> None:
    point = loops.hopf_point(residence_s, dead_s)
    assert (point.gain_per_s, point.period_s) == pytest.approx((gain, period_s), rel=5e-4)
    root = loops.lag_root(residence_s=residence_s, dead_time_s=dead_s, gain_per_s=point.gain_per_s)
    assert root.real == pytest.approx(0, abs=1e-9)
    assert root.imag == pytest.approx(point.omega_rad_s)


def test_roots_below_the_hopf_gain_have_the_stated_growth() -> None:
    critical = loops.hopf_point(10, 2).gain_per_s
    for share, growth in ((0.8, -0.0800), (0.95, -0.0185)):
        root = loops.lag_root(residence_s=10, dead_time_s=2, gain_per_s=share * critical)
        assert root.real == pytest.approx(growth, abs=1e-4)


def test_an_integrator_behind_a_dead_time_swings_at_four_dead_times() -> None:
    point = loops.hopf_point(None, 3.0)
    assert (point.gain_per_s * 3, point.period_s) == pytest.approx((np.pi / 2, 12.0))


@given(residence_s=st.floats(0.5, 50), dead_s=st.floats(0.5, 50), stages=st.integers(1, 120))
@example(residence_s=16.0, dead_s=0.5, stages=120)  # a branch that is no solution once overflowed
def test_no_ring_ever_grows(residence_s: float, dead_s: float, stages: int) -> None:
    mode = echo.ring_mode(residence_s=residence_s, dead_time_s=dead_s, stages=stages)
    assert mode.root_per_s.real < 0


@pytest.mark.parametrize("stages", [25, 50, 100])
def test_a_rings_period_is_its_transit_and_its_damping_pi_cv_squared(stages: int) -> None:
    mode = echo.ring_mode(residence_s=10, dead_time_s=10, stages=stages)
    cv = 1 / np.sqrt(stages)
    assert mode.period_s == pytest.approx(20, rel=0.015)
    expected = echo.ring_damping(residence_s=10, dead_time_s=10, residence_cv=cv)
    assert mode.damping_ratio == pytest.approx(expected, rel=0.06)


def test_a_ring_is_as_full_as_its_share_of_the_lap() -> None:
    ring = {"slots": 512, "residence_s": 5, "dead_time_s": 10}
    assert echo.ring_utilization(cap_turns=512, **ring) == pytest.approx(1 / 3)
    assert echo.ring_utilization(cap_turns=512 * 3, **ring) == 1.0


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.9])
def test_the_linear_noise_variance_is_that_of_a_simulated_loop(share: float) -> None:
    t, dead, level = 10.0, 2.0, 500.0
    gain = share * loops.hopf_point(t, dead).gain_per_s
    rng, dt, rows = np.random.default_rng(7), 0.05, 200
    # Euler's step adds half of itself to the dead time.
    theory = noise.steady_noise(residence_s=t, dead_time_s=dead + dt / 2, gain_per_s=gain, throughput_per_s=level / t)
    delay, steps = round(dead / dt), 6000
    x, past, seen = np.zeros(rows), np.zeros((delay, rows)), []
    for i in range(steps):
        late = past[i % delay].copy()
        past[i % delay] = x
        x = x + dt * (-x / t - gain * late) + np.sqrt(2 * level / t * dt) * rng.standard_normal(rows)
        if i > steps // 2:
            seen.append(float(np.mean(x**2)))
    assert theory.variance_turns2 == pytest.approx(np.mean(seen), rel=0.08)
    if share == 0.0:  # a pool that never fills holds a Poisson count
        assert theory.variance_turns2 == pytest.approx(level, rel=1e-3)


def test_the_noise_of_a_loop_near_its_edge_has_the_period_of_its_slowest_root() -> None:
    gain = 0.9 * loops.hopf_point(10, 2).gain_per_s
    theory = noise.steady_noise(residence_s=10, dead_time_s=2, gain_per_s=gain, throughput_per_s=50)
    root = loops.lag_root(residence_s=10, dead_time_s=2, gain_per_s=gain)
    assert theory.period_s == pytest.approx(2 * np.pi / root.imag, rel=0.01)
    assert theory.period_s == pytest.approx(7.63, abs=0.05)
