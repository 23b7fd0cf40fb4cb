"""Series from elsewhere: read, put into equal bins, judged, and blamed on the right thing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from scenarios.cli.judge import judge
from scenarios.judge.levels import level_changes
from scenarios.judge.read import Raw
from scenarios.judge.resample import even
from scenarios.verdict import moves
from tests.scenarios.judge.series import HOUR_S, only, tracker, write


def test_two_replicas_and_one_in_turn_every_twenty_seconds_are_a_limit_cycle(tmp_path: Path) -> None:
    t = np.arange(0, HOUR_S, 20.0)
    judged = only(write(tmp_path / "replicas.csv", t_s=t, replicas=2 - np.arange(len(t)) % 2))
    assert judged.verdict.verdict == "limit_cycle"
    assert judged.verdict.period_s == pytest.approx(40, rel=1e-4)
    assert judged.reversals_per_hour == pytest.approx(180, rel=0.02)
    assert judged.flaps_per_hour == pytest.approx(90, rel=0.02)
    assert "N/(N-1)" in judged.likely


@pytest.mark.parametrize("every_s", [5.0, 7.0, 10.0])
def test_the_same_replicas_scraped_at_another_interval_keep_their_period(tmp_path: Path, every_s: float) -> None:
    t = np.arange(0, 2 * HOUR_S, every_s)
    judged = only(write(tmp_path / "replicas.csv", t_s=t, replicas=2 - np.floor(t / 20).astype(int) % 2))
    assert judged.verdict.verdict == "limit_cycle"
    assert judged.verdict.period_s == pytest.approx(40, rel=0.01)


def test_a_perfect_tracker_of_a_periodic_load_is_driven_and_its_controller_is_not_blamed(tmp_path: Path) -> None:
    judged = only(tracker(tmp_path), load="load_per_s")
    assert judged.verdict.verdict == "driven"
    assert "load_per_s" in judged.verdict.reason
    assert "not the controller" in judged.likely
    blind = only(tracker(tmp_path), columns=["replicas"])
    assert blind.verdict.verdict == "limit_cycle"
    assert "load column" in blind.likely


def test_a_doubling_scaler_is_blamed_for_not_counting_what_is_pending(tmp_path: Path) -> None:
    replicas = [4, 8, 16, 16, 8, 4] * 40
    t = np.arange(len(replicas)) * 15.0
    judged = only(write(tmp_path / "scaler.csv", time=t, replicas=replicas))
    assert judged.verdict.period_s == pytest.approx(90, rel=1e-3)
    assert "pending" in judged.likely
    assert "1 unseen" in judged.likely


@pytest.mark.parametrize(
    ("values", "word", "says"),
    [([3] * 500, "constant", "never leaves 3"), ([1, 2, 1], "undecided", "samples are too few")],
)
def test_constant_and_short_series_are_answered_plainly(
    tmp_path: Path, values: list[int], word: str, says: str
) -> None:
    judged = only(write(tmp_path / "x.csv", t_s=np.arange(len(values)) * 15.0, x=values))
    assert judged.verdict.verdict == word
    assert says in judged.verdict.reason


def test_the_last_time_at_which_a_level_changed_needs_no_regular_sampling(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    t = np.sort(rng.uniform(0, 4000, 3000))
    queue = 50 + 20 * np.sign(np.sin(2 * np.pi * t / 61)) + rng.normal(0, 3, len(t))
    judged = only(write(tmp_path / "queue.csv", t_s=t, queue=queue))
    assert judged.verdict.verdict == "limit_cycle"
    assert judged.verdict.period_s == pytest.approx(61, rel=0.01)
    assert any("irregular" in note for note in judged.notes)


def test_short_gaps_are_bridged_and_a_long_one_leaves_the_longest_stretch(tmp_path: Path) -> None:
    t = np.arange(0, 6000, 5.0)
    x = 10.5 + np.sin(2 * np.pi * t / 100)
    few = np.ones(len(t), dtype=bool)
    few[[100, 101, 102, 500, 501]] = False
    bridged = only(write(tmp_path / "few.csv", t_s=t[few], x=x[few]), scale=2.0)
    assert (bridged.verdict.verdict, any("bridged" in note for note in bridged.notes)) == ("limit_cycle", True)
    half = (t < 1500) | (t > 3000)
    cut = only(write(tmp_path / "half.csv", t_s=t[half], x=x[half]), scale=2.0)
    assert cut.span_s == pytest.approx(3000, rel=0.01)
    assert cut.verdict.period_s == pytest.approx(100, rel=0.01)


def test_a_lasting_step_is_described_and_does_not_hide_the_cycle(tmp_path: Path) -> None:
    t = np.arange(0, 4000, 2.0)
    wave = np.sin(2 * np.pi * t / 60)
    judged = only(write(tmp_path / "x.csv", t_s=t, x=20.3 + 30.0 * (t > 2000) + 2 * wave), scale=20.0)
    assert judged.verdict.verdict == "limit_cycle"
    assert judged.verdict.period_s == pytest.approx(60, rel=0.01)
    (step,) = judged.steps
    assert step.at_s == pytest.approx(2000, abs=20)
    assert step.after - step.before == pytest.approx(30, abs=1)


def test_overshoot_and_settling_of_a_second_order_step_are_those_of_its_equation(tmp_path: Path) -> None:
    t = np.arange(0, 400, 0.25)
    zeta, omega, since = 0.3, 0.5, np.maximum(t - 100, 0)
    damped = omega * np.sqrt(1 - zeta**2)
    ring = np.exp(-zeta * omega * since) * (np.cos(damped * since) + zeta * omega / damped * np.sin(damped * since))
    judged = only(write(tmp_path / "step.csv", t_s=t, x=1.5 + 10 * (1 - ring)))
    (step,) = judged.steps
    assert step.overshoot_ratio == pytest.approx(np.exp(-np.pi * zeta / np.sqrt(1 - zeta**2)), rel=0.05)
    assert step.settling_s == pytest.approx(np.log(20) / (zeta * omega), rel=0.3)


def test_bins_keep_the_integral_of_a_held_series() -> None:
    rng = np.random.default_rng(1)
    t = np.concatenate([[0.0], np.sort(rng.uniform(0, 100, 300)), [100.0]])
    y = rng.integers(0, 9, len(t)).astype(float)
    bins = even(Raw(name="x", t_s=t, values=y), step_s=2.0)
    assert bins.mean.sum() * bins.step_s == pytest.approx(float(np.sum(y[:-1] * np.diff(t))))
    assert np.all((bins.minimum <= bins.mean + 1e-9) & (bins.mean <= bins.maximum + 1e-9))


def test_noise_within_the_zigzags_threshold_makes_no_reversals() -> None:
    x = np.array([0, 5, 4.5, 6, 1, 1.4, 0.8, 7.0])
    assert list(moves.moves(x, 2.0)) == [0, 6, 0.8, 7]
    assert moves.reversals(x, 2.0) == 2
    assert moves.flaps(x, 2.0) == 1


def test_a_square_wave_has_no_lasting_steps() -> None:
    assert level_changes(np.sign(np.sin(np.arange(2000) / 10))) == []


def test_the_command_prints_a_table_or_json_and_writes_a_page(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(judge)
    path, page = tracker(tmp_path), tmp_path / "page.html"
    result = CliRunner().invoke(app, [str(path), "--load", "load_per_s"])
    assert result.exit_code == 0
    assert "driven" in result.output
    invoked = CliRunner().invoke(app, [str(path), "--load", "load_per_s", "--json", "--html", str(page)])
    answer = json.loads(invoked.output)
    assert answer["series"]["replicas"]["verdict"] == "driven"
    assert 'id="judged-0"' in page.read_text(encoding="utf-8")


def test_rates_an_hour_are_of_the_stretch_that_was_judged(tmp_path: Path) -> None:
    t = np.arange(0, 4000, 10.0)
    x = np.round(t / 10) % 2
    x[(t >= 2000) & (t < 3600)] = np.nan
    judged = only(write(tmp_path / "hole.csv", t_s=t, x=x))
    assert judged.reversals_per_hour == pytest.approx(360, rel=0.02)
    assert any("longest stretch alone, from 0 to 1990 s" in note for note in judged.notes)


def test_a_record_too_long_for_its_samples_says_how_wide_its_bins_are(tmp_path: Path) -> None:
    judged = only(write(tmp_path / "long.csv", t_s=np.arange(50_000), x=np.arange(50_000) % 900 / 7))
    assert "50000 samples every 1 s put into 20000 bins of 2.5 s" in judged.notes
