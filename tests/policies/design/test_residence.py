"""Shapes of residence: what theory uses of each agrees with drawn samples and with the exponential forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plant.theory.tandem import Residence
from policies.design import loops, stability, tandem_model
from policies.design.noise import noise_spectrum, steady_noise
from policies.design.residence import EXPONENTIAL, Shape, measured_shape, step_weights
from policies.design.steady import retirement_spectrum

DRAWN = (np.arange(20_000) + 0.5) / 20_000
SHAPES = [
    EXPONENTIAL,
    Shape(kind="erlang", stages=4),
    Shape(kind="fixed"),
    Shape(kind="lognormal", cv_ratio=0.4),
    Shape(kind="lognormal", cv_ratio=2.0),
]


def samples(shape: Shape) -> np.ndarray:
    law = Residence(mean_s=1.0, shape=shape.kind, stages=shape.stages, cv_ratio=shape.cv_ratio)  # type: ignore[arg-type]
    return np.array([law.seconds(float(u)) for u in DRAWN[::4]])


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_transform_and_mean_excess_are_those_of_the_plants_own_draws(shape: Shape) -> None:
    drawn = samples(shape)
    for omega in (0.3, 1.0, 4.0):
        assert abs(shape.transform(np.array([1j * omega]))[0] - np.exp(-1j * omega * drawn).mean()) < 0.01
    ages = np.array([0.0, 0.5, 1.0, 2.0])
    assert shape.excess(ages) == pytest.approx([np.maximum(drawn - a, 0).mean() for a in ages], abs=0.02)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("step", [0.01, 0.037])
def test_steps_keep_the_mean_and_nearly_the_spread(shape: Shape, step: float) -> None:
    weights = step_weights(shape, 1.0, step)
    ends = step * np.arange(1, len(weights) + 1)
    assert weights.sum() == pytest.approx(1.0, abs=1e-9)
    assert weights @ ends == pytest.approx(1.0, abs=2e-3)
    assert np.sqrt(max(weights @ ends**2 - 1, 0)) == pytest.approx(shape.cv, abs=0.03)


def test_a_measured_shape_of_a_laws_draws_has_the_laws_hopf_gain() -> None:
    shape = Shape(kind="lognormal", cv_ratio=0.5)
    known = loops.hopf_point(10.0, 2.0, shape)
    measured = loops.hopf_point(10.0, 2.0, measured_shape(samples(shape).tolist()))
    assert measured.gain_per_s == pytest.approx(known.gain_per_s, rel=0.01)
    assert measured.period_s == pytest.approx(known.period_s, rel=0.01)
    with pytest.raises(ValueError, match="above 0"):
        measured_shape([0.0, 0.0])


@given(residence_s=st.floats(1, 20), dead_s=st.floats(0.5, 20))
@settings(max_examples=20, deadline=None)
def test_a_fixed_residence_has_the_closed_forms_hopf_point(residence_s: float, dead_s: float) -> None:
    point = loops.hopf_point(residence_s, dead_s, Shape(kind="fixed"))
    omega = np.pi / (dead_s + residence_s / 2)
    assert point.omega_rad_s == pytest.approx(omega, rel=1e-6)
    assert point.gain_per_s == pytest.approx(omega / 2 / np.sin(omega * residence_s / 2), rel=1e-6)


def test_the_near_candidates_fixed_residence_has_the_gain_that_an_independent_nyquist_gives() -> None:
    # k_c 0.284, so that k = 0.32 has a margin of 0.89; with exponential residence it would have 2.63.
    point = loops.hopf_point(10.0, 2.025, Shape(kind="fixed"))
    assert point.gain_per_s == pytest.approx(0.284, abs=5e-4)
    assert point.gain_per_s / 0.32 == pytest.approx(0.89, abs=0.005)
    assert point.period_s == pytest.approx(14.05, abs=0.01)
    assert loops.hopf_point(10.0, 2.025).gain_per_s / 0.32 == pytest.approx(2.63, abs=0.01)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_roots_cross_the_axis_at_the_hopf_gain_of_every_shape(shape: Shape) -> None:
    model = tandem_model.TandemModel(slots=100, residence_s=8.0, dead_time_s=3.0, shape=shape)
    critical = loops.hopf_point(8.0, 3.0, shape).gain_per_s
    grid = stability.loop_grid(model, 20.0)
    counts = [
        stability.unstable_count(tandem_model.proportional(share * critical).loop(model), grid)
        for share in (0.5, 0.97, 1.03)
    ]
    assert counts == [0, 0, 2]


@pytest.mark.parametrize("shape", SHAPES[:3], ids=str)
def test_the_pade_system_of_a_shape_agrees_with_its_exact_response(shape: Shape) -> None:
    model = tandem_model.TandemModel(slots=512, residence_s=5, dead_time_s=10, observation_s=0.5, shape=shape)
    omega = np.geomspace(1e-3, 0.5, 40)
    for law in (tandem_model.proportional(0.2), tandem_model.proportional_on_work(0.1)):
        exact, system = law.loop(model)(loops.on_axis(omega)), law.system(model)
        assert np.max(np.abs(system(loops.on_axis(omega)) - exact)) <= 1e-5 * np.max(np.abs(exact))


@pytest.mark.slow
def test_an_open_pool_is_a_poisson_count_whatever_the_shape_and_even_release_of_equal_turns_is_silent() -> None:
    pool = {"residence_s": 5.0, "dead_time_s": 3.0, "gain_per_s": 0.0, "throughput_per_s": 40.0}
    for shape in SHAPES:
        noisy = steady_noise(**pool, shape=shape)
        assert noisy.variance_turns2 == pytest.approx(40.0 * 5.0, rel=0.02)
    _, poisson = noise_spectrum(**pool, shape=Shape(kind="fixed"))
    _, silent = noise_spectrum(**pool, release_fano=0.0, shape=Shape(kind="fixed"))
    assert np.max(silent) < 1e-9 * np.max(poisson)  # rounding alone is left


def test_a_full_pools_retirements_are_poisson_for_exponential_and_cv_squared_at_rest_for_others() -> None:
    slow = np.array([1e-3])
    assert retirement_spectrum(slow, 5.0, EXPONENTIAL) == pytest.approx([1.0])
    for shape in (Shape(kind="erlang", stages=4), Shape(kind="lognormal", cv_ratio=2.0)):
        assert retirement_spectrum(slow, 5.0, shape)[0] == pytest.approx(shape.cv**2, rel=0.03)


# ------------------------------------------------------------------ pipeline and observation


@pytest.mark.parametrize("regime", ["starved", "full"])
def test_feedback_on_busy_slots_bears_as_much_pipeline_as_age(regime: tandem_model.Regime) -> None:
    model = tandem_model.TandemModel(slots=512, residence_s=5, dead_time_s=10, observation_s=0.025)
    law = tandem_model.proportional(0.27, "at_decode" if regime == "full" else "busy")
    law = tandem_model.proportional(0.1, "at_decode") if regime == "full" else law
    grid = stability.loop_grid(model, 50.0)
    margins = loops.margins(law.loop(model, regime), grid)
    assert stability.pipeline_margin_s(law, model, regime, grid) == pytest.approx(margins.delay_margin_s, rel=1e-3)


def test_work_counted_from_its_release_on_bears_any_pipeline_but_not_any_age() -> None:
    model = tandem_model.TandemModel(slots=512, residence_s=5, dead_time_s=10, observation_s=0.025)
    law, grid = tandem_model.proportional_on_work(0.1), stability.loop_grid(model, 50.0)
    assert stability.pipeline_margin_s(law, model, "starved", grid) == np.inf
    assert loops.margins(law.loop(model), grid).delay_margin_s < 15


def test_a_rate_learnt_from_retirements_has_a_pipeline_margin_at_which_a_root_reaches_the_axis() -> None:
    model = tandem_model.TandemModel(slots=512, residence_s=5, dead_time_s=10, observation_s=0.025)
    law, grid = tandem_model.predictive_on_retirements(0.1, 20, 10), stability.loop_grid(model, 50.0)
    margin = stability.pipeline_margin_s(law, model, "starved", grid)
    counts = []
    for share in (0.98, 1.02):
        longer = tandem_model.TandemModel(
            slots=512, residence_s=5, dead_time_s=10 + share * margin, observation_s=0.025
        )
        counts.append(stability.unstable_count(law.loop(longer), stability.loop_grid(longer, 90.0)))
    assert counts[0] == 0
    assert counts[1] > 0


def test_a_gain_margin_is_found_beyond_the_pipelines_frequencies() -> None:
    # Work in flight, read half a tick of 0.05 s late: an integrator with that delay, k_c = pi / (2 x 0.025).
    model = tandem_model.TandemModel(slots=512, residence_s=5, dead_time_s=10, observation_s=0.025)
    loop = tandem_model.proportional_on_work(0.1).loop(model, "full")
    margin = stability.far_gain_margin(loop, stability.loop_grid(model, 50.0))
    assert margin == pytest.approx(np.pi / 0.05 / 0.1, rel=1e-3)
