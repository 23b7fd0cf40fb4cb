"""Speed of the layer model and of its tables, in CPU time: points per second, and look-ups in units of a plain call."""

from __future__ import annotations

import time

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from plant.model.placement import Placement
from plant.model.regimes import decode, setting_of
from plant.model.step_table import StepTable
from plant.model.tables import step_times
from plant.presets.engines import ENGINES
from plant.presets.hardware import HARDWARE
from plant.presets.models import MODELS

POINTS = 20_000


@pytest.mark.slow
def test_a_million_points_per_cpu_second(benchmark: BenchmarkFixture) -> None:
    setting = setting_of(
        MODELS["kimi-k3"], HARDWARE["gb200-nvl72"], ENGINES["fused-2026h2"], Placement(pp=2, tp=8, ep=8)
    )
    rng = np.random.default_rng(0)
    batch, context = rng.uniform(1, 256, POINTS), rng.uniform(1, 1e5, POINTS)
    benchmark(decode, setting, batch, context)
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        decode(setting, batch, context)
        best = min(best, time.process_time() - start)
    assert POINTS / best > 1e6


@pytest.mark.slow
def test_a_look_up_takes_half_a_microsecond_or_less(benchmark: BenchmarkFixture) -> None:
    table: StepTable = step_times(
        model=MODELS["glm-5"],
        hardware=HARDWARE["b200"],
        engine=ENGINES["fused-2026h2"],
        placement=Placement(tp=8, ep=8),
        cache=False,
    )
    benchmark(table.step_s, 64, 64 * 8192)
    best = {"step": float("inf"), "span": float("inf")}
    for _ in range(5):
        for name, call in (("step", table.step_s), ("span", lambda b, kv: table.span_s(b, kv, 100))):
            start = time.process_time()
            for _ in range(20_000):
                call(64, 524_288)
            best[name] = min(best[name], (time.process_time() - start) / 20_000)
    assert best["step"] < 0.5e-6
    assert best["span"] < 1.0e-6
