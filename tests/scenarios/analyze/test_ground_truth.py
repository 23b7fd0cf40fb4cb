"""Runs held against the closed forms: the fluid plant on every row, the plant of turns on the rows that are quick.

Tolerances: fluid 0.5 % of the period and 0.005 of utilisation; turns 3 % for pools of 64, 2 % else, 0.01.
"""

from __future__ import annotations

from statistics import fmean

import numpy as np
import pytest

from policies.design import echo, noise, orbits
from policies.design.loops import hopf_point
from scenarios.run.execute import run
from scenarios.schema.scenario import Scenario
from scenarios.verdict.run import column, window_of

pytestmark = pytest.mark.slow
BUSY = "decode_occupancy_ratio"


def plant_of(
    law: dict[str, object],
    *,
    plant: dict[str, object],
    ceiling_per_s: float | None,
    horizon_s: float,
    warmup_s: float,
    period_s: float = 0.05,
    seed: int = 11,
) -> Scenario:
    return Scenario.model_validate(
        {
            "title": "a row of the table",
            "question": "does the run agree with the closed form?",
            "seed": seed,
            "horizon_s": horizon_s,
            "warmup_s": warmup_s,
            "workload": {"kind": "saturated", "waiting_turns": 256},
            "plant": plant,
            "admission": {} if ceiling_per_s is None else {"max_release_per_s": ceiling_per_s},
            "control": {"admission_period_s": period_s},
            "candidates": [{"name": "law", "admission": law}],
        }
    )


def tandem(slots: int, residence_s: float, dead_s: float, **shape: object) -> dict[str, object]:
    return {
        "kind": "tandem",
        "slots": slots,
        "dead_time_s": dead_s,
        "residence": {"mean_s": residence_s, **shape},
    }


def fluid(slots: int, residence_s: float, dead_s: float, step_s: float) -> dict[str, object]:
    return {**tandem(slots, residence_s, dead_s), "kind": "fluid", "step_s": step_s}


def gate(open_at: float, close_at: float) -> dict[str, object]:
    return {"kind": "retirement_gate", "open_at_ratio": open_at, "close_at_ratio": close_at}


@pytest.mark.parametrize(
    ("slots", "residence_s", "dead_s", "alpha", "band"),
    [
        (512, 5, 10, 2.0, 0.05),
        (512, 10, 5, 2.0, 0.05),
        (512, 10, 10, 1.5, 0.1),
        (512, 20, 2, 2.0, 0.02),
        (2048, 5, 10, 3.0, 0.05),
        (512, 10, 1, 2.0, 0.05),
    ],
)
def test_the_fluid_plants_full_empty_cycle_has_the_closed_forms_period_and_utilisation(
    slots: int, residence_s: float, dead_s: float, alpha: float, band: float
) -> None:
    rate = alpha * slots / residence_s
    # The gate acts once a step: on average half a step late.
    step = dead_s / 200
    orbit = orbits.full_empty_orbit(
        slots=slots, residence_s=residence_s, dead_time_s=dead_s + step / 2, band_turns=band * slots, rate_per_s=rate
    )
    assert orbit is not None
    scenario = plant_of(
        gate(1 - band, 1.0 - 1e-9),
        plant=fluid(slots, residence_s, dead_s, step),
        ceiling_per_s=rate,
        horizon_s=14.5 * orbit.period_s,
        warmup_s=2.5 * orbit.period_s,
        period_s=step,
    )
    done = run(scenario)
    verdict = done.data.verdicts[BUSY]
    assert verdict.verdict == "limit_cycle"
    assert verdict.period_s == pytest.approx(orbit.period_s, rel=0.005)
    assert done.summary["flow"]["decode_utilization_ratio"] == pytest.approx(orbit.utilization_ratio, abs=0.005)


def test_a_gate_that_closes_below_all_slots_and_still_overfills_them_has_its_own_closed_form() -> None:
    step = 0.05
    orbit = orbits.relay_orbit(
        slots=512,
        residence_s=5,
        dead_time_s=10 + step / 2,
        open_at_turns=0.8 * 512,
        close_at_turns=0.9 * 512,
        rate_per_s=204.8,
    )
    assert orbit is not None
    assert orbit.ready_peak_turns > 0
    done = run(
        plant_of(
            gate(0.8, 0.9),
            plant=fluid(512, 5, 10, step),
            ceiling_per_s=204.8,
            horizon_s=500.0,
            warmup_s=100.0,
            period_s=step,
        )
    )
    assert done.data.verdicts[BUSY].period_s == pytest.approx(orbit.period_s, rel=0.005)
    assert done.summary["flow"]["decode_utilization_ratio"] == pytest.approx(orbit.utilization_ratio, abs=0.005)


