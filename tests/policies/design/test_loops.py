"""Margins, roots, tuning and fits, each against an independent way to the same number."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.design import fits, loops, separation, tandem_model, tuning
from policies.design.loops import on_axis
from policies.design.tuning import Fopdt

MODEL = tandem_model.TandemModel(slots=512, residence_s=5, dead_time_s=10)
GRID = loops.frequency_grid(40, 1)


def gate(gain_per_s: float) -> loops.Response:
    return tandem_model.proportional(gain_per_s).loop(MODEL)


def test_the_gain_margin_of_the_proportional_gate_is_its_distance_to_the_hopf_gain() -> None:
    point = loops.hopf_point(5, 10)
    margins = loops.margins(gate(0.5 * point.gain_per_s), GRID)
    assert margins.gain_margin == pytest.approx(2.0, rel=1e-4)
    assert margins.gain_crossing_rad_s == pytest.approx(point.omega_rad_s, rel=1e-3)


@pytest.mark.parametrize("gain", [0.22, 0.27, 0.295])
def test_the_delay_margin_is_what_takes_the_loop_to_its_hopf_point(gain: float) -> None:
    margins = loops.margins(gate(gain), GRID)
    edge = loops.hopf_point(5, 10 + margins.delay_margin_s)
    assert edge.gain_per_s == pytest.approx(gain, rel=1e-3)


def test_margins_of_a_rational_loop_agree_with_python_controls_polynomials() -> None:
    import control

    plant = loops.Rational([2.0], [1.0, 3.0, 2.0, 0.0])
    margins = loops.margins(plant, np.geomspace(1e-3, 1e3, 2000))
    gain_margin, phase_margin, modulus, *_ = control.stability_margins(plant.system())
    assert margins.gain_margin == pytest.approx(gain_margin, rel=1e-4)
    assert margins.phase_margin_deg == pytest.approx(phase_margin, rel=1e-4)
    assert margins.modulus_margin == pytest.approx(modulus, rel=1e-3)
    _, _, phase = control.disk_margins(plant.system(), np.geomspace(1e-2, 1e2, 4000))
    assert margins.disk_phase_deg == pytest.approx(float(phase), rel=1e-2)


@pytest.mark.parametrize("regime", ["starved", "full"])
@pytest.mark.parametrize(
    "law",
    [
        tandem_model.proportional(0.2),
        tandem_model.proportional_on_work(0.1),
        tandem_model.predictive_on_retirements(0.1, 20.0, 10.0),
        tandem_model.pi_at_decode(0.1, 30.0, 2.0),
    ],
    ids=["busy", "in_flight", "retirements", "at_decode"],
)
def test_the_pade_system_of_a_loop_agrees_with_its_exact_response_below_its_crossover(
    law: tandem_model.Linear, regime: tandem_model.Regime
) -> None:
    model = tandem_model.TandemModel(slots=512, residence_s=5, dead_time_s=10, observation_s=0.5)
    omega = np.geomspace(1e-3, 0.5, 40)
    exact, system = law.loop(model, regime)(on_axis(omega)), law.system(model, regime)
    assert np.max(np.abs(system(on_axis(omega)) - exact)) <= 1e-6 * np.max(np.abs(exact))


@given(share=st.floats(0.1, 3.0), residence_s=st.floats(1, 20), dead_s=st.floats(1, 20))
@settings(max_examples=25, deadline=None)
def test_the_root_search_finds_what_lambert_w_gives(share: float, residence_s: float, dead_s: float) -> None:
    gain = share * loops.hopf_point(residence_s, dead_s).gain_per_s
    loop = tandem_model.proportional(gain).loop(
        tandem_model.TandemModel(slots=100, residence_s=residence_s, dead_time_s=dead_s)
    )
    exact = loops.lag_root(residence_s=residence_s, dead_time_s=dead_s, gain_per_s=gain)
    fastest, slowest = min(residence_s, dead_s), residence_s + dead_s
    root = loops.rightmost_root(loop, fastest_s=fastest, slowest_s=slowest)
    assert root == pytest.approx(complex(exact.real, abs(exact.imag)), rel=1e-5, abs=1e-7)


@given(share=st.floats(0.2, 3.0))
@settings(max_examples=20, deadline=None)
def test_python_controls_nyquist_count_is_positive_beyond_the_hopf_gain_and_zero_below(share: float) -> None:
    import control

    if abs(share - 1) < 0.02:
        return
    loop = gate(share * loops.hopf_point(5, 10).gain_per_s)
    count = control.nyquist_response(loops.frequency_response(loop, np.linspace(1e-6, 20, 4001))).count
    assert (count > 0) == (share > 1)
    assert count % 2 == 0


def test_counting_the_pipeline_takes_the_dead_time_out_of_a_full_pools_loop() -> None:
    loop = tandem_model.proportional_on_work(0.1).loop(MODEL, "full")
    assert loops.rightmost_root(loop, fastest_s=10, slowest_s=15) == pytest.approx(-0.1, rel=1e-6)
    assert loops.margins(loop, GRID).gain_margin == np.inf


@given(kappa=st.floats(0.05, 2.0))
@settings(max_examples=15, deadline=None)
def test_paced_work_in_flight_is_stable_while_starved(kappa: float) -> None:
    loop = tandem_model.proportional_on_work(kappa / 15).loop(MODEL)
    assert loops.rightmost_root(loop, fastest_s=5, slowest_s=15 / kappa).real < 0


def test_learning_the_rate_from_a_starved_pools_retirements_leaves_a_root_of_141_seconds() -> None:
    loop = tandem_model.predictive_on_retirements(0.1, 20.0, 10.0).loop(MODEL)
    root = loops.rightmost_root(loop, fastest_s=5, slowest_s=20)
    assert root.imag == pytest.approx(0, abs=1e-9)
    assert -1 / root.real == pytest.approx(141, abs=1)


def test_python_controls_root_locus_crosses_the_axis_at_the_hopf_gain() -> None:
    import control

    gains = loops.hopf_point(5, 10).gain_per_s * np.array([0.9, 0.99, 1.01, 1.1])
    locus = control.root_locus_map(loops.Rational([1.0], [1.0, 0.2], 10.0).system(), gains).loci
    assert [bool(np.any(roots.real > 0)) for roots in locus] == [False, False, True, True]


def test_the_phase_error_of_pade_falls_with_its_order() -> None:
    loop = loops.Rational([0.3], [1.0, 0.2], 10.0)
    errors = [loops.pade_error_deg(loop, loop.system(order), GRID) for order in (1, 2, 4)]
    assert errors[0] > 10 > 1e-2 > errors[2]
    assert errors == sorted(errors, reverse=True)


# ------------------------------------------------------------------ tuning and separation


def test_simc_gives_the_textbook_margins_on_a_delayed_lag() -> None:
    plant = Fopdt(gain=2.0, tau_s=3.0, dead_time_s=1.0)
    gains = tuning.simc(plant)
    c, g = gains.response(), plant.response()
    margins = loops.margins(lambda s: c(s) * g(s), np.geomspace(1e-3, 1e2, 2000))
    # Skogestad (2003), table 2: gain margin 3.14, phase margin 61.4 degrees, delay margin 2.14 theta.
    assert margins.gain_margin == pytest.approx(3.14, abs=0.01)
    assert margins.phase_margin_deg == pytest.approx(61.4, abs=0.1)
    assert margins.delay_margin_s == pytest.approx(2.14, abs=0.01)


def two_loops(ratio: float, coupling: float) -> separation.Separation:
    return separation.separation(
        np.array([[-ratio]]), np.array([[coupling * ratio]]), np.array([[coupling]]), np.array([[-1.0]])
    )


def test_loops_ten_times_apart_are_apart_and_equal_ones_are_not() -> None:
    assert two_loops(20, 0.3).apart
    assert not two_loops(1, 0.3).apart
    assert not two_loops(20, 1.2).apart


@given(ratio=st.floats(2, 200), coupling=st.floats(0.05, 0.9))
def test_more_separation_never_makes_the_reduced_modes_worse(ratio: float, coupling: float) -> None:
    assert two_loops(2 * ratio, coupling).mode_error_ratio <= two_loops(ratio, coupling).mode_error_ratio + 1e-9


# ------------------------------------------------------------------ fits


def step_record(model: Fopdt, noise: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    t_s = np.arange(0, 80, 0.25)
    u = np.where(t_s >= 10, 3.0, 1.0)
    y = 7 + fits.fopdt_response(t_s, u, model.gain, model.tau_s, model.dead_time_s)
    return t_s, u, y + noise * np.random.default_rng(seed).standard_normal(len(t_s))


def test_a_held_input_through_a_lag_matches_the_exponential_even_between_samples() -> None:
    model = Fopdt(gain=2.0, tau_s=6.0, dead_time_s=3.1)
    t_s, _, y = step_record(model, 0.0)
    exact = 7 + 4.0 * -np.expm1(-np.maximum(t_s - 13.1, 0) / 6.0)
    assert np.max(np.abs(y - exact)) < 1e-9


def test_the_step_fit_finds_the_lag_within_its_confidence_interval_and_leaves_white_noise() -> None:
    model = Fopdt(gain=2.0, tau_s=6.0, dead_time_s=3.1)
    hits = 0
    for seed in range(5):
        fit = fits.fit_fopdt(*step_record(model, 0.3, seed))
        assert fit.model.dead_time_s == pytest.approx(3.1, abs=0.5)
        assert fit.explained > 0.95
        hits += abs(fit.model.tau_s - 6.0) < 1.5 * fit.tau_ci_s
        hits += fit.white
    assert hits >= 8


def test_a_record_without_excitation_is_refused_with_what_would_work() -> None:
    flat = np.zeros(100)
    with pytest.raises(ValueError, match="excite"):
        fits.fit_fopdt(np.arange(100.0), flat, flat)
    with pytest.raises(ValueError, match="excite"):
        fits.fit_arx(flat, flat)


def test_arx_finds_the_delay_pole_and_gain_of_a_difference_equation() -> None:
    rng = np.random.default_rng(3)
    u = np.repeat(rng.choice([-1.0, 1.0], 200), 5)
    y = np.zeros(1000)
    for k in range(7, 1000):
        y[k] = 0.9 * y[k - 1] + 0.5 * u[k - 7] + 0.1 * rng.standard_normal()
    fit = fits.fit_arx(u, y)
    assert fit.delay == 7
    assert fit.a[0] == pytest.approx(0.9, abs=3 * fit.a_ci[0])
    assert fit.gain == pytest.approx(5.0, rel=0.05)
    assert fit.a[0] == pytest.approx(0.9, abs=0.01)
    assert fit.white
    assert not fits.fit_arx(u, y, delay=2).white


def test_a_relay_experiment_gives_the_ultimate_point_within_the_describing_functions_error() -> None:
    plant = Fopdt(gain=1.0, tau_s=10.0, dead_time_s=2.0)
    t_s = np.arange(0, 200, 0.02)
    u, y = np.empty(len(t_s)), np.empty(len(t_s))
    state, late = 0.01, np.zeros(round(2 / 0.02))
    for k in range(len(t_s)):
        u[k], y[k] = (1.0 if state < 0 else -1.0), state
        out = late[k % len(late)]
        late[k % len(late)] = u[k]
        state += 0.02 * (out - state) / 10
    ultimate = fits.relay_ultimate(t_s[5000:], u[5000:], y[5000:])
    margin = loops.margins(lambda s: 0.5 * plant.response()(s), np.geomspace(1e-2, 10, 2000))
    assert ultimate.gain == pytest.approx(0.5 * margin.gain_margin, rel=0.1)
    assert ultimate.period_s == pytest.approx(2 * np.pi / margin.gain_crossing_rad_s, rel=0.08)
    with pytest.raises(ValueError, match="at least 4 cycles"):
        fits.relay_ultimate(t_s[:50], u[:50], y[:50])


def test_the_integrators_response_is_its_gain_over_s() -> None:
    s = on_axis(np.array([0.5]))
    assert Fopdt(gain=2.0, tau_s=np.inf, dead_time_s=0.0).response()(s)[0] == pytest.approx(2.0 / 0.5j)
