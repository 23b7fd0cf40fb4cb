"""Record each pool of a cluster and its tiers of KV state: the rows of `plant/signals.py`, each under its full name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from orchestrator.recorder import Recorder
from orchestrator.turn import ConfigurationName
from plant.kv.tiered import TieredStore
from plant.signals import POOL, POOL_SIGNALS, TIER, TIER_SIGNALS
from plant.workers.pool_counters import Pool


def watch_pools(recorder: Recorder, pools: Mapping[ConfigurationName, Pool]) -> None:
    """Record the signals of every pool; the KV memory of those that begin with a worker."""
    for name, pool in pools.items():
        for row in POOL_SIGNALS:
            level = getattr(pool, row.source)
            if level is not None and (level is not pool.kv or pool.active):
                recorder.watch(row.name.replace(POOL, name), level)


def watch_tiers(recorder: Recorder, tiers: TieredStore) -> None:
    """Record the signals of every tier that there is."""
    levels = tiers.levels()
    for row in TIER_SIGNALS:
        for tier, (level, times) in levels[row.source].items():
            recorder.watch(row.name.replace(TIER, tier), level, None if times == 1 else partial(float, times))
