"""The retention rules applied to every context at rest: what has outlived them is demoted or discarded."""

from __future__ import annotations

from collections.abc import Iterator

from plant.kv.context import KINDS, Context
from plant.kv.lru_queues import LruQueue, LruQueues
from plant.kv.spec import NETWORK, SSD
from plant.kv.tier_manager import TierManager
from plant.kv.tier_stats import ABANDONED, EXPIRED


def sweep(manager: TierManager, queues: LruQueues, now_s: float) -> None:
    """Apply the rules now, then make room for what the law has left less of."""
    rules = manager.rules
    for tier in (NETWORK, SSD):
        for kind in KINDS:
            life_s = rules.life_s(kind)
            after_s = min(life_s, rules.hot_s(kind)) if tier == NETWORK else life_s
            for context in list(_idle_for(queues.tiers[tier], kind, after_s, now_s)):
                if now_s - context.since_s >= life_s:
                    manager.discard(context, ABANDONED if life_s <= 0.0 else EXPIRED)
                else:
                    manager.demote(context)
    manager.make_room(0, now=True)
    manager.serve()


def _idle_for(queue: LruQueue, kind: str, after_s: float, now_s: float) -> Iterator[Context]:
    for context in queue.evictable(kind):
        if now_s - context.since_s < after_s:
            return
        yield context
