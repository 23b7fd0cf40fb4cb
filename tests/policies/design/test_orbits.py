"""Closed forms of the two-stage loop against published numbers and against their own differential equation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from policies.design import capacity, describing, echo, loops, noise, orbits
from policies.design.loops import on_axis
from scenarios.verdict import known_signals as known

# slots, residence_s, dead_time_s, alpha, band: period_s, trough / slots, ready peak / slots, utilisation
FULL_EMPTY = [
    ((512, 5, 10, 2.0, 0.05), (33.39, 0.129, 2.0, 0.7867)),
    ((512, 10, 5, 2.0, 0.05), (19.05, 0.576, 0.5, 0.8961)),
    ((512, 10, 10, 1.5, 0.1), (34.55, 0.331, 0.5, 0.8029)),
    ((512, 20, 2, 2.0, 0.02), (8.55, 0.887, 0.1, 0.9698)),
    ((64, 5, 10, 2.0, 0.1), (33.68, 0.122, 2.0, 0.781)),
    ((2048, 5, 10, 3.0, 0.05), (42.06, 0.129, 4.0, 0.842)),
    ((512, 10, 1, 2.0, 0.05), (4.83, 0.860, 0.1, 0.959)),
]


def full_empty(slots: float, residence_s: float, dead_s: float, alpha: float, band: float) -> orbits.RelayOrbit:
    orbit = orbits.full_empty_orbit(
        slots=slots,
        residence_s=residence_s,
        dead_time_s=dead_s,
        band_turns=band * slots,
        rate_per_s=alpha * slots / residence_s,
    )
    assert orbit is not None
    return orbit


@pytest.mark.parametrize(("group", "want"), FULL_EMPTY)
def test_full_empty_orbits_have_the_stated_period_trough_buffer_and_utilisation(
    group: tuple[float, float, float, float, float], want: tuple[float, float, float, float]
) -> None:
    orbit = full_empty(*group)
    assert orbit.period_s == pytest.approx(want[0], abs=0.006)
    assert orbit.trough_turns / group[0] == pytest.approx(want[1], abs=6e-4)
    assert orbit.ready_peak_turns / group[0] == pytest.approx(want[2])
    assert orbit.utilization_ratio == pytest.approx(want[3], abs=6e-4)


def unsaturated(slots: float, dead_s: float) -> orbits.RelayOrbit:
    orbit = orbits.unsaturated_orbit(
        residence_s=10,
        dead_time_s=dead_s,
        open_at_turns=0.45 * slots,
        close_at_turns=0.55 * slots,
        rate_per_s=0.1 * slots,
    )
    assert orbit is not None
    return orbit


def test_unsaturated_orbits_have_the_stated_period_and_extremes() -> None:
    orbit = unsaturated(1000, 2)
    assert (orbit.period_s, orbit.peak_turns, orbit.trough_turns) == pytest.approx((10.779, 631.6, 368.4), abs=0.05)
    assert unsaturated(1000, 5).period_s == pytest.approx(19.595, abs=0.001)


def fluid_extremes_and_util(group: tuple[float, float, float, float, float], dt_s: float) -> tuple[float, float, float]:
    slots, residence_s, dead_s, alpha, band = group
    gate = known.Control(
        law="relay", ceiling_per_s=alpha * slots / residence_s, low=slots * (1 - band), high=slots * (1 - 1e-9)
    )
    # The simulation acts on what it saw one step ago.
    pool = known.Pool(slots=int(slots), residence_s=residence_s, dead_time_s=dead_s - dt_s)
    period = full_empty(*group).period_s
    bins = known.run_pool(
        pool,
        gate,
        rng=np.random.default_rng(0),
        rows=1,
        warmup_s=4 * period,
        window_s=4 * period,
        dt_s=dt_s,
        bin_s=dt_s,
        noise=False,
    )
    return float(bins.busy.min()) / slots, float(bins.ready.max()) / slots, float(bins.busy.mean()) / slots


@pytest.mark.slow
@pytest.mark.parametrize("group", [FULL_EMPTY[0][0], FULL_EMPTY[2][0]])
def test_the_orbit_solves_its_own_delay_differential_equation(group: tuple[float, float, float, float, float]) -> None:
    trough, ready, used = fluid_extremes_and_util(group, dt_s=0.02)
    orbit = full_empty(*group)
    assert trough == pytest.approx(orbit.trough_turns / group[0], rel=0.01)
    assert ready == pytest.approx(orbit.ready_peak_turns / group[0], rel=0.01)
    assert used == pytest.approx(orbit.utilization_ratio, abs=0.003)


@given(residence_s=st.floats(0.5, 100), ratio=st.floats(0.02, 8), alpha=st.floats(1.05, 5), band=st.floats(0.005, 0.4))
def test_a_longer_dead_time_makes_every_full_empty_cycle_longer_and_costlier(
    residence_s: float, ratio: float, alpha: float, band: float
) -> None:
    one = full_empty(100, residence_s, ratio * residence_s, alpha, band)
    two = full_empty(100, residence_s, 1.2 * ratio * residence_s, alpha, band)
    assert two.period_s > one.period_s > 2 * ratio * residence_s
    assert two.trough_turns < one.trough_turns
    assert 0 < (one.utilization_ratio or 0) <= 1


def test_no_cycle_is_promised_where_the_open_gate_cannot_outrun_the_pool() -> None:
    made = {"slots": 100, "residence_s": 10, "dead_time_s": 5, "rate_per_s": 9.0}
    assert orbits.relay_orbit(**made, open_at_turns=95, close_at_turns=100) is None
    assert orbits.relay_orbit(**made, open_at_turns=85, close_at_turns=95) is None


def test_a_relay_on_all_work_in_flight_moves_along_straight_lines() -> None:
    orbit = orbits.wip_relay_orbit(
        slots=512,
        residence_s=5,
        dead_time_s=10,
        open_at_turns=1580,
        close_at_turns=1600,
        rate_per_s=204.8,
        observation_s=0.05,
    )
    assert orbit is not None
    assert orbit.utilization_ratio == 1.0
    assert orbit.peak_turns - orbit.trough_turns == pytest.approx(20 + 204.8 * 0.05)
    assert orbit.period_s == pytest.approx((20 + 204.8 * 0.05) * (2 / 102.4))


def test_sampling_adds_half_its_period_to_the_dead_time() -> None:
    dead = orbits.effective_dead_time_s(2.0, period_s=1.0)
    assert unsaturated(1000, dead).period_s == pytest.approx(12.34, abs=0.01)


def test_the_describing_function_of_the_relay_predicts_the_period_within_eight_percent() -> None:
    slots, dead = 1000.0, 2.0
    plant = loops.Rational([1.0], [1.0, 0.1], dead)
    grid, sizes = loops.frequency_grid(10, dead, 4000), np.geomspace(51, 400, 60)
    balance = describing.harmonic_balance(describing.relay(0.05 * slots, 0.05 * slots), plant, grid, sizes)[0]
    assert balance.stable
    assert balance.period_s == pytest.approx(10.266, rel=0.002)
    exact = unsaturated(slots, dead)
    assert balance.period_s == pytest.approx(exact.period_s, rel=0.08)
    assert 0.75 < balance.amplitude / exact.amplitude_turns < 0.95


@pytest.mark.parametrize(
    ("shape", "function"),
    [
        (lambda x: np.clip(2 * x, -1, 1), describing.saturation(2.0, 1.0)),
        (lambda x: 0.5 * np.round(x / 0.5), describing.quantiser(0.5)),
        (np.sign, describing.relay(1.0)),
    ],
)
@pytest.mark.parametrize("amplitude", [0.2, 0.4, 1.7, 5.0])
def test_describing_functions_are_the_fundamental_of_what_the_nonlinearity_does(
    shape: object, function: describing.Describing, amplitude: float
) -> None:
    phase = (np.arange(200_000) + 0.5) * 2 * np.pi / 200_000
    assert callable(shape)
    fundamental = 2 * np.mean(shape(amplitude * np.sin(phase)) * np.sin(phase)) / amplitude
    assert function(amplitude).real == pytest.approx(fundamental, abs=2e-4)


# ------------------------------------------------------------------ Hopf, echo, capacity, noise


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


@pytest.mark.parametrize(
    ("kappa", "kept"), [(0.25, 0.05), (0.5, 0.11), (1, 0.22), (2, 0.40), (4, 0.63), (10, 0.88), (30, 0.98), (1e4, 1.0)]
)
def test_pacing_wears_a_bunch_down_as_stated(kappa: float, kept: float) -> None:
    assert echo.bunch_kept_ratio(kappa) == pytest.approx(kept, abs=0.006)


def test_a_ring_is_as_full_as_its_share_of_the_lap() -> None:
    made = {"slots": 512, "residence_s": 5, "dead_time_s": 10}
    assert echo.ring_utilization(cap_turns=512, **made) == pytest.approx(1 / 3)
    assert echo.ring_utilization(cap_turns=512 * 3, **made) == 1.0


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
    assert capacity.worst_chatter(down, 1.0, workers) != capacity.steps_never_chatter(down, 1.0, workers)


def test_thresholds_of_one_and_six_tenths_chatter_between_one_and_two_workers() -> None:
    path = capacity.threshold_path(load_workers=1.18, start_workers=1, scale_down_at=0.6, scale_up_at=1.0, ticks=8)
    assert path == [1, 2] * 4
    assert capacity.safe_scale_down_at(1.0, 2) == 0.5


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
    if share == 0.0:
        assert theory.variance_turns2 == pytest.approx(
            noise.erlang_pool_variance(throughput_per_s=level / t, residence_s=t), rel=1e-3
        )


def test_the_noise_of_a_loop_near_its_edge_has_the_period_of_its_slowest_root() -> None:
    gain = 0.9 * loops.hopf_point(10, 2).gain_per_s
    theory = noise.steady_noise(residence_s=10, dead_time_s=2, gain_per_s=gain, throughput_per_s=50)
    root = loops.lag_root(residence_s=10, dead_time_s=2, gain_per_s=gain)
    assert theory.period_s == pytest.approx(2 * np.pi / root.imag, rel=0.01)
    assert theory.period_s == pytest.approx(7.63, abs=0.05)


def test_the_axis_is_where_responses_are_read() -> None:
    assert on_axis(np.array([2.0]))[0] == 2j


def test_a_pool_whose_turns_do_not_slow_each_other_has_the_plain_orbit() -> None:
    made = {"slots": 512, "dead_time_s": 10, "open_at_turns": 460.8, "close_at_turns": 486.4, "rate_per_s": 204.8}
    plain = orbits.relay_orbit(residence_s=5.0, **made)
    loaded = orbits.loaded_full_empty_orbit(residence_s=(5.0, 5.0), **made)
    assert plain is not None
    assert loaded is not None
    for name in ("period_s", "trough_turns", "ready_peak_turns", "utilization_ratio"):
        assert getattr(loaded, name) == pytest.approx(getattr(plain, name), rel=1e-4)
    # Quicker when empty: it drains further and idles longer.
    lighter = orbits.loaded_full_empty_orbit(residence_s=(2.5, 5.0), **made)
    assert lighter is not None
    assert lighter.trough_turns < 0.7 * plain.trough_turns
    assert lighter.utilization_ratio < plain.utilization_ratio  # type: ignore[operator]  # both are full-empty
    assert orbits.loaded_full_empty_orbit(residence_s=(2.5, 5.0), **{**made, "rate_per_s": 100.0}) is None


def test_an_orbit_that_closes_early_enough_never_fills_and_one_that_closes_at_all_slots_is_the_reference() -> None:
    made = {"slots": 512, "residence_s": 5.0, "dead_time_s": 10.0, "rate_per_s": 204.8}
    reference = orbits.full_empty_orbit(band_turns=25.6, **made)
    same = orbits.relay_orbit(open_at_turns=486.4, close_at_turns=512, **made)
    assert reference == same
    low = orbits.relay_orbit(open_at_turns=40, close_at_turns=50, **{**made, "dead_time_s": 0.5})
    assert low is not None
    assert low.utilization_ratio is None
    assert orbits.full_empty_orbit(band_turns=472, close_at_turns=50, **{**made, "dead_time_s": 0.5}) is None
