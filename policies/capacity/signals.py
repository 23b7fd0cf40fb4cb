"""How full a pool is, by the measure a law names: what all capacity laws look at."""

from __future__ import annotations

from typing import Literal

from orchestrator.signals import CapacityReading, PoolReading, Role

Measure = Literal["occupancy", "kv", "turns"]
FILLS = (Role.PREFILL, Role.MIDFILL, Role.FILL)


def standing(pool: PoolReading, y: CapacityReading) -> int:
    """Return how many workers the pool has or is getting: what the actuator has taken on, or else what is there."""
    taken = y.applied.target_workers
    there = pool.active_workers + pool.pending_workers
    return there if taken is None else taken.get(pool.configuration, there)


def load(pool: PoolReading, y: CapacityReading, measure: Measure, workers: int) -> float | None:
    """Return the load of each of `workers`, or None where it is not measured.

    `occupancy`: busy slots / slots. `kv`: KV tokens used / capacity. `turns`: turns at a worker, those that wait for
    the pool included (at the door for fill and aggregated pools, ready for decode pools). Ratios are those of the
    active workers, spread over `workers`.
    """
    if workers <= 0 or pool.active_workers <= 0:
        return None
    if measure == "turns":
        waiting = y.ready_turns if pool.role is Role.DECODE else y.backlog_turns
        return (pool.busy_slots + pool.queued_turns + waiting) / workers
    if measure == "kv":
        if not pool.kv_capacity_tokens or pool.kv_used_tokens is None:
            return None
        used = pool.kv_used_tokens / pool.kv_capacity_tokens
    else:
        if pool.slots <= 0:
            return None
        used = pool.busy_slots / pool.slots
    return used * pool.active_workers / workers
