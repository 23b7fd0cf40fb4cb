"""Grids, stability maps, resuming, and theory's boundary beside what was measured."""

from __future__ import annotations

import json
import sys
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from scenarios import cli
from scenarios.catalogue.verdict import LOOP_CYCLES
from scenarios.cli import app
from scenarios.cli.sweep import expected
from scenarios.errors import UserError
from scenarios.report.sweep_page import sweep_figure
from scenarios.run.many import Job
from scenarios.sweep import parse_axis, sweep
from tests.scenarios.gated_fluid import GAIN, gated_fluid

FLUID = gated_fluid("Hopf, as a fluid", {"gate": (12.5, 0.5, 125.0)})


@pytest.fixture
def fluid(tmp_path: Path) -> str:
    path = tmp_path / "fluid.toml"
    path.write_text(FLUID)
    return str(path)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a.b=1,2,3.5", (1.0, 2.0, 3.5)),
        ("a.b=0:1:3", (0.0, 0.5, 1.0)),
        ("a.b=0.1:10:3:log", (0.1, 1.0, 10.0)),
    ],
)
def test_the_three_forms_of_an_axis(text: str, values: tuple[float, ...]) -> None:
    axis = parse_axis(text)
    assert axis.path == "a.b"
    assert axis.values == pytest.approx(values)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a.b", "must be PATH="),
        ("a.b=1", "at least two"),
        ("a.b=1,x", "`x` is not a number"),
        ("a.b=0:1:2:log", "positive ends"),
        ("a.b=0:1", "from:to:count"),
        ("a.b=1,inf", "not finite"),
    ],
)
def test_a_bad_axis_is_refused_in_one_line(text: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        parse_axis(text)


@pytest.mark.slow
def test_a_map_has_its_cycles_where_theory_expects_them_and_resumes_where_it_stopped(
    fluid: str, tmp_path: Path
) -> None:
    axes = [parse_axis(f"{GAIN}=0.4,1.2"), parse_axis("plant.dead_time_s=1.0,2.5")]
    kept = tmp_path / "points.jsonl"
    counts: list[tuple[int, int]] = []
    swept = sweep(fluid, axes, kept=kept, expect=expected, done=lambda *n: counts.append(n))
    for point in swept.points:
        assert point.expected is not None
        assert (point.measured["verdict"] in LOOP_CYCLES) == (point.expected["verdict"] in LOOP_CYCLES)
    assert {point.measured["verdict"] in LOOP_CYCLES for point in swept.points} == {True, False}
    lines = kept.read_text().splitlines()
    kept.write_text("\n".join(lines[:2]) + '\n{"key": "torn')
    again: list[tuple[int, int]] = []
    assert sweep(fluid, axes, kept=kept, expect=expected, done=lambda *n: again.append(n)) == swept
    assert (counts[0], again[0], again[-1]) == ((0, 4), (2, 4), (4, 4))
    figure = sweep_figure(swept)
    cells = [trace for trace in figure.data if trace.mode == "markers"]
    assert sum(len(trace.x) for trace in cells) == 4
    assert [trace.name for trace in figure.data if trace.mode == "lines"] != []


class Points:
    """Stand in for the runs: count them, and break off after some."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, last: int = 99) -> None:
        self.count, self.last = 0, last
        module = sys.modules["scenarios.sweep.sweep"]  # its function has the same name
        monkeypatch.setattr(module, "run_many", self.run)

    def run(self, jobs: Sequence[Job], _: int) -> Iterator[tuple[Hashable, dict[str, Any]]]:
        point = {"verdict": "steady", "period_s": None, "amplitude_ratio": 0.0, "damping_ratio": None}
        for job in jobs:
            if self.count == self.last:
                raise KeyboardInterrupt
            self.count += 1
            flow = {"decode_utilization_ratio": 1.0, "starved_ratio": 0.0}
            yield job.key, {"verdict": {"decode_occupancy_ratio": point}, "flow": flow}


def test_an_interrupted_sweep_says_what_it_kept_and_the_same_command_goes_on(
    fluid: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["steadyflow", "sweep", fluid, "--grid", f"{GAIN}=0.4,0.8,1.2", "--jobs", "1"])
    Points(monkeypatch, last=2)
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert left.value.code == 130
    kept = Path("runs/sweep-fluid/points.jsonl")
    result = f"steadyflow: interrupted; 2 of 3 runs are kept in {kept}; the same command goes on from them\n"
    assert capsys.readouterr().err == result
    again = Points(monkeypatch)
    sweep(fluid, [parse_axis(f"{GAIN}=0.4,0.8,1.2")], kept=kept)
    assert again.count == 1
    Points(monkeypatch, last=2)
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--json", "--signal", "decode_occupancy_ratio"])
    with pytest.raises(SystemExit):
        cli.main()
    assert "nothing was kept" in capsys.readouterr().err


def test_points_of_a_file_that_was_edited_since_are_run_again(
    fluid: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    axes, kept = [parse_axis(f"{GAIN}=0.4,1.2")], tmp_path / "points.jsonl"
    runs = Points(monkeypatch)
    sweep(fluid, axes, kept=kept)
    sweep(fluid, axes, kept=kept)
    assert runs.count == 2
    Path(fluid).write_text(FLUID.replace("slots = 250", "slots = 240"), encoding="utf-8")
    sweep(fluid, axes, kept=kept)
    assert runs.count == 4


def test_a_torn_line_costs_its_own_point_alone(fluid: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    axes, kept = [parse_axis(f"{GAIN}=0.4,0.8,1.2")], tmp_path / "points.jsonl"
    runs = Points(monkeypatch)
    sweep(fluid, axes, kept=kept)
    kept_text = kept.read_text(encoding="utf-8")
    kept.write_text("\n".join(kept_text.splitlines()[:1]) + '\n{"key": "torn', encoding="utf-8")
    sweep(fluid, axes, kept=kept)
    assert runs.count == 5
    sweep(fluid, axes, kept=kept)
    assert runs.count == 5


def test_paths_candidates_and_files_that_are_not_there_are_refused(fluid: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such key"):
        sweep(fluid, [parse_axis("plantt.dead_time_s=1,2")])
    with pytest.raises(UserError, match="there are gate"):
        sweep(fluid, [parse_axis("plant.dead_time_s=1,2")], candidate="gat")
    wrong = tmp_path / "notes.txt"
    wrong.write_text("hello\n")
    with pytest.raises(UserError, match="does not hold kept results"):
        sweep(fluid, [parse_axis("plant.dead_time_s=1,2")], kept=wrong)


@pytest.mark.slow
def test_the_command_prints_json_and_writes_the_map(fluid: str, tmp_path: Path) -> None:
    grid = ["--grid", f"{GAIN}=0.4,1.2"]
    result = CliRunner().invoke(app, ["sweep", fluid, *grid, "--jobs", "1", "--out", str(tmp_path / "out"), "--json"])
    answer = json.loads(result.output)
    assert [point["values"][GAIN] for point in answer["points"]] == [0.4, 1.2]
    assert 'id="sweep-map"' in (tmp_path / "out" / "map.html").read_text(encoding="utf-8")
