"""Series from elsewhere: read, put into equal bins, judged, and blamed on the right thing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

from scenarios.cli.judge import judge
from scenarios.errors import UserError
from scenarios.judge import Judged, judge_file, mechanism, resample
from scenarios.judge.read import Raw, read_series
from scenarios.judge.resample import even

HOUR_S = 3600.0


def write(path: Path, **columns: object) -> Path:
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


def only(path: Path, **options: object) -> Judged:
    (one,) = judge_file(path, **options)  # type: ignore[arg-type]
    return one


def test_two_replicas_and_one_in_turn_every_twenty_seconds_are_a_limit_cycle(tmp_path: Path) -> None:
    t = np.arange(0, HOUR_S, 20.0)
    one = only(write(tmp_path / "replicas.csv", t_s=t, replicas=2 - np.arange(len(t)) % 2))
    assert one.verdict.verdict == "limit_cycle"
    assert one.verdict.period_s == pytest.approx(40, rel=1e-4)
    assert one.reversals_per_hour == pytest.approx(180, rel=0.02)
    assert one.flaps_per_hour == pytest.approx(90, rel=0.02)
    assert "N/(N-1)" in one.likely


@pytest.mark.parametrize("every_s", [5.0, 7.0, 10.0])
def test_the_same_replicas_scraped_at_another_interval_keep_their_period(tmp_path: Path, every_s: float) -> None:
    t = np.arange(0, 2 * HOUR_S, every_s)
    one = only(write(tmp_path / "replicas.csv", t_s=t, replicas=2 - np.floor(t / 20).astype(int) % 2))
    assert one.verdict.verdict == "limit_cycle"
    assert one.verdict.period_s == pytest.approx(40, rel=0.01)


def tracker(tmp_path: Path) -> Path:
    t = np.arange(0, 2 * HOUR_S, 5.0)
    load = 100 + 40 * np.sin(2 * np.pi * t / 300)
    return write(tmp_path / "tracker.csv", t_s=t, load_per_s=load, replicas=np.ceil(load / 10).astype(int))


def test_a_perfect_tracker_of_a_periodic_load_is_driven_and_its_controller_is_not_blamed(tmp_path: Path) -> None:
    one = only(tracker(tmp_path), load="load_per_s")
    assert one.verdict.verdict == "driven"
    assert "load_per_s" in one.verdict.reason
    assert "not the controller" in one.likely
    blind = only(tracker(tmp_path), columns=["replicas"])
    assert blind.verdict.verdict == "limit_cycle"
    assert "load column" in blind.likely


def test_a_doubling_scaler_is_told_that_it_does_not_count_what_is_pending(tmp_path: Path) -> None:
    replicas = [4, 8, 16, 16, 8, 4] * 40
    t = np.arange(len(replicas)) * 15.0
    one = only(write(tmp_path / "scaler.csv", time=t, replicas=replicas))
    assert one.verdict.period_s == pytest.approx(90, rel=1e-3)
    assert "pending" in one.likely
    assert "1 unseen" in one.likely


@pytest.mark.parametrize(
    ("values", "word", "says"),
    [([3] * 500, "constant", "never leaves 3"), ([1, 2, 1], "undecided", "samples are too few")],
)
def test_constant_and_short_series_are_answered_plainly(
    tmp_path: Path, values: list[int], word: str, says: str
) -> None:
    one = only(write(tmp_path / "x.csv", t_s=np.arange(len(values)) * 15.0, x=values))
    assert one.verdict.verdict == word
    assert says in one.verdict.reason


def test_the_last_time_at_which_a_level_changed_needs_no_regular_sampling(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    t = np.sort(rng.uniform(0, 4000, 3000))
    queue = 50 + 20 * np.sign(np.sin(2 * np.pi * t / 61)) + rng.normal(0, 3, len(t))
    one = only(write(tmp_path / "queue.csv", t_s=t, queue=queue))
    assert one.verdict.verdict == "limit_cycle"
    assert one.verdict.period_s == pytest.approx(61, rel=0.01)
    assert any("irregular" in note for note in one.notes)


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
    one = only(write(tmp_path / "x.csv", t_s=t, x=20.3 + 30.0 * (t > 2000) + 2 * wave), scale=20.0)
    assert one.verdict.verdict == "limit_cycle"
    assert one.verdict.period_s == pytest.approx(60, rel=0.01)
    (step,) = one.steps
    assert step.at_s == pytest.approx(2000, abs=20)
    assert step.after - step.before == pytest.approx(30, abs=1)


def test_overshoot_and_settling_of_a_second_order_step_are_those_of_its_equation(tmp_path: Path) -> None:
    t = np.arange(0, 400, 0.25)
    zeta, omega, since = 0.3, 0.5, np.maximum(t - 100, 0)
    damped = omega * np.sqrt(1 - zeta**2)
    ring = np.exp(-zeta * omega * since) * (np.cos(damped * since) + zeta * omega / damped * np.sin(damped * since))
    one = only(write(tmp_path / "step.csv", t_s=t, x=1.5 + 10 * (1 - ring)))
    (step,) = one.steps
    assert step.overshoot_ratio == pytest.approx(np.exp(-np.pi * zeta / np.sqrt(1 - zeta**2)), rel=0.05)
    assert step.settling_s == pytest.approx(np.log(20) / (zeta * omega), rel=0.3)


def test_a_prometheus_answer_is_read_with_the_labels_that_tell_its_series_apart(tmp_path: Path) -> None:
    t = 1_700_000_000 + np.arange(0, HOUR_S, 15.0)
    result = [
        {
            "metric": {"__name__": "kube_deployment_status_replicas", "namespace": "serving", "deployment": name},
            "values": [[float(at), str(int(2 + (i // 4 + shift) % 2))] for i, at in enumerate(t)],
        }
        for shift, name in enumerate(("prefill", "decode"))
    ]
    path = tmp_path / "answer.json"
    path.write_text(json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}))
    judged = judge_file(path)
    assert [one.name for one in judged] == [
        'kube_deployment_status_replicas{deployment="prefill"}',
        'kube_deployment_status_replicas{deployment="decode"}',
    ]
    assert all(one.verdict.period_s == pytest.approx(120, rel=0.01) for one in judged)


def test_dates_and_epochs_in_milliseconds_are_seconds_all_the_same(tmp_path: Path) -> None:
    dates = pd.date_range("2026-01-01", periods=100, freq="30s", tz="UTC")
    stamped = write(tmp_path / "a.csv", timestamp=dates.astype(str), x=np.arange(100.0))
    epochs = write(tmp_path / "b.csv", ts=1_767_225_600_000 + 30_000 * np.arange(100), x=np.arange(100.0))
    for path in (stamped, epochs):
        (raw,) = read_series(path)
        assert (raw.t_s[0], raw.t_s[-1]) == pytest.approx((0, 2970))


def test_parquet_is_read_as_csv_is(tmp_path: Path) -> None:
    t = np.arange(0, 3000, 5.0)
    pd.DataFrame({"t_s": t, "x": 10.5 + np.sin(t / 10)}).to_parquet(tmp_path / "x.parquet")
    assert only(tmp_path / "x.parquet", scale=1.0).verdict.period_s == pytest.approx(20 * np.pi, rel=0.01)


def test_bins_keep_the_integral_of_a_held_series() -> None:
    rng = np.random.default_rng(1)
    t = np.concatenate([[0.0], np.sort(rng.uniform(0, 100, 300)), [100.0]])
    y = rng.integers(0, 9, len(t)).astype(float)
    bins = even(Raw(name="x", t_s=t, values=y), step_s=2.0)
    assert bins.mean.sum() * bins.step_s == pytest.approx(float(np.sum(y[:-1] * np.diff(t))))
    assert np.all((bins.minimum <= bins.mean + 1e-9) & (bins.mean <= bins.maximum + 1e-9))


def test_noise_within_the_zigzags_threshold_makes_no_reversals() -> None:
    x = np.array([0, 5, 4.5, 6, 1, 1.4, 0.8, 7.0])
    assert list(mechanism.moves(x, 2.0)) == [0, 6, 0.8, 7]
    assert mechanism.reversals(x, 2.0) == 2
    assert mechanism.flaps(x, 2.0) == 1


def test_a_square_wave_has_no_lasting_steps() -> None:
    assert resample.level_changes(np.sign(np.sin(np.arange(2000) / 10))) == []


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("x.csv", "t_s\n1\n2\n", "one column is not enough"),
        ("x.csv", "t_s,x\nsoon,1\nlater,2\n", "neither seconds nor a date"),
        ("x.json", "{}", "Prometheus"),
        ("x.json", "not json", "Prometheus"),
        ("x.txt", "t_s,x\n", "is not understood"),
        ("x.csv", "t_s,x\n1,a\n2,b\n", "no numeric series"),
    ],
)
def test_a_file_that_cannot_be_judged_is_refused_in_one_line(tmp_path: Path, name: str, text: str, says: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(UserError, match=says) as caught:
        judge_file(path)
    assert "\n" not in str(caught.value)


def test_a_misspelt_series_gets_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="did you mean `load_per_s`"):
        judge_file(tracker(tmp_path), load="load_per_sec")
    with pytest.raises(UserError, match="did you mean `replicas`"):
        judge_file(tracker(tmp_path), columns=["replica"])


def test_the_command_prints_a_table_or_json_and_writes_a_page(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(judge)
    path, page = tracker(tmp_path), tmp_path / "page.html"
    told = CliRunner().invoke(app, [str(path), "--load", "load_per_s"])
    assert told.exit_code == 0
    assert "driven" in told.output
    made = CliRunner().invoke(app, [str(path), "--load", "load_per_s", "--json", "--html", str(page)])
    answer = json.loads(made.output)
    assert answer["series"]["replicas"]["verdict"] == "driven"
    assert 'id="judged-0"' in page.read_text(encoding="utf-8")


def test_a_word_among_numbers_is_an_error_with_its_row(tmp_path: Path) -> None:
    path = tmp_path / "series.csv"
    path.write_text("t,a\n0,1\n20,\n40,x\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"row 4, column `a`: `x` is not a number"):
        read_series(path)


def test_rows_out_of_order_or_twice_are_mended_and_it_is_said(tmp_path: Path) -> None:
    one = only(write(tmp_path / "again.csv", t_s=np.arange(300) % 3, x=np.arange(300)))
    assert one.samples == 3
    assert "time goes back 99 times: rows put in order" in one.notes
    assert "297 samples at an instant that comes again left out: the last one stands" in one.notes
    assert one.verdict.reason.startswith("3 samples are too few")
    assert only(write(tmp_path / "good.csv", t_s=np.arange(300), x=np.arange(300) % 7)).notes == ()


def test_lines_longer_than_the_header_are_no_labels_of_rows(tmp_path: Path) -> None:
    rows = "".join(f"{i},{i % 7},\n" for i in range(60))
    path = tmp_path / "long.csv"
    path.write_text("t_s,x\n" + rows, encoding="utf-8")
    assert (only(path).name, only(path).samples, only(path).mean.max()) == ("x", 60, 6.0)
    path.write_text("t_s,x\n" + rows.replace(",\n", ",5\n"), encoding="utf-8")
    with pytest.raises(UserError, match="more fields than the header names"):
        judge_file(path)


def test_json_nested_without_end_is_no_answer_of_prometheus(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(UserError, match="not the answer of a Prometheus range query"):
        judge_file(path)


def test_values_that_are_missing_are_counted_and_what_bridges_them_is_said(tmp_path: Path) -> None:
    t = np.arange(0, 4000, 10.0)
    x = 5 + np.sin(2 * np.pi * t / 300)
    empty = x.copy()
    empty[[20, 40, 60, 61, 62]] = np.nan
    one = only(write(tmp_path / "empty.csv", t_s=t, x=empty))
    assert "5 of 400 values empty or not finite: left out" in one.notes
    assert "2 samples missed singly: bridged" in one.notes
    assert "1 gap (1.0% of the record) bridged" in one.notes
    late = np.where(t < 3000, x, np.nan)
    one = only(write(tmp_path / "late.csv", t_s=t, x=late))
    assert "100 of 400 values empty or not finite: left out" in one.notes
    assert one.span_s == pytest.approx(3000)


def test_rates_an_hour_are_of_the_stretch_that_was_judged(tmp_path: Path) -> None:
    t = np.arange(0, 4000, 10.0)
    x = np.round(t / 10) % 2
    x[(t >= 2000) & (t < 3600)] = np.nan
    one = only(write(tmp_path / "hole.csv", t_s=t, x=x))
    assert one.reversals_per_hour == pytest.approx(360, rel=0.02)
    assert any("longest stretch alone, from 0 to 1990 s" in note for note in one.notes)


def test_a_hole_in_an_irregular_series_is_told(tmp_path: Path) -> None:
    t = np.cumsum(np.random.default_rng(3).exponential(10.0, 400))
    t[200:] += 1000.0
    one = only(write(tmp_path / "hole.csv", t_s=t, x=5 + np.sin(t / 50)))
    assert any(note.startswith("nothing for 10") and note.endswith("joined by a line") for note in one.notes)


def test_a_load_is_not_made_up_where_it_is_missing(tmp_path: Path) -> None:
    t = np.arange(0, 4000, 10.0)
    x, load = 5 + np.sin(2 * np.pi * t / 300), 3 + np.cos(t / 100)
    short = write(tmp_path / "short.csv", t_s=t, x=x, load=np.where(t < 1000, load, np.nan))
    with pytest.raises(UserError, match="load series `load`: does not reach over 75% of `x`, from 0 to 990 s"):
        judge_file(short, load="load")
    nearly = write(tmp_path / "nearly.csv", t_s=t, x=x, load=np.where(t < 3800, load, np.nan))
    assert "load `load`: held over the 5.0% of the record that it does not reach" in only(nearly, load="load").notes


def test_a_record_too_long_for_its_own_samples_says_how_wide_its_bins_are(tmp_path: Path) -> None:
    one = only(write(tmp_path / "long.csv", t_s=np.arange(50_000), x=np.arange(50_000) % 900 / 7))
    assert "50000 samples every 1 s put into 20000 bins of 2.5 s" in one.notes


@pytest.mark.filterwarnings("error")
def test_a_header_without_rows_is_refused_without_warnings(tmp_path: Path) -> None:
    path = tmp_path / "empty.csv"
    path.write_text("t_s,x\n", encoding="utf-8")
    with pytest.raises(UserError, match="holds no row"):
        judge_file(path)
