"""What a cluster's record holds beside the standard signals: each pool's busy slots and KV memory, and the tiers."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.clock import Clock
from orchestrator.ports import Plant
from orchestrator.recorder import Recorder
from orchestrator.signals import PlantReading, PoolReading
from orchestrator.turn import ConfigurationName
from plant.kv.tiered import TieredStore


def watch_pools(recorder: Recorder, plant: Plant, clock: Clock) -> None:
    """Record `pool.<configuration>.busy_slots` and, where memory is modelled, `.kv_used_ratio`, bin by bin."""
    last: tuple[float, PlantReading] = (clock.now(), plant.read())

    def pool(name: ConfigurationName) -> PoolReading:
        nonlocal last
        if last[0] != clock.now():  # one reading serves all gauges of a bin
            last = (clock.now(), plant.read())
        return last[1].pools[name]

    def busy(name: ConfigurationName) -> Callable[[], float]:
        return lambda: float(pool(name).busy_slots)

    def kv(name: ConfigurationName) -> Callable[[], float]:
        return lambda: (pool(name).kv_used_tokens or 0) / (pool(name).kv_capacity_tokens or 1)

    for name, at_start in last[1].pools.items():
        recorder.gauge(f"pool.{name}.busy_slots", busy(name))
        if at_start.kv_capacity_tokens:
            recorder.gauge(f"pool.{name}.kv_used_ratio", kv(name))


def watch_tiers(recorder: Recorder, tiers: TieredStore, clock: Clock) -> None:
    """Record every figure of the tiers as `kv.<name>`: levels, and sums since the start, as they end each bin."""
    last: tuple[float, dict[str, float]] = (clock.now(), dict(tiers.values()))

    def read(name: str) -> Callable[[], float]:
        def value() -> float:
            nonlocal last
            if last[0] != clock.now():
                last = (clock.now(), dict(tiers.values()))
            return last[1].get(name, 0.0)

        return value

    for name in last[1]:
        recorder.gauge(f"kv.{name}", read(name))