def test_a_small_pools_full_empty_cycle_agrees_in_the_mean_of_five_seeds() -> None:
    orbit = orbits.full_empty_orbit(slots=64, residence_s=5, dead_time_s=10.025, band_turns=6.4, rate_per_s=25.6)
    assert orbit is not None
    periods, used = [], []
    for seed in range(5):
        scenario = plant_of(
            gate(0.9, 1.0), plant=tandem(64, 5, 10), ceiling_per_s=25.6, horizon_s=900.0, warmup_s=100.0, seed=seed
        )
        done = run(scenario)
        assert done.data.verdicts[BUSY].verdict == "limit_cycle"
        periods.append(done.data.verdicts[BUSY].period_s or 0.0)
        used.append(done.summary["flow"]["decode_utilization_ratio"])
    assert fmean(periods) == pytest.approx(orbit.period_s, rel=0.03)
    assert fmean(used) == pytest.approx(orbit.utilization_ratio, abs=0.01)


@pytest.mark.parametrize("dead_s", [2.0, 5.0])
def test_the_unsaturated_relay_agrees_in_turns(dead_s: float) -> None:
    orbit = orbits.unsaturated_orbit(
        residence_s=10, dead_time_s=dead_s + 0.025, open_at_turns=450, close_at_turns=550, rate_per_s=100
    )
    assert orbit is not None
    scenario = plant_of(
        gate(0.45, 0.55), plant=tandem(1000, 10, dead_s), ceiling_per_s=100.0, horizon_s=360.0, warmup_s=60.0
    )
    verdict = run(scenario).data.verdicts[BUSY]
    assert verdict.verdict == "limit_cycle"
    assert verdict.period_s == pytest.approx(orbit.period_s, rel=0.02)


def test_the_unsaturated_relay_of_two_hundred_slots_agrees_in_the_mean_of_five_seeds() -> None:
    orbit = orbits.unsaturated_orbit(
        residence_s=10, dead_time_s=2.025, open_at_turns=90, close_at_turns=110, rate_per_s=20
    )
    assert orbit is not None
    periods = []
    for seed in range(5):
        scenario = plant_of(
            gate(0.45, 0.55), plant=tandem(200, 10, 2), ceiling_per_s=20.0, horizon_s=600.0, warmup_s=60.0, seed=seed
        )
        periods.append(run(scenario).data.verdicts[BUSY].period_s or 0.0)
    assert fmean(periods) == pytest.approx(orbit.period_s, rel=0.03)


@pytest.mark.parametrize(
    ("residence_s", "paced", "predicted"), [(3.5, 0.75, 0.998), (10.0, 1.0, 1.0)], ids=["quicker", "slower"]
)
def test_a_wrong_service_rate_costs_the_law_that_assumes_it_and_not_the_one_that_measures_it(
    residence_s: float, paced: float, predicted: float
) -> None:
    laws = {
        "paced_wip": ({"residence_s": 5.0, "dead_time_s": 10.0}, paced),
        "predictive_buffer": ({"dead_time_s": 10.0, "full_per_s": 51.2}, predicted),
    }
    for kind, (assumed, used) in laws.items():
        scenario = plant_of(
            {"kind": kind, **assumed},
            plant=tandem(256, residence_s, 10),
            ceiling_per_s=102.4,
            horizon_s=420.0,
            warmup_s=160.0,
        )
        done = run(scenario)
        assert done.data.verdicts[BUSY].verdict in ("steady", "constant")
        assert done.summary["flow"]["decode_utilization_ratio"] == pytest.approx(used, abs=0.01)


def proportional(gain_per_s: float, level: float) -> dict[str, object]:
    return {"kind": "proportional_gate", "base_per_s": level / 10, "k_per_s": gain_per_s, "setpoint_turns": level}


