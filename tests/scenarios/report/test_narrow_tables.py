"""Tables on a terminal of 80 characters: names and numbers are never parted, and what has no room is named."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.table import Table
from typer.testing import CliRunner

from scenarios.analyze.analysis import Analysis
from scenarios.analyze.prediction import Prediction
from scenarios.cli import app
from scenarios.cli.analyze import both_table
from scenarios.cli.leaderboard import places_table
from scenarios.leaderboard.ranking import RankedPolicy
from scenarios.report.suite_page import suite_table
from scenarios.schema.files import library
from scenarios.schema.load import load
from scenarios.suite.execute import Row

LONG = "limit cycle, period 63.2 s, cost 12 %, saturated"


def drawn(table: Table, width: int) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width, markup=False).print(table)
    return out.getvalue().splitlines()


def row(scenario: str, candidate: str) -> Row:
    summary = {
        "headline": LONG,
        "goodput": {"ratio": 0.998, "turns_per_s": 1.0},
        "latency": {"ttft_s": {"p99": 123.4}},
        "gpu_hours": 12345.67,
        "reconfigurations": {"count": 127, "flaps": 119},
    }
    return Row(scenario=scenario, candidate=candidate, summary=summary, checks=({"ok": True},))


@pytest.mark.parametrize("width", [80, 120])
def test_the_suites_names_stay_whole_and_its_columns_are_left_out_by_name(width: int) -> None:
    names = {name: [c.name for c in load(path).candidates] for name, path in library().items()}
    lines = drawn(suite_table([row(s, c) for s, candidates in names.items() for c in candidates], width), width)
    assert max(map(len, lines)) <= width
    first = [line.strip().split("  ")[0] for line in lines]
    for scenario, candidates in names.items():
        assert first.count(scenario) == 1 + candidates.count(scenario)
        assert set(candidates) <= set(first)
    assert any("99.8\N{NO-BREAK SPACE}%" in line and "1 of 1" in line for line in lines)
    for number in ("63.2\N{NO-BREAK SPACE}s,", "12\N{NO-BREAK SPACE}%,"):
        assert sum(number in line for line in lines) == sum(map(len, names.values()))
    left_out = "left out for want of width: flaps, flips" in "\n".join(lines)
    assert left_out == (width == 80)


def test_the_list_of_scenarios_shows_every_name_whole() -> None:
    result = CliRunner().invoke(app, ["list"], env={"COLUMNS": "80"}).stdout
    words = set(result.split())
    for name, path in library().items():
        assert {name, *(c.name for c in load(path).candidates)} <= words
    assert max(map(len, result.splitlines())) <= 80


def test_the_leaderboard_shows_laws_and_intervals_whole() -> None:
    axis = {"mean": 0.9123, "ci95": [0.9012, 0.9234]}
    names = ("inflight_credit_gate", "predictive_buffer_naive")
    places = [
        RankedPolicy(law=law, runs=15, steadiness=axis, goods_per_gpu=axis, dominated_by=by)
        for law, by in zip(names, ("", "inflight_credit_gate"), strict=True)
    ]
    lines = drawn(places_table(places, "5 scenarios, 3 seeds", 80), 80)
    assert max(map(len, lines)) <= 80
    for text in (*names, "0.901 .. 0.923"):
        assert text in "\n".join(lines)


def test_theory_and_run_stand_under_each_other_with_names_whole() -> None:
    predicted = Prediction(
        mechanism="", verdict="limit_cycle", period_s=17.3312, amplitude_ratio=0.38243, damping_ratio=0.0
    )
    ran = {**predicted.numbers(), "utilization_ratio": 0.7712}
    analyses = [
        Analysis(candidate=name, prediction=predicted, model=None, source="", measured=ran)
        for name in ("inflight_credit_gate", "pi_without_anti_windup")
    ]
    lines = drawn(both_table(analyses, "title", 80), 80)
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines if "theory" in line] == [analysis.candidate for analysis in analyses]
    assert sum("17.33 s" in line and "limit cycle" in line for line in lines) == 4
    assert "left out for want of width: damping" in "\n".join(lines)
