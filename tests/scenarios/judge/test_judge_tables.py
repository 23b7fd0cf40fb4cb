"""Tables as people bring them: long ones, units, gaps in words, clocks, dashboards, kubectl, standard input."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from scenarios.errors import UserError
from scenarios.judge import judge_file
from scenarios.judge.numbers import number
from scenarios.judge.read import read_series
from tests.scenarios.judge.series import only, write

AT = np.arange(0, 3600, 15.0)
SWITCHED = 3 + 2 * ((AT // 90) % 2)


def long_table(label: str, values: list[object]) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    parts = []
    for k, value in enumerate(values):
        y = SWITCHED if k == 1 else 4 + 0.05 * rng.standard_normal(len(AT))
        parts.append(pd.DataFrame({"time": AT, label: value, "busy": y}))
    return pd.concat(parts).sort_values("time", kind="stable")


@pytest.mark.parametrize(("label", "values"), [("host", ["a", "b", "c"]), ("shard", [0, 1, 2])])
def test_a_long_table_is_split_by_what_tells_its_rows_apart(tmp_path: Path, label: str, values: list[object]) -> None:
    path = tmp_path / "long.csv"
    long_table(label, values).to_csv(path, index=False)
    words = {judged.name: judged.verdict.verdict for judged in judge_file(path)}
    cycling = f'busy{{{label}="{values[1]}"}}'
    assert len(words) == 3
    assert {name for name, word in words.items() if word == "limit_cycle"} == {cycling}


def test_two_labels_are_needed_where_one_leaves_rows_at_the_same_instant(tmp_path: Path) -> None:
    both = [long_table("host", ["a", "b"]).assign(region=region) for region in ("east", "west")]
    path = tmp_path / "long.csv"
    pd.concat(both).to_csv(path, index=False)
    assert len(read_series(path)) == 4


def test_a_long_table_without_labels_is_refused_and_one_with_a_named_label_is_not(tmp_path: Path) -> None:
    table = long_table("note", ["a", "b", "c"])
    path = tmp_path / "long.csv"
    table.drop(columns="note").to_csv(path, index=False)
    with pytest.raises(UserError, match=r"67% of the rows come at an instant that another row has.*--by COLUMN"):
        judge_file(path)
    table.to_csv(path, index=False)
    assert len(read_series(path, by=["note"])) == 3
    with pytest.raises(UserError, match="no column `nott`"):
        read_series(path, by=["nott"])


def test_hosts_that_report_in_turns_are_told_apart_too(tmp_path: Path) -> None:
    rows = pd.DataFrame({"time": np.r_[AT, AT + 7.0], "host": ["a"] * len(AT) + ["b"] * len(AT), "x": np.r_[AT, AT]})
    path = tmp_path / "turns.csv"
    rows.to_csv(path, index=False)
    assert [raw.name for raw in read_series(path)] == ['x{host="a"}', 'x{host="b"}']


def test_only_what_is_asked_for_is_read_and_words_for_nothing_are_gaps(tmp_path: Path) -> None:
    cells = np.where(np.arange(len(AT)) % 40 == 7, "<unknown>", SWITCHED.astype(str))
    path = write(tmp_path / "x.csv", t_s=AT, replicas=cells, other=np.where(AT == 30, "soon", "5"))
    judged = only(path, columns=["replicas"])
    assert judged.verdict.period_s == pytest.approx(180, rel=0.01)
    assert "6 of 240 values empty or not finite: left out" in judged.notes
    with pytest.raises(UserError, match=r"row 4, column `other`: `soon` is not a number"):
        judge_file(path)


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        *(("1.2 K", 1200), ("35%", 0.35), ("250m", 0.25), ("4Mi", 2**22), ("1.234,5", 1234.5), ("3,5", 3.5)),
        *(("12 ms", 0.012), ("7 req/s", 7), ("-2e3", -2000), ("soon", None), ("3 pods", None)),
    ],
)
def test_numbers_with_units_are_numbers(cell: str, value: float | None) -> None:
    assert number(cell) == (value if value is None else pytest.approx(value))


def test_times_of_day_go_on_past_midnight(tmp_path: Path) -> None:
    of_day = (23.5 * 3600 + AT) % 86400
    clock = [f"{int(s // 3600):02d}:{int(s // 60 % 60):02d}:{int(s % 60):02d}" for s in of_day]
    judged = only(write(tmp_path / "clock.csv", timestamp=clock, replicas=SWITCHED))
    assert (judged.verdict.verdict, judged.span_s) == ("limit_cycle", 3600.0)


def test_days_before_months_are_seen_by_their_order(tmp_path: Path) -> None:
    stamps = pd.date_range("2026-03-09", periods=40, freq="6h").strftime("%d/%m/%Y %H:%M")
    (raw,) = read_series(write(tmp_path / "days.csv", time=stamps, x=np.arange(40.0)))
    assert np.allclose(np.diff(raw.t_s), 6 * 3600)


def test_semicolons_decimal_commas_and_a_hash_in_the_header_are_read(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    rows = "".join(f"{t:.0f};{x:.0f},5\n" for t, x in zip(AT, SWITCHED))
    path.write_text("# a comment\ntime;# busy\n" + rows, encoding="utf-8")
    (raw,) = read_series(path)
    assert (raw.name, raw.values.min(), raw.values.max()) == ("# busy", 3.5, 5.5)


def test_what_kubectl_prints_is_read(tmp_path: Path) -> None:
    head = "NAME   REFERENCE        TARGETS     MINPODS   MAXPODS   REPLICAS   AGE"
    rows = [
        f"web    Deployment/web   {'<unknown>' if k == 0 else f'{40 + 50 * (k % 2)}%'}/50%   1         10        "
        f"{2 + 2 * (k % 2)}          {2 * k // 60}h{2 * k % 60}m"
        for k in range(60)
    ]
    path = tmp_path / "hpa.txt"
    path.write_text("\n".join([head, *rows]), encoding="utf-8")
    replicas, target = read_series(path)
    assert (replicas.name, replicas.t_s[-1], set(replicas.values)) == ("replicas", 118 * 60, {2.0, 4.0})
    assert (len(target.values), target.values.max()) == (59, 0.9)


def test_grafana_frames_and_datadog_points_are_read_and_their_errors_shown(tmp_path: Path) -> None:
    ms = (1_790_000_000 + AT) * 1e3
    fields = [{"name": "Time", "type": "time"}, {"name": "busy", "type": "number", "labels": {"pod": "a"}}]
    frame = {"schema": {"fields": fields}, "data": {"values": [ms.tolist(), SWITCHED.tolist()]}}
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"results": {"A": {"frames": [frame]}}}), encoding="utf-8")
    assert only(path).verdict.period_s == pytest.approx(180, rel=0.01)
    points = [[t, x] for t, x in zip(ms.tolist(), SWITCHED.tolist())]
    answer = {"series": [{"metric": "busy", "scope": "pod:a", "pointlist": points}]}
    path.write_text(json.dumps(answer), encoding="utf-8")
    assert only(path).name == 'busy{pod="a"}'
    path.write_text(json.dumps({"status": "error", "error": "unknown function"}), encoding="utf-8")
    with pytest.raises(UserError, match="Prometheus answered with an error: unknown function"):
        judge_file(path)
    path.write_text(json.dumps({"data": {"resultType": "vector", "result": []}}), encoding="utf-8")
    with pytest.raises(UserError, match="ask with query_range"):
        judge_file(path)


def test_several_files_are_judged_together_and_told_apart_by_name(tmp_path: Path) -> None:
    a = write(tmp_path / "a.csv", t_s=AT, busy=SWITCHED)
    b = write(tmp_path / "b.csv", t_s=AT, busy=np.full(len(AT), 4))
    assert {judged.name: judged.verdict.verdict for judged in judge_file(a, b)} == {
        "a: busy": "limit_cycle",
        "b: busy": "constant",
    }


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "t_s,busy\n" + "".join(f"{t},{x}\n" for t, x in zip(AT, SWITCHED))
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    assert only(Path("-")).verdict.verdict == "limit_cycle"
