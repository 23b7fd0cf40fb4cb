"""Files to judge: their formats, mistakes refused in one line, gaps and repairs that are reported."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from scenarios.errors import UserError
from scenarios.judge import judge_file
from scenarios.judge.read import read_series
from tests.scenarios.judge.series import HOUR_S, only, tracker, write


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
    assert [series.name for series in judged] == [
        'kube_deployment_status_replicas{deployment="prefill"}',
        'kube_deployment_status_replicas{deployment="decode"}',
    ]
    assert all(series.verdict.period_s == pytest.approx(120, rel=0.01) for series in judged)


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


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("x.csv", "t_s\n1\n2\n", "one column is not enough"),
        ("x.csv", "t_s,x\nsoon,1\nlater,2\n", "neither seconds nor a date"),
        ("x.json", "{}", "Prometheus"),
        ("x.json", "not json", "Prometheus"),
        ("x.txt", "t_s,x\n", "holds no row"),
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


def test_a_word_among_numbers_is_an_error_with_its_row(tmp_path: Path) -> None:
    path = tmp_path / "series.csv"
    path.write_text("t,a\n0,1\n20,\n40,x\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"row 4, column `a`: `x` is not a number"):
        read_series(path)


def test_rows_out_of_order_or_twice_are_repaired_and_reported(tmp_path: Path) -> None:
    judged = only(write(tmp_path / "again.csv", t_s=np.r_[5:9, 0:300], x=np.arange(304)))
    assert judged.samples == 300
    assert "time goes back 1 times: rows put in order" in judged.notes
    assert "4 samples at an instant that comes again left out: the last one stands" in judged.notes
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


def test_values_that_are_missing_are_counted_and_the_bridges_are_reported(tmp_path: Path) -> None:
    t = np.arange(0, 4000, 10.0)
    x = 5 + np.sin(2 * np.pi * t / 300)
    empty = x.copy()
    empty[[20, 40, 60, 61, 62]] = np.nan
    judged = only(write(tmp_path / "empty.csv", t_s=t, x=empty))
    assert "5 of 400 values empty or not finite: left out" in judged.notes
    assert "2 samples missed singly: bridged" in judged.notes
    assert "1 gap (1.0% of the record) bridged" in judged.notes
    late = np.where(t < 3000, x, np.nan)
    judged = only(write(tmp_path / "late.csv", t_s=t, x=late))
    assert "100 of 400 values empty or not finite: left out" in judged.notes
    assert judged.span_s == pytest.approx(3000)


def test_a_hole_in_an_irregular_series_is_reported(tmp_path: Path) -> None:
    t = np.cumsum(np.random.default_rng(3).exponential(10.0, 400))
    t[200:] += 1000.0
    judged = only(write(tmp_path / "hole.csv", t_s=t, x=5 + np.sin(t / 50)))
    assert any(note.startswith("nothing for 10") and note.endswith("joined by a line") for note in judged.notes)


def test_a_load_is_not_invented_where_it_is_missing(tmp_path: Path) -> None:
    t = np.arange(0, 4000, 10.0)
    x, load = 5 + np.sin(2 * np.pi * t / 300), 3 + np.cos(t / 100)
    short = write(tmp_path / "short.csv", t_s=t, x=x, load=np.where(t < 1000, load, np.nan))
    with pytest.raises(UserError, match="load series `load`: does not reach over 75% of `x`, from 0 to 990 s"):
        judge_file(short, load="load")
    nearly = write(tmp_path / "nearly.csv", t_s=t, x=x, load=np.where(t < 3800, load, np.nan))
    assert "load `load`: held over the 5.0% of the record that it does not reach" in only(nearly, load="load").notes


@pytest.mark.filterwarnings("error")
def test_a_header_without_rows_is_refused_without_warnings(tmp_path: Path) -> None:
    path = tmp_path / "empty.csv"
    path.write_text("t_s,x\n", encoding="utf-8")
    with pytest.raises(UserError, match="holds no row"):
        judge_file(path)
