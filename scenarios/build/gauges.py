"""What a cluster's record holds beside the standard signals: each pool's busy slots and KV memory, and the tiers."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.clock import Clock
from orchestrator.ports import Plant
from orchestrator.recorder import Recorder
from orchestrator.signals import PlantReading, PoolReading
from orchestrator.turn import ConfigurationName
from plant.kv.spec import NETWORK, NODE, SSD, TIER_NAMES
from plant.kv.tiered import TieredStore


def watch_pools(recorder: Recorder, plant: Plant, clock: Clock) -> None:
    """Record `pool.<configuration>.busy_slots`, `.active_workers` and, with memory, `.kv_used_ratio`, bin by bin."""
    last: tuple[float, PlantReading] = (clock.now(), plant.read())

    def pool(name: ConfigurationName) -> PoolReading:
        nonlocal last
        if last[0] != clock.now():  # one reading serves all gauges of a bin
            last = (clock.now(), plant.read())
        return last[1].pools[name]

    def busy(name: ConfigurationName) -> Callable[[], float]:
        return lambda: float(pool(name).busy_slots)

    def workers(name: ConfigurationName) -> Callable[[], float]:
        return lambda: float(pool(name).active_workers)

    def kv(name: ConfigurationName) -> Callable[[], float]:
        return lambda: (pool(name).kv_used_tokens or 0) / (pool(name).kv_capacity_tokens or 1)

    for name, at_start in last[1].pools.items():
        recorder.gauge(f"pool.{name}.busy_slots", busy(name))
        recorder.gauge(f"pool.{name}.active_workers", workers(name))
        if at_start.kv_capacity_tokens:
            recorder.gauge(f"pool.{name}.kv_used_ratio", kv(name))


def watch_tiers(recorder: Recorder, tiers: TieredStore) -> None:
    """Record levels of the tiers as `kv.<name>`, and prompt and cached tokens as sums since the start."""
    ledger, keep = tiers.ledger, tiers.keep

    def used(tier: int) -> Callable[[], float]:
        copies = tiers.spec.replicas if tier == NETWORK else 1
        return lambda: float(keep.used_bytes(tier) * copies)

    present = {NODE: tiers.spec.node, NETWORK: tiers.spec.network, SSD: tiers.spec.ssd}
    for tier, part in present.items():
        if part is not None:
            recorder.gauge(f"kv.used_bytes.{TIER_NAMES[tier]}", used(tier))
    caches = tiers.caches
    if caches is not None:
        recorder.gauge("kv.used_bytes.rack_cache", lambda: float(sum(caches.used_bytes)))
    recorder.gauge("kv.contexts", lambda: float(len(keep.contexts)))
    recorder.gauge("kv.staged_contexts", lambda: float(len(keep.waiting)))
    recorder.gauge("kv.asked_tokens", lambda: float(ledger.asked_tokens))
    recorder.gauge("kv.cached_tokens", lambda: float(ledger.cached_tokens))
