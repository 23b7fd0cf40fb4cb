"""A gate that looks at old readings cycles as theory says of its dead time, age and sampling included."""

from __future__ import annotations

import pytest

from scenarios.analyze.analysis import expected_of_run
from scenarios.run.execute import run
from scenarios.schema.load import load

DEAD_TIME_S = 10.0


@pytest.mark.slow
@pytest.mark.parametrize("age_ratio", [0.05, 1.0, 2.0])
def test_each_second_of_age_counts_as_a_second_of_dead_time(age_ratio: float) -> None:
    age_s = age_ratio * DEAD_TIME_S
    sets = [f"telemetry.age_s={age_s}", "telemetry.period_s=0.5", "telemetry.drop_ratio=0", "horizon_s=1500"]
    scenario = load("stale_observation", sets)
    summary = run(scenario, "retirement_gate").summary
    verdict = summary["verdict"]["decode_occupancy_ratio"]
    theory = expected_of_run(scenario, "retirement_gate", summary)
    assert theory is not None
    assert verdict["verdict"] == "limit_cycle"
    assert verdict["period_s"] == pytest.approx(theory["period_s"], rel=0.03)
    assert summary["flow"]["decode_utilization_ratio"] == pytest.approx(theory["decode_utilization_ratio"], abs=0.015)


@pytest.mark.slow
@pytest.mark.parametrize("age_ratio", [1.0])
def test_a_law_that_counts_its_work_bears_old_readings_within_its_delay_margin(age_ratio: float) -> None:
    sets = [f"telemetry.age_s={age_ratio * DEAD_TIME_S}", "telemetry.period_s=0.5", "horizon_s=1200"]
    summary = run(load("stale_observation", sets), "paced_wip").summary
    assert summary["verdict"]["decode_occupancy_ratio"]["verdict"] == "steady"
    assert summary["flow"]["decode_utilization_ratio"] > 0.97
