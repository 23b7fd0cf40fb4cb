"""How many laps an echo lasts goes with the spread of the answers: zeta = pi (sigma / (L + T))^2."""

from __future__ import annotations

import math

import pytest

from scenarios.run.execute import run
from scenarios.schema.load import load


@pytest.mark.slow
@pytest.mark.parametrize(("cv_ratio", "word"), [(0.2, "echo"), (0.5, "steady")])
def test_an_echo_is_heard_while_a_lap_keeps_most_of_it(cv_ratio: float, word: str) -> None:
    summary = run(load("echo_spread", [f"plant.residence.cv_ratio={cv_ratio}"]), "credit_n").summary
    verdict = summary["verdict"]["decode_occupancy_ratio"]
    zeta = math.pi * (cv_ratio * 10.0 / 20.0) ** 2
    kept = math.exp(-2.0 * math.pi * zeta)
    assert (kept > 0.5) == (word == "echo")
    assert verdict["verdict"] == word
    if word == "echo":
        assert verdict["damping_ratio"] == pytest.approx(zeta, rel=0.25)
