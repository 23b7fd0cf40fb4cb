"""The report: whole in one file, honest in its thinning, and it says what the tables say."""

from __future__ import annotations

import gzip
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from rich.console import Console
from typer.testing import CliRunner

from scenarios.cli.report import report
from scenarios.errors import UserError
from scenarios.report import perfetto
from scenarios.report.numbers import percent, rows, seconds
from scenarios.report.panel import shown
from scenarios.report.panels.repetition import by_period
from scenarios.report.panels.timeline import LANES, worker_strips
from scenarios.report.table import BAD, GOOD, MIXED, tone, verdict_table
from scenarios.run.figures import DASHES, PALETTE, look, thin
from scenarios.run.record import RunData, write
from scenarios.run.result import Run
from tests.scenarios.fake_runs import fake_run, page

ALWAYS = (
    *("occupancy", "ready", "admission", "backlog", "stages"),
    *("latency", "latency-time", "autocorrelation", "spectrum"),
)
THEORY = {"verdict": "limit_cycle", "period_s": 33.39, "decode_utilization_ratio": 0.787, "loss_ratio": 0.213}


@pytest.fixture(scope="module")
def runs() -> list[RunData]:
    return [fake_run("retirement_gate", theory=THEORY), fake_run("predictive_buffer", relay=False)]


@pytest.fixture(scope="module")
def html(runs: list[RunData]) -> str:
    return page(runs)


def text(table: object, width: int = 200) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(table)
    return out.getvalue()


def test_plotly_stands_in_the_page_once_and_nothing_is_fetched(html: str) -> None:
    assert html.count("DecompressionStream") == 1
    assert not re.search(r"<(script|link|img|iframe)[^>]+(src|href)=", html)


def test_every_panel_has_its_fixed_id(html: str) -> None:
    assert [name for name in ALWAYS if html.count(f'id="panel-{name}"') != 1] == []


def test_every_candidate_can_be_switched_in_every_panel(html: str) -> None:
    assert re.findall(r'data-candidate="([^"]+)"', html) == ["retirement_gate", "predictive_buffer"]
    for name in ALWAYS:
        figure = html.split(f'id="panel-{name}"', 1)[1].split("</script>", 1)[0]
        assert set(re.findall(r'"legendgroup":"([^"]+)"', figure)) == {"retirement_gate", "predictive_buffer"}, name


def test_the_question_the_answer_and_the_theory_stand_at_the_top(html: str) -> None:
    top = html.split("<header>", 1)[1].split("<nav", 1)[0].replace("&nbsp;", " ")
    assert "Does a gate on decode occupancy oscillate" in top
    assert re.search(r"limit cycle, period 3\d\.\d s, cost 21 %, starved", top)
    assert "limit cycle, period 33.4 s, cost 21.3 %" in top


def test_titles_say_the_finding(html: str) -> None:
    titles = re.findall(r"<h3>([^<]+)</h3>", html)
    assert re.match(r"Decode occupancy: retirement_gate moves between .* every 3\d\.\d s; predictive_buffer", titles[0])
    assert any(re.match(r"Spectrum: retirement_gate peaks at 3\d", title) for title in titles)


def test_a_hostile_name_is_shown_and_not_run() -> None:
    run = fake_run("<script>alert(1)</script>", horizon_s=90.0)
    assert "<script>alert(1)" not in page([run])


def test_six_candidates_on_a_long_run_stay_under_eight_megabytes() -> None:
    long = fake_run(horizon_s=1400.0, warmup_s=400.0)
    assert len(page([long] * 6).encode()) < 8e6


def test_runs_of_one_name_are_told_apart(runs: list[RunData]) -> None:
    other = fake_run("retirement_gate", seed=8, horizon_s=90.0)
    assert [s.name for s in shown([runs[0], other])] == ["retirement_gate (seed 7)", "retirement_gate (seed 8)"]
    assert len({s.name for s in shown([runs[0], runs[0]])}) == 2


def test_a_run_without_turns_or_verdicts_still_has_a_page(runs: list[RunData]) -> None:
    run = runs[0]
    bare = RunData(
        candidate="fluid",
        title="",
        question="",
        signals=run.signals,
        turns=run.turns.iloc[:0],
        events=[],
        verdicts={},
        summary={"window_s": [60.0, 300.0], "headline": "steady, fed"},
    )
    html = page([bare])
    assert 'id="panel-occupancy"' in html
    assert 'id="panel-latency"' not in html
    assert 'id="panel-spectrum"' not in html


