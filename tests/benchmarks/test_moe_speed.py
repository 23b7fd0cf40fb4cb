"""Speed of the layer model and of its tables, in units of plain operations timed in the same run."""

from __future__ import annotations

import time
from collections.abc import Callable

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

POINTS, LOOK_UPS = 20_000, 20_000


def ratio(call: Callable[[], object], unit: Callable[[], object]) -> float:
    """CPU seconds of a call in those of a unit, taken in turn: what else the machine does falls on both alike."""
    best = [float("inf"), float("inf")]
    for _ in range(7):
        for i, timed in enumerate((call, unit)):
            start = time.process_time()
            timed()
            best[i] = min(best[i], time.process_time() - start)
    return best[0] / best[1]


@pytest.mark.slow
def test_a_point_of_the_layer_model_costs_no_more_than_fifty_powers(benchmark: BenchmarkFixture) -> None:
    setting = setting_of(
        MODELS["kimi-k3"], HARDWARE["gb200-nvl72"], ENGINES["fused-2026h2"], Placement(pp=2, tp=8, ep=8)
    )
    rng = np.random.default_rng(0)
    batch, context = rng.uniform(1, 256, POINTS), rng.uniform(1, 1e5, POINTS)
    benchmark(decode, setting, batch, context)

    def ten_powers() -> None:
        for _ in range(10):
            np.power(batch, 0.7)

    assert 10.0 * ratio(lambda: decode(setting, batch, context), ten_powers) < 50.0


@pytest.mark.slow
def test_a_look_up_costs_no_more_than_a_few_plain_calls(benchmark: BenchmarkFixture) -> None:
    table: StepTable = step_times(
        model=MODELS["glm-5"],
        hardware=HARDWARE["b200"],
        engine=ENGINES["fused-2026h2"],
        placement=Placement(tp=8, ep=8),
        cache=False,
    )
    benchmark(table.step_s, 64, 64 * 8192)

    def often(call: Callable[[int, int], float]) -> Callable[[], None]:
        def repeated() -> None:
            for _ in range(LOOK_UPS):
                call(64, 524_288)

        return repeated

    plain = often(lambda batch, kv_tokens: 1.0 + 2.0 * batch)
    assert ratio(often(table.step_s), plain) < 5.0
    assert ratio(often(lambda batch, kv_tokens: table.span_s(batch, kv_tokens, 100)), plain) < 14.0
