"""Closed forms of the two-stage loop against published numbers and against their own differential equation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.design import describing, loops, orbits
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
    orbit = full_empty(100, residence_s, ratio * residence_s, alpha, band)
    two = full_empty(100, residence_s, 1.2 * ratio * residence_s, alpha, band)
    assert two.period_s > orbit.period_s > 2 * ratio * residence_s
    assert two.trough_turns < orbit.trough_turns
    assert 0 < (orbit.utilization_ratio or 0) <= 1


def test_no_cycle_is_predicted_where_the_open_gate_cannot_outrun_the_pool() -> None:
    gate = {"slots": 100, "residence_s": 10, "dead_time_s": 5, "rate_per_s": 9.0}
    assert orbits.relay_orbit(**gate, open_at_turns=95, close_at_turns=100) is None
    assert orbits.relay_orbit(**gate, open_at_turns=85, close_at_turns=95) is None


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


def test_a_pool_whose_turns_do_not_slow_each_other_has_the_plain_orbit() -> None:
    gate = {"slots": 512, "dead_time_s": 10, "open_at_turns": 460.8, "close_at_turns": 486.4, "rate_per_s": 204.8}
    plain = orbits.relay_orbit(residence_s=5.0, **gate)
    loaded = orbits.loaded_full_empty_orbit(residence_s=(5.0, 5.0), **gate)
    assert plain is not None
    assert loaded is not None
    for name in ("period_s", "trough_turns", "ready_peak_turns", "utilization_ratio"):
        assert getattr(loaded, name) == pytest.approx(getattr(plain, name), rel=1e-4)
    # Quicker when empty: it drains further and idles longer.
    lighter = orbits.loaded_full_empty_orbit(residence_s=(2.5, 5.0), **gate)
    assert lighter is not None
    assert lighter.trough_turns < 0.7 * plain.trough_turns
    assert lighter.utilization_ratio < plain.utilization_ratio  # type: ignore[operator]  # both are full-empty
    assert orbits.loaded_full_empty_orbit(residence_s=(2.5, 5.0), **{**gate, "rate_per_s": 100.0}) is None


def test_an_orbit_that_closes_early_enough_never_fills_and_one_that_closes_at_all_slots_is_the_reference() -> None:
    gate = {"slots": 512, "residence_s": 5.0, "dead_time_s": 10.0, "rate_per_s": 204.8}
    reference = orbits.full_empty_orbit(band_turns=25.6, **gate)
    same = orbits.relay_orbit(open_at_turns=486.4, close_at_turns=512, **gate)
    assert reference == same
    low = orbits.relay_orbit(open_at_turns=40, close_at_turns=50, **{**gate, "dead_time_s": 0.5})
    assert low is not None
    assert low.utilization_ratio is None
    assert orbits.full_empty_orbit(band_turns=472, close_at_turns=50, **{**gate, "dead_time_s": 0.5}) is None
