"""A cluster's record tells what its pools hold, weighted by time."""

from __future__ import annotations

import pytest

from orchestrator.bins import Level
from orchestrator.messages import Role
from orchestrator.turn import ConfigurationName
from plant.cluster_spec import ConfigurationSpec
from plant.workers.pool_counters import Pool
from scenarios.build.gauges import watch_pools


class Recorder:
    def __init__(self) -> None:
        self.levels: dict[str, Level] = {}

    def watch(self, name: str, level: Level) -> None:
        self.levels[name] = level


def pool(capacity_tokens: int | None) -> Pool:
    spec = ConfigurationSpec(
        name=ConfigurationName("any"), role=Role.AGGREGATED, times=None, slots=8, kv_capacity_tokens=capacity_tokens
    )
    pool_ = Pool(spec)
    pool_.add_workers(2, 0.0)
    return pool_


def test_each_pool_is_recorded_weighted_by_time() -> None:
    recorder, fill, decode = Recorder(), pool(None), pool(60)
    watch_pools(recorder, {ConfigurationName("fill"): fill, ConfigurationName("decode"): decode})  # type: ignore[arg-type]
    both = {f"pool.{name}.{of}" for name in ("fill", "decode") for of in ("busy_slots", "active_workers")}
    assert set(recorder.levels) == {*both, "pool.decode.kv_used_ratio"}
    for level in recorder.levels.values():
        level.close(0.0, 0.0)
    decode.busy.add(6, 1.0)
    decode.busy.add(-6, 2.0)
    assert decode.kv is not None
    decode.kv.change(-30.0, 30.0, 1.0)  # 30 tokens a second from 1 s on
    decode.kv.change(30.0, -30.0, 2.0)  # and all given back at 2 s
    closed = {name: level.close(0.0, 4.0) for name, level in recorder.levels.items()}
    assert closed["pool.fill.busy_slots"] == (0, 0, 0)
    assert closed["pool.decode.busy_slots"] == (1.5, 0, 6)
    assert closed["pool.fill.active_workers"] == (2, 2, 2)
    assert closed["pool.decode.kv_used_ratio"] == pytest.approx((15 / 120 / 4, 0.0, 30 / 120))
