"""The retention law's word, carried out: contexts that have outlived their kind's rule go a tier down, or go."""

from __future__ import annotations

import math
from collections.abc import Iterator

from plant.kv.lru_queues import KINDS, Context
from plant.kv.spec import NETWORK, SSD
from plant.kv.tier_manager import TierManager
from plant.kv.tier_stats import ABANDONED, EXPIRED


def sweep(keep: TierManager) -> None:
    """Apply the rules to whatever lies on the shelves."""
    now_s = keep.now_s()
    for tier in (NETWORK, SSD):
        for kind in KINDS:
            life_s, hot_s = keep.rules.life_s(kind), keep.rules.hot_s(kind)
            for context in list(_aged(keep, tier, kind, min(life_s, hot_s if tier == NETWORK else math.inf))):
                if now_s - context.since_s >= life_s:
                    keep.discard(context, ABANDONED if life_s <= 0.0 else EXPIRED)
                else:
                    keep.demote(context)
    keep.make_room(0, now=True)
    keep.serve()


def _aged(keep: TierManager, tier: int, kind: str, after_s: float) -> Iterator[Context]:
    now_s = keep.now_s()
    for context in keep.shelves[tier].of(kind):
        if now_s - context.since_s < after_s:
            return
        yield context