@given(
    arrays(float, st.integers(1, 300), elements=st.floats(-1e6, 1e6) | st.just(np.nan)),
    st.integers(1, 60),
)
def test_thinning_keeps_the_extremes_and_the_mean(values: np.ndarray, points: int) -> None:
    t = np.arange(len(values), dtype=float)
    at, mean, low, high = thin(t, values, values - 1.0, values + 1.0, points)
    assert len(at) == len(mean) <= points
    assert np.all(np.diff(at) > 0)
    if np.isfinite(values).any():
        assert np.nanmax(high) == np.nanmax(values) + 1.0
        assert np.nanmin(low) == np.nanmin(values) - 1.0
        assert np.nanmin(values) - 1e-6 <= np.nanmin(mean) <= np.nanmax(mean) <= np.nanmax(values) + 1e-6


def test_a_thinned_spectrum_keeps_its_peak(runs: list[RunData]) -> None:
    verdict = runs[0].verdicts["decode_occupancy_ratio"]
    periods, power = by_period(verdict)
    assert power.max() == verdict.spectrum[1:].max()
    assert periods[np.argmax(power)] == pytest.approx(1.0 / verdict.spectrum_hz[1 + np.argmax(verdict.spectrum[1:])])


def test_candidates_look_different_up_to_two_dozen() -> None:
    looks = [look(i, str(i)) for i in range(len(PALETTE) * len(DASHES))]
    assert len({(look_.color, look_.dash) for look_ in looks}) == len(looks)


def test_the_table_gives_each_candidate_a_line(runs: list[RunData]) -> None:
    shown_text = text(verdict_table([run.summary for run in runs], width=200))
    assert "limit cycle" in shown_text
    assert "steady, fed" in shown_text
    assert "in use" in shown_text


def test_the_table_takes_the_means_and_modes_of_a_comparison() -> None:
    summary = {
        "candidate": "a",
        "headline": {"mode": "steady, fed", "counts": {"steady, fed": 9, "ringing, fed": 1}},
        "flow": {"decode_utilization_ratio": {"mean": 0.7871, "ci95": [0.7851, 0.7891]}, "starved_ratio": None},
        "latency": {"ttft_s": {"p50": {"mean": 0.25, "ci95": None}, "p99": {"mean": 12.0, "ci95": None}}},
    }
    headings, lines = rows([summary])
    cells = dict(zip(headings, lines[0]))
    assert cells == {
        "candidate": "a",
        "verdict": "steady, fed (9 of 10 seeds)",
        "in use": "78.7 ±0.2 %",
        "TTFT p50 / p99": "250 ms / 12 s",
    }


def test_numbers_read_as_people_write_them() -> None:
    assert [percent(x) for x in (None, 0.0, 0.004, 0.787, 1.0)] == ["–", "0 %", "0.4 %", "78.7 %", "100.0 %"]
    assert [seconds(x) for x in (None, 0.0, 0.0451, 33.39, 1400.0)] == ["–", "0 s", "45.1 ms", "33.4 s", "1,400 s"]


def test_a_run_plots_itself(runs: list[RunData]) -> None:
    figure = Run(runs[0]).plot()
    assert "limit cycle" in figure.layout.title.text
    assert {trace.name for trace in figure.data} == {"retirement_gate"}


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0.001, 20)), max_size=20))
def test_no_two_slices_of_a_lane_overlap(spans: list[tuple[float, float]]) -> None:
    spans.sort()
    begins = np.array([b for b, _ in spans])
    ends = np.array([b + d for b, d in spans])
    lane = perfetto.lanes(begins, ends)
    for number in set(lane.tolist()):
        of_lane = lane == number
        assert np.all(ends[of_lane][:-1] <= begins[of_lane][1:])
    depth = max((int(((begins <= t) & (ends > t)).sum()) for t in begins), default=0)
    assert lane.max(initial=-1) + 1 <= max(depth, 1)


