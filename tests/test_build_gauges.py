"""A cluster's record tells what its pools hold."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from scenarios.build.gauges import watch_pools


class Clock:
    now_s = 0.0

    def now(self) -> float:
        return self.now_s


class Plant:
    """Two pools, one with memory; it counts how often it is read."""

    def __init__(self) -> None:
        self.reads, self.busy = 0, 3

    def read(self) -> SimpleNamespace:
        self.reads += 1
        pools = {
            "fill": SimpleNamespace(
                active_workers=2, busy_slots=self.busy, kv_used_tokens=None, kv_capacity_tokens=None
            ),
            "decode": SimpleNamespace(
                active_workers=3, busy_slots=2 * self.busy, kv_used_tokens=10 * self.busy, kv_capacity_tokens=120
            ),
        }
        return SimpleNamespace(pools=pools)


class Recorder:
    def __init__(self) -> None:
        self.gauges: dict[str, Callable[[], float]] = {}

    def gauge(self, name: str, read: Callable[[], float]) -> None:
        self.gauges[name] = read


def test_each_pool_is_recorded_and_the_plant_is_read_once_a_bin() -> None:
    recorder, plant, clock = Recorder(), Plant(), Clock()
    watch_pools(recorder, plant, clock)  # type: ignore[arg-type]  # fakes with what is used
    both = {f"pool.{name}.{of}" for name in ("fill", "decode") for of in ("busy_slots", "active_workers")}
    assert set(recorder.gauges) == {*both, "pool.decode.kv_used_ratio"}
    clock.now_s, plant.busy, before = 1.0, 6, plant.reads
    found = {name: read() for name, read in recorder.gauges.items()}
    assert found["pool.fill.busy_slots"] == 6.0
    assert found["pool.decode.busy_slots"] == 12.0
    assert found["pool.decode.active_workers"] == 3.0
    assert found["pool.decode.kv_used_ratio"] == pytest.approx(0.5)
    assert plant.reads == before + 1
