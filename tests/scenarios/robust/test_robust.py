"""Draws of the stated uncertainty, yields with their interval, where a law breaks, resuming, and the page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from scenarios.cli import app
from scenarios.errors import UserError
from scenarios.report.robust_page import robust_figure, sentence
from scenarios.robust import LawYield, robust
from scenarios.robust.draws import drawn, draws, ranges_of
from scenarios.robust.outcome import Outcome, binomial_interval, breaks_at
from scenarios.schema.load import load
from scenarios.schema.plants import FluidPlant
from scenarios.schema.scenario import Scenario
from tests.scenarios.gated_fluid import gated_fluid

FLUID = gated_fluid(
    "Two gains, as a fluid",
    {"gentle": (24.0, 0.1, 240.0), "eager": (24.0, 0.8, 240.0)},
    more="uncertainty = { dead_time_ratio = [0.5, 2.0] }",
)


def scenario(tmp_path: Path, text: str = FLUID) -> Scenario:
    path = tmp_path / "two.toml"
    path.write_text(text)
    return load(path)


@given(st.integers(2, 40), st.integers(0, 1000), st.floats(0.1, 1.0), st.floats(1.0, 10.0))
def test_every_strip_of_every_range_is_met_once(count: int, seed: int, low: float, high: float) -> None:
    ranges = {"residence_cv_ratio": (0.0, 3.0), "dead_time_ratio": (low, 2.0 * high)}
    drawn = draws(ranges, count, seed)
    assert drawn == draws(ranges, count, seed)
    strips = sorted(min(int(point["residence_cv_ratio"] / 3.0 * count), count - 1) for point in drawn)
    assert strips == list(range(count))
    assert all(
        low <= point["dead_time_ratio"] * (1 + 1e-8) and point["dead_time_ratio"] <= 2.0 * high for point in drawn
    )


def test_a_draw_changes_the_plant_and_no_law(tmp_path: Path) -> None:
    stated = scenario(tmp_path)
    point = {"dead_time_ratio": 1.5, "residence_ratio": 2.0, "residence_cv_ratio": 0.0}
    true = drawn(stated, point)
    assert isinstance(true.plant, FluidPlant)
    assert (true.plant.dead_time_s, true.plant.residence.mean_s, true.plant.residence.shape) == (3.0, 20.0, "fixed")
    assert true.candidates == stated.candidates


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (FLUID.replace("uncertainty = { dead_time_ratio = [0.5, 2.0] }\n", ""), "uncertainty.* is missing"),
        (FLUID.replace("dead_time_ratio = [0.5, 2.0]", "load_ratio = [0.5, 2.0]"), "nothing to draw"),
    ],
)
def test_a_scenario_without_a_box_is_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        ranges_of(scenario(tmp_path, text))


def test_a_plant_of_workers_has_no_dead_time_to_draw() -> None:
    with pytest.raises(UserError, match="states no such number"):
        ranges_of(load("kv_retract", ["uncertainty={ dead_time_ratio = [0.5, 2.0] }"]))


def test_the_interval_of_a_share_is_the_exact_one() -> None:
    # Clopper and Pearson of 0 of n: 1 - 0.025^(1/n).
    assert binomial_interval(0, 30) == pytest.approx((0.0, 1.0 - 0.025 ** (1 / 30)))
    low, high = binomial_interval(27, 30)
    assert (low, high) == pytest.approx((0.7347, 0.9789), abs=1e-4)


def outcome(draw: Mapping[str, float], verdict: str, fed: str = "fed") -> Outcome:
    figures: dict[str, Any] = {"utilization_ratio": 0.9, "ttft_p99_s": None, "good_per_gpu_hour": 1.0}
    return Outcome(draw=draw, seed=1, verdict=verdict, period_s=None, fed=fed, **figures)


def test_a_law_breaks_where_its_broken_draws_lie_apart_from_the_others() -> None:
    points = [{"a_ratio": a, "b_ratio": b} for a in (0.5, 1.0, 1.5, 2.0) for b in (0.5, 1.0, 2.0)]
    breaks = breaks_at([outcome(p, "limit_cycle" if p["a_ratio"] > 1.2 else "steady") for p in points])
    assert breaks is not None
    assert (breaks.name, breaks.above, breaks.value) == ("a_ratio", True, 1.25)
    assert (breaks.beyond, breaks.broken, breaks.held) == (6, 6, 0)
    low = breaks_at([outcome(p, "steady", "starved" if p["b_ratio"] < 0.8 else "fed") for p in points])
    assert low is not None
    assert (low.name, low.above) == ("b_ratio", False)


def test_a_law_that_always_holds_or_breaks_everywhere_alike_has_no_break() -> None:
    points = [{"a_ratio": a} for a in (1.0, 2.0, 3.0, 4.0)]
    assert breaks_at([outcome(p, "steady") for p in points]) is None
    assert breaks_at([outcome(p, word) for p, word in zip(points, ("steady", "echo", "echo", "steady"))]) is None


def test_the_words_of_an_outcome() -> None:
    assert outcome({}, "steady").word == "holds"
    assert outcome({}, "steady", "saturated").word == "holds"
    assert outcome({}, "limit_cycle", "starved").word == "oscillates"
    assert outcome({}, "hunting").word == "oscillates"
    assert outcome({}, "undecided").word == "undecided"
    assert outcome({}, "undecided", "starved").word == "starved"


@pytest.mark.slow
def test_the_eager_gain_breaks_at_long_dead_times_and_a_second_call_runs_nothing(tmp_path: Path) -> None:
    stated, kept = scenario(tmp_path), tmp_path / "runs.jsonl"
    counts: list[tuple[int, int]] = []
    robustness = robust(stated, count=6, kept=kept, done=lambda *n: counts.append(n))
    assert counts[-1] == (12, 12)
    eager = next(law for law in robustness.laws if law.candidate == "eager")
    # Theory: its Hopf gain is 0.85 at 2 s and falls below 0.8 just beyond it.
    assert eager.breaks is not None
    assert (eager.breaks.name, eager.breaks.above) == ("dead_time_ratio", True)
    assert 0.8 < eager.breaks.value < 1.3
    assert 0.0 < eager.yield_ratio < 1.0
    counts.clear()
    again = robust(stated, count=6, kept=kept, done=lambda *n: counts.append(n))
    assert counts == [(12, 12)]
    assert again == robustness
    figure: Any = robust_figure(robustness.laws, list(robustness.ranges))
    assert sum(len(trace.x) for trace in figure.data) == 12
    assert "dead_time_ratio above" in sentence(eager)


@pytest.mark.slow
def test_the_command_writes_its_page_and_its_numbers(tmp_path: Path) -> None:
    scenario(tmp_path)
    out = tmp_path / "out"
    words = ["robust", str(tmp_path / "two.toml"), "--draws", "2", "--jobs", "1", "--candidate", "gentle"]
    result = CliRunner().invoke(app, [*words, "--out", str(out), "--json"])
    assert result.exit_code == 0, result.output
    numbers = json.loads(result.stdout)
    law = numbers["candidates"]["gentle"]
    assert law["yield"]["holding"] == sum(draw["outcome"] == "holds" for draw in law["draws"])
    assert law["yield"]["ci95"][0] <= law["yield"]["ratio"] <= law["yield"]["ci95"][1]
    assert 'id="robust-map"' in (out / "robust.html").read_text()


def test_a_law_is_told_by_its_share_of_draws() -> None:
    law = LawYield(candidate="x", outcomes=(outcome({"a_ratio": 1.0}, "steady"), outcome({"a_ratio": 2.0}, "echo")))
    assert (law.holding, law.yield_ratio) == (1, 0.5)
    assert law.interval[0] < 0.5 < law.interval[1]
