"""Checks that contexts fit the workers' memory, what a rebuild costs, and accelerator memory read as a tier."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from math import fsum

from orchestrator.messages import DECODES, FILLS, PoolReading, TierReading
from orchestrator.turn import ConfigurationName
from plant.cluster_spec import ConfigurationSpec
from plant.kv.spec import KvSpec
from plant.workers.fill import chunk_spans_s
from plant.workers.pool_counters import Pool


def check_fits(kv: KvSpec, configurations: Sequence[ConfigurationSpec]) -> None:
    """Check the tiers against the workers.

    Raises
    ------
    ValueError
        A worker's memory does not take one block, or no worker's takes one context; its state has another size than
        the tiers'.
    """
    block = max(kv.block_tokens, kv.reuse_tokens)
    for spec in configurations:
        capacity = spec.kv_capacity_tokens
        if capacity is not None and capacity < block:
            raise ValueError(
                f"configuration {spec.name}: kv_capacity_tokens = {capacity} does not hold one block of {block} tokens"
            )
        size = spec.kv_bytes_per_token
        if size and abs(size - kv.bytes_per_token) > 1e-6 * kv.bytes_per_token:
            raise ValueError(
                f"configuration {spec.name}: kv_bytes_per_token = {size:g}, but kv.bytes_per_token = "
                f"{kv.bytes_per_token:g}; one model has one size of state"
            )
    for verb, roles in (("fill", FILLS), ("decode", DECODES)):
        capable = [spec for spec in configurations if spec.role in roles]
        largest = max(capable, key=lambda spec: spec.kv_capacity_tokens or math.inf, default=None)
        capacity = None if largest is None else largest.kv_capacity_tokens
        if largest is not None and capacity is not None and capacity < kv.typical_tokens:
            raise ValueError(
                f"configuration {largest.name}: kv_capacity_tokens = {capacity:,} hold not one context of the workload "
                f"(median prompt {kv.typical_tokens:,.0f} tokens), and no configuration to {verb} in holds more"
            )


def prefill_s(pools: Sequence[Pool], tokens: float) -> float:
    """Return the seconds that the first pool with a model of its times needs to compute a context; 0: none has one."""
    for pool in pools:
        if pool.spec.times is not None:
            return fsum(chunk_spans_s(pool.spec.times, round(tokens), 0, pool.chunk_cap))
    return 0.0


def hbm(pools: Mapping[ConfigurationName, PoolReading], kv: KvSpec) -> TierReading:
    """Return accelerator memory as a tier: what the batches hold."""
    used = sum(pool.kv_used_tokens or 0 for pool in pools.values())
    capacity = sum(pool.kv_capacity_tokens or 0 for pool in pools.values())
    return TierReading(
        name="hbm",
        used_bytes=used * kv.bytes_per_token,
        capacity_bytes=capacity * kv.bytes_per_token,
        hit_tokens_total=0,
        evicted_total=sum(pool.preempted_total for pool in pools.values()),
        price_per_byte_s=kv.hbm_price_per_byte_s,
    )
