"""Runs held against theory where residence is not exponential, readings are old, work is scarce or laws are misled.

The figures in comments are those of an independent simulation, found where theory had said something else.
"""

from __future__ import annotations

import pytest

from scenarios.analyze import Analysis, analyze
from scenarios.analyze.analysis import MEASURED
from scenarios.cli.common import only
from scenarios.schema.load import load

pytestmark = pytest.mark.slow
FIXED = 'plant.residence.shape="fixed"'
AGE = ("telemetry.age_s=5", "telemetry.period_s=0.05", 'control.allow_period_below_age=["admission"]')


def poisson(rate_per_s: float) -> str:
    tokens = 'prompt = { shape = "fixed", mean_tokens = 1024 }, output = { shape = "fixed", mean_tokens = 256 }'
    return f'workload={{ kind = "poisson", rate_per_s = {rate_per_s:.1f}, {tokens} }}'


def verified(name: str, candidate: str, *sets: str) -> Analysis:
    (analysis,) = analyze(only(load(name, list(sets)), [candidate]), verify=True)
    assert analysis.measured is not None
    return analysis


def test_a_gain_that_is_safe_for_exponential_residence_cycles_with_a_fixed_one() -> None:
    # Said steady with a gain margin of 2.63; k_c is 0.284, and the run cycles at 14.05 s with a swing of 0.25.
    analysis = verified("hopf", "near", FIXED, "candidates.near.admission.k_per_s=0.32")
    assert analysis.differences == ()
    assert analysis.prediction.facts["hopf_gain_per_s"] == pytest.approx(0.284, abs=5e-4)
    assert analysis.prediction.margins["gain_margin"] == pytest.approx(0.89, abs=0.005)
    assert (analysis.prediction.verdict, analysis.prediction.period_s) == (
        "limit_cycle",
        pytest.approx(14.05, abs=0.02),
    )
    assert analysis.prediction.amplitude_ratio == pytest.approx(0.25, abs=0.005)
    assert analysis.to_json()["model"]["residence_shape"] == "fixed"  # type: ignore[index]


def test_a_gate_before_a_fixed_residence_has_the_lap_that_its_pool_remembers() -> None:
    sets = (FIXED, "plant.residence.mean_s=10", "plant.dead_time_s=5", "admission.max_release_per_s=102.4")
    analysis = verified("full_empty_reference", "retirement_gate", *sets, "horizon_s=900")
    assert analysis.differences == ()
    assert analysis.prediction.period_s == pytest.approx(25.30, abs=0.03)
    assert analysis.prediction.utilization_ratio == pytest.approx(0.788, abs=0.006)


@pytest.mark.parametrize(("rate_per_s", "word", "used"), [(97.0, "limit_cycle", 0.79), (82.0, "steady", 0.80)])
def test_a_gate_below_capacity_is_fed_or_stuck(rate_per_s: float, word: str, used: float) -> None:
    # At 97/s theory said steady at 0.947; the run cycled at 33.6 s and 0.792.
    analysis = verified("full_empty_reference", "retirement_gate", poisson(rate_per_s))
    assert analysis.differences == ()
    assert analysis.prediction.verdict == word
    assert analysis.prediction.utilization_ratio == pytest.approx(used, abs=0.01)
    assert analysis.prediction.facts["fed_utilization_ratio"] == pytest.approx(rate_per_s / 102.4, abs=1e-3)
    assert analysis.prediction.facts["stuck_utilization_ratio"] == pytest.approx(0.786, abs=0.003)


def test_a_relay_on_work_in_flight_with_old_readings_cycles() -> None:
    # Said steady at 0.996; the run gave 23.0 s and 0.893.
    analysis = verified("full_empty_reference", "inflight_credit_gate", *AGE, "horizon_s=900")
    assert analysis.differences == ()
    assert analysis.prediction.period_s == pytest.approx(23.0, rel=0.01)
    assert analysis.prediction.utilization_ratio == pytest.approx(0.893, abs=0.006)


@pytest.mark.parametrize(
    ("dead_time_s", "kind", "used"),
    [(20, "predictive_buffer_naive", 1.1 * 5 / 15), (20, "predictive_buffer", 0.729), (15, "predictive_buffer", 0.851)],
)
def test_a_law_that_assumes_too_short_a_pipeline_holds_what_its_balance_says(
    dead_time_s: int, kind: str, used: float
) -> None:
    # Assumed L = 10 s. The naive law balances where (N + B*) / (L + T - 10 s) T / N of the slots are busy.
    law = f'candidates.predictive_buffer.admission.kind="{kind}"'
    sets = (f"plant.dead_time_s={dead_time_s}", law, "warmup_s=700", "horizon_s=1200")
    analysis = verified("full_empty_reference", "predictive_buffer", *sets)
    assert analysis.differences == ()
    assert analysis.prediction.utilization_ratio == pytest.approx(used, abs=0.002)


def test_behind_a_slow_fill_word_swing_and_utilisation_are_those_of_the_turns_and_the_period_is_short() -> None:
    # A known limit: five workers are taken for one pool, which refills sooner; of the period a tenth may be amiss.
    scenario = only(load("agentx_slow_fill", ["horizon_s=2400"]), ["retirement_gate"])
    (analysis,) = analyze(scenario, unidentified="lanes", verify=True)
    assert analysis.measured is not None
    assert analysis.source == MEASURED
    assert analysis.prediction.verdict == analysis.measured["verdict"] == "limit_cycle"
    assert all(difference.startswith("period_s") for difference in analysis.differences)
    assert analysis.prediction.utilization_ratio == pytest.approx(analysis.measured["utilization_ratio"], abs=0.012)
    assert analysis.prediction.amplitude_ratio == pytest.approx(analysis.measured["amplitude_ratio"], abs=0.035)
    assert 0.8 < (analysis.prediction.period_s or 0.0) / float(str(analysis.measured["period_s"])) < 1.0


def test_a_proportional_law_far_from_its_set_point_holds_what_its_flow_says() -> None:
    # Said 0.000; the run held 0.611.
    analysis = verified("pipeline_blind", "low_gain", "plant.residence.mean_s=2.5")
    assert analysis.differences == ()
    assert analysis.prediction.utilization_ratio == pytest.approx(0.611, abs=0.002)
