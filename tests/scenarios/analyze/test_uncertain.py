"""The worst corner of the uncertainty that a scenario states."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from policies.design.residence import Shape
from scenarios.analyze import analyze
from scenarios.analyze.uncertain import corner_plant, shape_of_cv
from scenarios.cli import app
from scenarios.cli.common import only
from scenarios.errors import UserError
from scenarios.schema.load import load

BOX = "uncertainty={ dead_time_ratio = [0.5, 2.0], residence_ratio = [0.5, 2.0] }"


@pytest.mark.slow
def test_a_law_that_is_steady_as_stated_starves_at_the_corner_of_a_long_pipeline() -> None:
    # Assumed L = 10 s; with a true L of 20 s and T of 5 s it holds 0.729, with the shorter T less.
    scenario = only(load("full_empty_reference", [BOX, "horizon_s=900"]), ["predictive_buffer"])
    (analysis,) = analyze(scenario)
    assert analysis.prediction.utilization_ratio == pytest.approx(0.997, abs=0.002)
    worst = analysis.worst
    assert worst is not None
    assert (worst.dead_time_ratio, worst.residence_ratio, worst.count, worst.cycling) == (2.0, 0.5, 4, 0)
    # q (L + T) = N + q0 10 + B* + (q0 - q) / k with q0 = N / T, so that q T / N is
    expected = (1.1 + 20 / 2.5) / (22.5 / 2.5 + 10 / 2.5)
    assert worst.prediction.utilization_ratio == pytest.approx(expected, abs=0.005)
    assert analysis.to_json()["worst_corner"]["dead_time_ratio"] == 2.0  # type: ignore[index]


@pytest.mark.slow
def test_a_corner_at_which_a_loop_cycles_is_worse_than_any_that_starves() -> None:
    box = "uncertainty={ residence_cv_ratio = [0.0, 1.0] }"
    gain = "candidates.near.admission.k_per_s=0.32"
    result = CliRunner().invoke(app, ["analyze", "hopf", "--candidate", "near", "--set", gain, "--set", box])
    assert result.exit_code == 0
    assert "worst corner of the stated uncertainty: L x 1, T x 1, residence cv 0: limit cycle" in " ".join(
        result.output.split()
    )
    assert "cycles in 1 of 2 corners" in " ".join(result.output.split())
    assert "disk gain" in result.output


def test_a_corner_scales_what_the_plant_is_and_leaves_the_law_alone() -> None:
    from scenarios.analyze.model import plant_of

    plant = plant_of(load("full_empty_reference"))
    other = corner_plant(plant, 2.0, 0.5, 0.0, 1.0)
    assert (other.dead_time_s, other.residence_s, other.shape) == (20.0, 2.5, Shape(kind="fixed"))
    assert corner_plant(plant, 1.0, 1.0, None, 1.0) == plant
    assert [shape_of_cv(cv).cv for cv in (0.0, 1.0, 3.0)] == [0.0, 1.0, 3.0]


def test_a_range_the_wrong_way_round_is_refused_with_its_name() -> None:
    with pytest.raises(UserError, match="the lower end comes first"):
        load("full_empty_reference", ["uncertainty={ dead_time_ratio = [2.0, 0.5] }"])
