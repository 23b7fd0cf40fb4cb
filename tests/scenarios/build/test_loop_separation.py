"""Loops that are too close in time are named when a candidate is built, with the figure."""

from __future__ import annotations

import pytest

from scenarios.build.loop_separation import gaps, warnings
from scenarios.schema.load import load
from scenarios.suite.execute import run_suite


def test_loops_far_apart_draw_no_warning() -> None:
    scenario = load("day_six_loops")
    factors = {(gap.slow, gap.fast): gap.factor for gap in gaps(scenario, scenario.candidates[0])}
    assert factors == {("demand", "capacity"): 6.0, ("capacity", "admission"): 30.0, ("admission", "batching"): 5.0}
    assert warnings(scenario, scenario.candidates[0]) == []


def test_two_loops_brought_together_are_named_with_the_factor() -> None:
    scenario = load("day_six_loops", ["control.admission_period_s=4.0"])
    (message,) = warnings(scenario, scenario.candidates[0])
    assert "admission (pace 4 s) and batching (pace 2 s) are a factor of 2.0 apart" in message


def test_a_held_slot_closes_no_loop() -> None:
    scenario = load("full_empty_reference")
    assert gaps(scenario, scenario.candidate("paced_wip")) == []


@pytest.mark.slow
def test_two_loops_brought_together_stir_each_other_and_the_verdict_says_so() -> None:
    rows = run_suite(["loops_together"])
    assert [(row.candidate, check) for row in rows for check in row.checks if not check["ok"]] == []
    warned = {row.candidate: row.summary["warnings"] for row in rows}
    assert warned["apart"] == []
    assert "a factor of 1.0 apart" in warned["together"][0]