def test_the_trace_holds_each_stage_of_each_turn_once(runs: list[RunData]) -> None:
    turns = runs[0].turns
    slices = [e for e in perfetto.events(runs[0]) if e["ph"] == "X"]
    for stage in perfetto.STAGES:
        assert sum(e["cat"] == stage.name for e in slices) == int(turns[stage.begins].notna().sum()), stage.name
    assert all(e["dur"] >= 0 for e in slices)
    decode = sum(e["dur"] for e in slices if e["cat"] == "decode" and e["args"]["outcome"] == "retired") / 1e6
    retired = turns[turns["outcome"] == "retired"]
    assert decode == pytest.approx((retired["ended_s"] - retired["joined_s"]).sum())


def test_the_command_writes_the_page_and_the_trace(runs: list[RunData], tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(report)
    for run in runs:
        write(tmp_path / "both" / run.candidate, run)
    result = CliRunner().invoke(app, [str(tmp_path / "both"), "--perfetto"])
    assert result.exit_code == 0, result.output
    html = (tmp_path / "both" / "report.html").read_text(encoding="utf-8")
    assert 'data-candidate="retirement_gate"' in html
    assert 'data-candidate="predictive_buffer"' in html
    trace = json.loads(gzip.decompress((tmp_path / "both" / "retirement_gate" / "trace.perfetto.json.gz").read_bytes()))
    assert {"X", "C", "M", "i"} == {event["ph"] for event in trace["traceEvents"]}


def test_a_missing_run_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nothing of that name"):
        report([tmp_path / "none"])


def test_runs_of_different_scenarios_do_not_share_a_page(runs: list[RunData], tmp_path: Path) -> None:
    write(tmp_path / "a", runs[0])
    write(tmp_path / "b", replace(runs[1], title="Another question"))
    with pytest.raises(UserError, match=r"'Another question'.*'Full, then empty'.*one scenario") as reply:
        report([tmp_path])
    assert "\n" not in str(reply.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


CLUSTER = ("pools", "kv", "timeline")


def test_cluster_panels_appear_only_with_their_data(html: str) -> None:
    cluster = page([fake_run(cluster=True, horizon_s=150.0)])
    assert [name for name in CLUSTER if f'id="panel-{name}"' not in cluster] == []
    assert [name for name in CLUSTER if f'id="panel-{name}"' in html] == []


def test_the_timeline_draws_the_turns_of_its_workers() -> None:
    run = fake_run(cluster=True, horizon_s=150.0)
    strips, (first, until) = worker_strips(run)
    assert {strip.role for strip in strips} == {"fill", "decode"}
    for strip in strips:
        assert np.all(strip.begins >= first)
        assert np.all(strip.ends <= until)
        assert strip.lane.max() < LANES
    worker = strips[-1].worker
    of_worker = run.turns[(run.turns["decode_worker"] == worker)]
    at = (first + until) / 2
    inside = int(((of_worker["joined_s"] <= at) & ~(of_worker["ended_s"] <= at)).sum())
    drawn = int(((strips[-1].begins <= at) & (strips[-1].ends > at)).sum())
    assert drawn <= inside <= strips[-1].depth


@pytest.mark.parametrize("width", [80, 100, 160])
def test_the_table_fits_the_terminal_and_says_what_it_left_out(runs: list[RunData], width: int) -> None:
    lines = text(verdict_table([run.summary for run in runs], width=width), width).splitlines()
    assert max(len(line.rstrip()) for line in lines) <= width
    message = " ".join(lines)
    assert all(word in message for word in ("retirement_gate", "predictive_buffer", "in use", "starved"))
    assert ("left out for want of width: TPOT" in message) == (width < 160)


@pytest.mark.parametrize(
    ("headline", "colour"),
    [
        ("limit cycle, period 33.4 s, cost 21 %, starved", BAD),
        ("limit cycle, period 0.513 s, cost 0 %, fed", MIXED),
        ("limit cycle, period 4.83 s, cost 4 %, fed", BAD),
        ("steady, cost 67 %, starved", BAD),
        ("steady, saturated", MIXED),
        ("steady, fed", GOOD),
        ("unbounded backlog_turns, saturated", BAD),
        ("quasi cycle, period 7.4 s, cost 1 %, fed", MIXED),
    ],
)
def test_a_harmless_ripple_is_not_sold_as_a_disaster(headline: str, colour: str) -> None:
    assert tone(headline) == colour
