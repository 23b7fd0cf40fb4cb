"""Speed of the answers that a user waits for, a verdict and a search of placements, in plain operations of the run."""

from __future__ import annotations

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from plant.presets.engines import ENGINES
from plant.presets.hardware import HARDWARE
from plant.presets.models import MODELS
from scenarios.plan.frontier import Frontier, Question, plan_frontier
from scenarios.verdict import Series, judge_signal
from tests.benchmarks.test_moe_speed import ratio

SAMPLES = 14_400  # an hour at a quarter of a second
TRANSFORMS = 50
CALLS = 1000


@pytest.mark.slow
def test_a_verdict_costs_no_more_than_its_transforms(benchmark: BenchmarkFixture) -> None:
    rng = np.random.default_rng(0)
    x = 100.0 + 10.0 * np.sin(np.arange(SAMPLES) * 0.25 / 40.0) + rng.standard_normal(SAMPLES)
    series = Series(name="x", step_s=0.25, mean=x, scale=100.0)
    benchmark(judge_signal, series)

    def transforms() -> None:
        for _ in range(TRANSFORMS):
            np.fft.irfft(np.abs(np.fft.rfft(x, 2 * SAMPLES)) ** 2)

    assert ratio(lambda: judge_signal(series), transforms) < 3.0


@pytest.mark.slow
def test_a_search_of_placements_costs_a_few_hundred_small_calls_a_point(benchmark: BenchmarkFixture) -> None:
    question = Question(regime="prefill", context=1, new=8192, output=1, gpus=range(16, 65), deepest_pp=4)

    def search() -> Frontier:
        return plan_frontier(MODELS["kimi-k3"], HARDWARE["gb200-nvl72"], ENGINES["fused-2026h2"], question)

    benchmark(search)
    batch = np.random.default_rng(0).uniform(1, 256, 24)

    def small_calls() -> None:
        for _ in range(CALLS):
            np.power(batch, 0.7)

    # A placement is a few dozen calls of numpy on its batches, whether it fits its memory or not.
    assert ratio(search, small_calls) * CALLS / len(search().cloud) < 400.0
