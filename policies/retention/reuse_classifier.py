"""Give each kind of idle context the life that its own reuse pays for.

    h_i     reused_i / idle_i, the hazard of return within age bin i         -
    S_i     prod_{j<i} (1 - h_j), the share that has not returned by then    -
    p, B    price of a tier, mean size of a context                          cost/(byte s), bytes
    R       rebuild_s x rebuild_price, what a miss costs                     cost
    keep through bin i while some later bin pays:
        max_k  sum_{j=i..k} S_j/S_i h_j R  -  sum_{j=i..k} S_j/S_i p B dt_j  >= 0

The life in the fast tier is the last bin that still pays at its price, in the slow tier likewise at its own; an idle
context is worth its expected saving less its rent. Order `value`: who has used up most of its life goes first. Sources:
discard by reuse, essay, section 2; optimal stopping of a rented position is the ski-rental problem (Karlin et al.,
Algorithmica 3, 1988). Hazards are shrunk towards the whole population's by `prior` contexts, so that a kind seen a few
times is not judged by them. Missing data: a kind never seen has no rule and is kept while there is room.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from orchestrator.messages import RetentionCommand, RetentionReading, RetentionRule, ReuseReading
from orchestrator.ports import Cadence
from policies.parameters import Count, NotNegative, Positive


class ReuseClassifier:
    """Lives by hazard of reuse, cost of rebuilding and price of the tier.

    Parameters
    ----------
    cadence : Cadence
    rebuild_price_per_s : float
        Cost of one second of rebuilding, in the currency of the tiers' prices.
    prior_contexts : float
        Weight of the whole population in each kind's hazard.
    capacity_tokens : int or None
        Most tokens that the shared tier keeps; None: what its memory holds.
    """

    no_linearisation = (
        "a stopping rule for each kind of context: a life jumps from one age bin to another where it begins to pay"
    )
    example: ClassVar = {"rebuild_price_per_s": 1.0}

    def __init__(
        self,
        cadence: Cadence,
        *,
        rebuild_price_per_s: Positive,
        prior_contexts: NotNegative = 20.0,
        capacity_tokens: Count | None = None,
    ) -> None:
        self.cadence = cadence
        self._price, self._prior, self._capacity = rebuild_price_per_s, prior_contexts, capacity_tokens

    def act(self, y: RetentionReading) -> RetentionCommand:
        """Return a life for each kind that has been seen."""
        prices = {tier.name: tier.price_per_byte_s for tier in y.tiers}
        fast = prices.get("network", 0.0)
        slow = prices.get("ssd", fast)
        idle = [sum(kind.idle[i] for kind in y.reuse) for i in range(len(y.reuse[0].ages_s))] if y.reuse else []
        back = [sum(kind.reused[i] for kind in y.reuse) for i in range(len(idle))]
        everyone = [b / n if n else 0.0 for b, n in zip(back, idle)]
        rules = [RetentionRule(kind="compacted", demote_after_s=0.0, discard_after_s=0.0)]
        for kind in y.reuse:
            if kind.kind == "compacted":
                continue
            hazards = [(b + self._prior * h) / (n + self._prior) for b, n, h in zip(kind.reused, kind.idle, everyone)]
            saving = kind.rebuild_s * self._price
            hot_s = life_s(kind, hazards, saving, fast)
            all_s = max(hot_s, life_s(kind, hazards, saving, slow))
            rules.append(RetentionRule(kind=kind.kind, demote_after_s=hot_s, discard_after_s=all_s))
        return RetentionCommand(rules=tuple(rules), order="value", capacity_tokens=self._capacity)


def life_s(kind: ReuseReading, hazards: Sequence[float], saving: float, price_per_byte_s: float) -> float:
    """Return the age beyond which keeping a context of this kind no longer pays; math.inf: it always does."""
    edges = (0.0, *kind.ages_s)
    worth = 0.0  # of being kept from here on, at best, per context that is still there
    life = edges[-1]
    for i in range(len(hazards) - 1, -1, -1):
        rent = price_per_byte_s * kind.mean_bytes * (edges[i + 1] - edges[i])
        worth = hazards[i] * saving - rent + (1.0 - hazards[i]) * worth
        if worth <= 0.0:
            worth, life = 0.0, edges[i]
    return life if life < edges[-1] or price_per_byte_s > 0.0 else math.inf
