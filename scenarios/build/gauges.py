"""What a cluster's record holds beside the standard signals: each pool's busy slots and KV memory, and the tiers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from orchestrator.clock import Clock
from orchestrator.recorder import Recorder
from orchestrator.turn import ConfigurationName
from plant.kv.spec import NETWORK, NODE, SSD, TIER_NAMES
from plant.kv.tiered import TieredStore
from plant.workers.pool_counters import Pool


def watch_pools(recorder: Recorder, pools: Mapping[ConfigurationName, Pool], clock: Clock) -> None:
    """Record `pool.<configuration>.busy_slots`, `.active_workers` and, with memory, `.kv_used_ratio`, bin by bin."""

    def busy(pool: Pool) -> Callable[[], float]:
        return lambda: pool.busy_slots

    def workers(pool: Pool) -> Callable[[], float]:
        return lambda: pool.active

    def kv(pool: Pool, capacity_tokens: int) -> Callable[[], float]:
        return lambda: pool.kv_used_tokens(clock.now()) / (capacity_tokens * pool.active or 1)

    for name, pool in pools.items():
        recorder.gauge(f"pool.{name}.busy_slots", busy(pool))
        recorder.gauge(f"pool.{name}.active_workers", workers(pool))
        capacity_tokens = pool.spec.kv_capacity_tokens
        if capacity_tokens and pool.active:
            recorder.gauge(f"pool.{name}.kv_used_ratio", kv(pool, capacity_tokens))


def watch_tiers(recorder: Recorder, tiers: TieredStore) -> None:
    """Record levels of the tiers as `kv.<name>`, and prompt and cached tokens as sums since the start."""
    stats, ledger = tiers.stats, tiers.ledger

    def used(tier: int) -> Callable[[], float]:
        copies = tiers.spec.replicas if tier == NETWORK else 1
        read = ledger.used_bytes.__getitem__
        return partial(read, tier) if copies == 1 else lambda: float(read(tier) * copies)

    present = {NODE: tiers.spec.node, NETWORK: tiers.spec.network, SSD: tiers.spec.ssd}
    for tier, part in present.items():
        if part is not None:
            recorder.gauge(f"kv.used_bytes.{TIER_NAMES[tier]}", used(tier))
    caches = tiers.caches
    if caches is not None:
        recorder.gauge("kv.used_bytes.rack_cache", lambda: float(sum(caches.used_bytes)))
    # These are read several times a second: calls without a frame of Python each.
    recorder.gauge("kv.contexts", ledger.contexts.__len__)
    recorder.gauge("kv.staged_contexts", ledger.waiting.__len__)
    recorder.gauge("kv.asked_tokens", partial(getattr, stats, "asked_tokens"))
    recorder.gauge("kv.cached_tokens", partial(getattr, stats, "cached_tokens"))
