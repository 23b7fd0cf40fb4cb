"""A cluster's record tells what its pools hold."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.messages import Role
from orchestrator.turn import ConfigurationName
from plant.cluster_spec import ConfigurationSpec
from plant.workers.pool_counters import Pool
from scenarios.build.gauges import watch_pools


class Clock:
    def now(self) -> float:
        return 2.0


class Recorder:
    def __init__(self) -> None:
        self.gauges: dict[str, Callable[[], float]] = {}

    def gauge(self, name: str, read: Callable[[], float]) -> None:
        self.gauges[name] = read


def pool(capacity_tokens: int | None) -> Pool:
    spec = ConfigurationSpec(
        name=ConfigurationName("any"), role=Role.AGGREGATED, times=None, slots=8, kv_capacity_tokens=capacity_tokens
    )
    made = Pool(spec)
    made.active = 2
    return made


def test_each_pool_is_recorded_as_it_stands_when_the_bin_ends() -> None:
    recorder, fill, decode = Recorder(), pool(None), pool(60)
    pools = {ConfigurationName("fill"): fill, ConfigurationName("decode"): decode}
    watch_pools(recorder, pools, Clock())  # type: ignore[arg-type]  # fakes with what is used
    both = {f"pool.{name}.{of}" for name in ("fill", "decode") for of in ("busy_slots", "active_workers")}
    assert set(recorder.gauges) == {*both, "pool.decode.kv_used_ratio"}
    fill.busy_slots, decode.busy_slots = 6, 12
    decode.kv_base_tokens, decode.kv_rate_tokens_per_s = 20.0, 20.0
    found = {name: read() for name, read in recorder.gauges.items()}
    assert (found["pool.fill.busy_slots"], found["pool.decode.busy_slots"]) == (6, 12)
    assert (found["pool.fill.active_workers"], found["pool.decode.active_workers"]) == (2, 2)
    assert found["pool.decode.kv_used_ratio"] == 60 / 120
