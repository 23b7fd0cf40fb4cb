"""A search finds the best of a known curve, resumes, is led by theory, and answers with a candidate that loads."""

from __future__ import annotations

import json
import math
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from scenarios.cli import app
from scenarios.errors import UserError
from scenarios.robust.outcome import Outcome
from scenarios.schema.load import load
from scenarios.tune import Goal, Parameter, Trial, parse_parameter, tune
from scenarios.tune.evaluation import Evaluation
from scenarios.tune.study import Study
from scenarios.tune.trials import scored
from tests.scenarios.gated_fluid import GAIN, gated_fluid

FLUID = gated_fluid(
    "A gain before a pipeline, as a fluid",
    {"gate": (23.0, 1.9, 230.0)},
    seed=5,
    span_s=(50.0, 130.0),
    step_s=0.2,
    more="uncertainty = { dead_time_ratio = [0.8, 1.25] }",
)


@pytest.fixture
def fluid(tmp_path: Path) -> str:
    path = tmp_path / "fluid.toml"
    path.write_text(FLUID)
    return str(path)


def test_the_forms_of_a_parameter() -> None:
    assert parse_parameter("a.b=0.1:10:log") == Parameter(path="a.b", low=0.1, high=10.0, log=True)
    assert parse_parameter("a.b=1.0:3") == Parameter(path="a.b", low=1.0, high=3.0)
    assert parse_parameter("a.b=1:30").integer


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a.b", "must be PATH="),
        ("a.b=1", "must be PATH="),
        ("a.b=1:2:3", "must be PATH="),
        ("a.b=1:x", "must be numbers"),
        ("a.b=2:1", "lower end first"),
        ("a.b=0:1:log", "positive ends"),
    ],
)
def test_a_bad_parameter_is_refused_in_one_line(text: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        parse_parameter(text)


def curve(number: int, gain: float) -> Trial:
    """Return the trial of a curve with its best at 0.3, and nothing but theory's word above 0.5."""
    values = {"gain": gain}
    if gain > 0.5:
        return Trial(number=number, values=values, score=-1.0 - gain / 10.0, pruned="theory: a cycle")
    height = math.exp(-(math.log(gain / 0.3) ** 2))
    return Trial(number=number, values=values, score=height, pruned=None, yield_ratio=1.0, objective=height)


@pytest.mark.parametrize("start", [0.0011, 9.0])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_it_finds_the_best_gain_of_a_known_curve_within_five_percent_from_bad_starts(start: float, seed: int) -> None:
    study = Study(
        [Parameter(path="gain", low=0.001, high=10.0, log=True)], name="x", journal=None, seed=seed, trials=40
    )
    study.start_at({"gain": start})
    while len(study.ended()) < 40:
        for number, values in study.ask(2):
            study.tell(curve(number, values["gain"]))
    best = max(study.ended(), key=lambda trial: trial.score)
    assert study.ended()[0].values["gain"] == pytest.approx(start)
    assert best.values["gain"] == pytest.approx(0.3, rel=0.05)


def test_an_interrupted_search_asks_again_for_what_it_had_begun_and_keeps_what_had_ended(tmp_path: Path) -> None:
    space = [Parameter(path="gain", low=0.001, high=10.0, log=True)]

    def opened(name: str = "x") -> Study:
        return Study(space, name=name, journal=tmp_path / "study.log", seed=1, trials=10)

    first = opened()
    (first_trial, other) = first.ask(2)
    first.tell(curve(first_trial[0], first_trial[1]["gain"]))
    second = opened()
    assert second.ended() == first.ended()
    ((_, again),) = second.ask(1)
    assert again["gain"] == pytest.approx(other[1]["gain"], rel=1e-8)
    assert opened("other settings").ended() == []


def outcome(verdict: str, late_s: float | None = 2.0) -> Outcome:
    return Outcome(
        draw={}, seed=1, verdict=verdict, period_s=None, fed="fed", utilization_ratio=0.5, ttft_p99_s=late_s,
        good_per_gpu_hour=100.0,
    )  # fmt: skip


def test_a_trial_below_the_yield_scores_below_every_one_that_reaches_it() -> None:
    goal = Goal(objective="decode_utilization_ratio", least_yield=0.7)
    three_of_four = [*[outcome("steady")] * 3, outcome("limit_cycle")]
    good, bad = scored(0, {}, three_of_four, goal), scored(1, {}, [outcome("limit_cycle"), outcome("steady")], goal)
    assert (good.feasible, good.yield_ratio, good.score) == (True, 0.75, 0.5)
    assert (bad.feasible, bad.yield_ratio) == (False, 0.5)
    assert -1.0 <= bad.score < 0.0


def test_of_a_latency_less_is_better_and_it_is_shown_in_seconds() -> None:
    goal = Goal(objective="ttft_p99_s", least_yield=0.0)
    slow, fast = (scored(0, {}, [outcome("steady", late_s)], goal) for late_s in (4.0, 2.0))
    assert fast.score > slow.score
    assert (fast.objective, slow.objective) == (2.0, 4.0)


def test_theory_rules_out_a_gain_beyond_its_edge_and_a_thin_margin_without_a_run(fluid: str, tmp_path: Path) -> None:
    kept = tmp_path / "runs.jsonl"
    space = (parse_parameter(f"{GAIN}=0.01:3.0:log"),)
    cycling = Evaluation(fluid, (), "gate", space, Goal(), count=2, kept=kept).trials([(0, {GAIN: 2.0})])[0]
    assert cycling.pruned is not None
    assert "limit cycle" in cycling.pruned
    assert cycling.score < -1.0
    thin = Goal(least_margins={"gain_margin": 4.0})
    tight = Evaluation(fluid, (), "gate", space, thin, count=2, kept=kept).trials([(0, {GAIN: 0.4})])[0]
    assert tight.pruned is not None
    assert "gain_margin" in tight.pruned
    assert not kept.exists()


@pytest.mark.parametrize(
    ("vary", "says"),
    [("plant.dead_time_s=0.1:1.0", "must begin with"), ("candidates.gate.admission.kk=0.1:1.0", "no such key")],
)
def test_only_parameters_of_the_candidate_can_be_varied(fluid: str, vary: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        tune(fluid, [parse_parameter(vary)], Goal())


@pytest.mark.slow
def test_from_a_gain_that_cycles_it_comes_within_five_percent_of_a_grids_best(fluid: str, tmp_path: Path) -> None:
    goal, space = Goal(objective="decode_utilization_ratio", least_yield=0.9), parse_parameter(f"{GAIN}=0.01:3.0:log")
    evaluation = Evaluation(fluid, (), "gate", (space,), goal, count=2, kept=tmp_path / "grid.jsonl")
    grid = evaluation.trials([(k, {GAIN: float(f"{value:.9g}")}) for k, value in enumerate(space.grid(7))])
    out = tmp_path / "out"
    words = ["tune", fluid, "--vary", f"{GAIN}=0.01:3.0:log", "--objective", "decode_utilization_ratio", "--json"]
    words += ["--trials", "9", "--draws", "2", "--held-out", "2", "--jobs", "1", "--out", str(out)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert answer["trials"][0]["values"][GAIN] == 1.9
    assert answer["trials"][0]["pruned"] is not None
    assert answer["best"]["objective"] >= 0.95 * max(trial.score for trial in grid)
    assert answer["held_out"]["yield"] == 1.0
    (candidate,) = tomllib.loads(answer["toml"])["candidates"]
    assert candidate["admission"]["k_per_s"] == answer["best"]["values"][GAIN]
    stated = tomllib.loads(FLUID)
    (tmp_path / "tuned.toml").write_text(FLUID[: FLUID.index("[[candidates]]")] + answer["toml"])
    assert load(tmp_path / "tuned.toml").candidates[0].name == f"{stated['candidates'][0]['name']}_tuned"
    assert 'id="tune-map"' in (out / "tune.html").read_text()
