"""The page of loops: what it draws agrees with the theory that it stands for, and it needs no network."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from scenarios.analyze.analysis import Analysis, analyze
from scenarios.report.loops_page import loop_figure, step_response, write_loops_page
from scenarios.schema.load import load


@pytest.fixture(scope="module")
def analyses() -> dict[str, Analysis]:
    return {analysis.candidate: analysis for analysis in analyze(load("hopf"))}


def test_a_step_settles_at_the_loop_gain_over_one_more_and_a_loop_beyond_its_hopf_gain_grows(
    analyses: dict[str, Analysis],
) -> None:
    gentle, beyond = analyses["gentle"].prediction.loop, analyses["beyond"].prediction.loop
    assert gentle is not None
    assert beyond is not None
    gain = float(np.abs(gentle.response(np.array([1e-9j]))[0]))
    _, output = step_response(gentle)
    assert output[-1] == pytest.approx(gain / (1 + gain), rel=1e-3)
    assert np.max(np.abs(output)) < 2
    _, grown = step_response(beyond)
    half = len(grown) // 2
    assert np.ptp(grown[half:]) > np.ptp(grown[:half])


def test_the_nyquist_curve_passes_minus_one_at_the_stated_distance(
    analyses: dict[str, Analysis],
) -> None:
    near = analyses["near"].prediction
    assert near.loop is not None
    curve = next(trace for trace in loop_figure(near.loop, "#000000").data if trace.xaxis == "x3")
    distance = np.min(np.abs(1 + np.asarray(curve.x) + 1j * np.asarray(curve.y)))
    assert distance == pytest.approx(near.margins["modulus_margin"], rel=1e-6)


def test_every_candidate_has_a_row_and_those_without_a_linear_loop_say_so(
    analyses: dict[str, Analysis], tmp_path: Path
) -> None:
    gate = [analysis for analysis in analyze(load("full_empty_reference")) if analysis.candidate == "retirement_gate"]
    page = write_loops_page([*analyses.values(), *gate], "A <title>", "Which?", tmp_path / "p.html").read_text()
    assert "A &lt;title&gt;" in page
    rows = re.findall(r"<tr><td>(\w+)</td>", page)
    assert rows == [*analyses, "retirement_gate"]
    assert page.count("No linear loop to draw.") == 1
    assert page.count('id="loop-') == len(analyses)
    assert not re.search(r"<(script|link|img)[^>]*(src|href)=", page)


def test_the_page_is_written_to_the_path_named(analyses: dict[str, Analysis], tmp_path: Path) -> None:
    path = write_loops_page([analyses["gentle"]], "t", "q", tmp_path / "deep" / "loops.html")
    assert "gentle" in path.read_text(encoding="utf-8")
    assert [analysis.name for analysis in path.parent.iterdir()] == ["loops.html"]