@pytest.mark.parametrize(("share", "lasts"), [(0.95, False), (1.05, True)])
def test_the_fluid_loops_growth_changes_sign_within_five_percent_of_the_hopf_gain(share: float, lasts: bool) -> None:
    step = 0.01
    gain = share * hopf_point(10.0, 2.0 + step / 2).gain_per_s
    scenario = plant_of(
        proportional(gain, 125.0),
        plant=fluid(250, 10, 2, step),
        ceiling_per_s=60.0,
        horizon_s=500.0,
        warmup_s=200.0,
        period_s=step,
    )
    signals = run(scenario).signals
    swings = [float(np.ptp(column(window_of(signals, start, start + 30), BUSY, 1.0))) for start in (200.0, 470.0)]
    assert swings[0] > 1e-3
    assert (swings[1] > 0.5 * swings[0]) == lasts


@pytest.mark.parametrize(("share", "word"), [(0.3, "steady"), (0.9, "quasi_cycle"), (1.2, "limit_cycle")])
def test_turns_go_from_steady_over_a_noise_kept_cycle_to_a_limit_cycle_as_the_gain_rises(
    share: float, word: str
) -> None:
    point = hopf_point(10.0, 2.025)
    scenario = plant_of(
        proportional(share * point.gain_per_s, 125.0),
        plant=tandem(250, 10, 2),
        ceiling_per_s=60.0,
        horizon_s=1000.0,
        warmup_s=100.0,
        seed=2,
    )
    verdict = run(scenario).data.verdicts[BUSY]
    assert verdict.verdict == word
    if share > 0.5:
        assert verdict.period_s == pytest.approx(point.period_s, rel=0.1)


@pytest.mark.parametrize(("share", "seeds", "within"), [(0.6, 3, 0.1), (0.9, 5, 0.15)])
def test_below_the_hopf_gain_variance_and_period_are_those_of_noise_through_the_clipped_loop(
    share: float, seeds: int, within: float
) -> None:
    gain = share * hopf_point(10.0, 2.025).gain_per_s
    theory = noise.clipped_gate(
        residence_s=10,
        dead_time_s=2.025,
        gain_per_s=gain,
        setpoint_turns=125.0,
        rate_per_s=12.5,
        ceiling_per_s=60.0,
    ).noise
    assert theory.period_s is not None
    variances, periods = [], []
    for seed in range(seeds):
        scenario = plant_of(
            proportional(gain, 125.0),
            plant=tandem(250, 10, 2),
            ceiling_per_s=60.0,
            horizon_s=1000.0,
            warmup_s=100.0,
            seed=seed,
        )
        done = run(scenario)
        variances.append(float(np.var(250 * column(window_of(done.signals, 100.0, 1000.0), BUSY, 1.0))))
        periods.append(done.data.verdicts[BUSY].period_s)
    assert fmean(variances) == pytest.approx(theory.variance_turns2, rel=within)
    if share > 0.8:
        assert fmean([p for p in periods if p is not None]) == pytest.approx(theory.period_s, rel=0.03)


@pytest.mark.parametrize(
    ("slots", "stages", "window_s"), [(256, 100, (0.0, 300.0)), (256, 50, (0.0, 400.0)), (128, 100, (100.0, 500.0))]
)
def test_an_echo_decays_by_the_dispersion_of_residence(slots: int, stages: int, window_s: tuple[float, float]) -> None:
    mode = echo.ring_mode(residence_s=10, dead_time_s=10, stages=stages)
    periods, dampings = [], []
    for seed in range(5):
        scenario = plant_of(
            {"kind": "credit", "cap_turns": slots},
            plant=tandem(slots, 10, 10, shape="erlang", stages=stages),
            ceiling_per_s=None,
            horizon_s=window_s[1],
            warmup_s=window_s[0],
            seed=seed,
        )
        result = run(scenario).summary["verdict"][BUSY]
        assert result["verdict"] == "echo"
        periods.append(result["period_s"])
        dampings.append(result["damping_ratio"])
    assert mode.damping_ratio == pytest.approx(np.pi * (0.5 / np.sqrt(stages)) ** 2, rel=0.01)
    assert fmean(periods) == pytest.approx(mode.period_s, rel=0.01)
    assert fmean(dampings) == pytest.approx(mode.damping_ratio, rel=0.06)
