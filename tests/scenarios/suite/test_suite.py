"""The suite: every member is shipped, says whose report it re-enacts, and expects something; two members are run."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

from scenarios.cli import app
from scenarios.leaderboard.ranking import ranked
from scenarios.run.execute import run
from scenarios.schema.files import library
from scenarios.schema.load import load
from scenarios.suite.execute import Row, run_suite
from scenarios.suite.members import LEADERBOARD, names


@pytest.mark.parametrize("name", names())
def test_every_member_is_shipped_with_a_reason_and_an_expectation(name: str) -> None:
    scenario = load(name)
    head = library()[name].read_text(encoding="utf-8").split("title =")[0]
    assert head.startswith("# ")
    assert set(scenario.expect) == {candidate.name for candidate in scenario.candidates}, f"{name} leaves some out"
    assert scenario.question.endswith("?")


def test_re_enactments_name_the_public_report() -> None:
    reports = ("herd", "flap_thresholds", "pending_blind", "quantiser_noise", "contaminated_rate", "early_rejection")
    reports += ("planner_tick", "stale_observation", "interactive_reserve", "role_flips", "kv_retract")
    for name in reports:
        head = library()[name].read_text(encoding="utf-8").split("title =")[0]
        assert re.search(r"issue|arXiv", head), name


@pytest.mark.slow
def test_a_planner_of_thresholds_never_rests_and_ours_does() -> None:
    rows = run_suite(["planner_tick", "planner_tick_instant"])
    assert [(row.candidate, check) for row in rows for check in row.checks if not check["ok"]] == []
    rows = [row for row in rows if row.scenario == "planner_tick"]
    late = {row.candidate: row.summary["latency"]["ttft_s"]["p99"] for row in rows}
    assert late["thresholds"] > 10 * late["static_pair"]


@pytest.mark.slow
def test_where_workers_start_at_once_the_cycle_is_two_ticks_long_whatever_the_tick_is() -> None:
    scenario = load("planner_tick_instant", ["control.capacity_period_s=20", "record.signal_bin_s=1"])
    verdict = run(scenario, "thresholds").summary["verdict"]["workers_active"]
    assert verdict["verdict"] in ("limit_cycle", "quasi_cycle")
    assert verdict["period_s"] == pytest.approx(40.0, rel=0.05)


@pytest.mark.slow
def test_refusing_on_the_present_load_swings_and_on_the_predicted_load_does_not() -> None:
    rows = run_suite(["early_rejection"])
    assert [(row.candidate, check) for row in rows for check in row.checks if not check["ok"]] == []


@pytest.mark.slow
def test_a_worker_that_hands_its_turns_over_is_free_in_seconds_where_one_that_waits_takes_minutes() -> None:
    rows = run_suite(["role_flips"])
    assert [(row.candidate, check) for row in rows for check in row.checks if not check["ok"]] == []
    changes = {row.candidate: row.summary["reconfigurations"] for row in rows}
    each_s = {name: change["drain_s"] / change["count"] for name, change in changes.items()}
    assert each_s["wait"] > 15 * each_s["migrate"] > 15 * each_s["retry"]
    assert {row.summary["counts"]["failed"] for row in rows} == {0}


def row(scenario: str, law: str, lost: float, good: float) -> Row:
    summary = {
        "verdict": {"decode_occupancy_ratio": {"cost": {"utilization_lost_ratio": lost}}},
        "flow": {"starved_ratio": 0.0},
        "goodput": {"turns_per_s": good, "ratio": 1.0},
        "gpu_hours": 1.0,
    }
    return Row(scenario=scenario, candidate=law, summary=summary, checks=())


def test_a_dominated_law_is_shown_as_such() -> None:
    seeds = [[row("one", "better", 0.0, 10.0), row("one", "worse", 0.2, 8.0), row("one", "other", 0.3, 10.5)]] * 3
    places = {place.law: place for place in ranked(seeds)}
    assert places["better"].dominated_by == ""
    assert places["worse"].dominated_by == "better"
    assert places["other"].dominated_by == ""
    assert places["worse"].steadiness["mean"] == pytest.approx(0.8)


def test_the_field_of_the_leaderboard_is_part_of_the_suite() -> None:
    assert set(LEADERBOARD) <= set(names())


def test_the_command_exits_with_one_when_an_expectation_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = Row(
        scenario="mild",
        candidate="any",
        summary={
            "headline": "steady, fed",
            "goodput": {"ratio": 1.0, "turns_per_s": 1.0},
            "latency": {"ttft_s": {"p99": 1.0}},
            "gpu_hours": 1.0,
        },
        checks=({"key": "verdict", "want": "limit_cycle", "got": "steady", "ok": False},),
    )
    monkeypatch.setattr("scenarios.cli.suite.run_suite", lambda *_, **__: [failed])
    result = CliRunner().invoke(app, ["suite", "mild", "--json"])
    assert result.exit_code == 1
    assert '"ok": false' in result.output
