"""Send a turn where its prefix lies, unless that worker is loaded out of proportion.

    h     the open worker that holds most of the prefix              -
    m     the least loaded worker                                    -
    i*    h  while load_h <= absolute_turns or load_h <= relative x load_m
          m  otherwise                                               turns

The two thresholds form a dead band: both must be crossed before affinity is given up. Source: the cache-aware router of
SGLang (balance_abs_threshold, balance_rel_threshold), there on the spread of the whole pool, here on the holder alone;
its issues 14532 and 32195 show a death spiral and lost caches when the mode itself chatters. Missing data: no holder
known, the least loaded worker.
"""

from __future__ import annotations

from typing import Annotated

from annotated_types import Ge

from orchestrator.ports import PoolView
from orchestrator.turn import TurnView, WorkerId
from policies.parameters import Count, CountOrZero


class PrefixAffinity:
    """Choose the holder of the longest prefix while its load is in proportion.

    Parameters
    ----------
    absolute_turns : int
        Load below which the holder always gets the turn.
    relative_ratio : float
        Load relative to the least loaded worker below which it gets it too, >= 1.
    least_tokens : int
        A shorter prefix is not worth a detour.
    """

    no_linearisation = (
        "a choice with a jump, from the holder to the least loaded: to the loops above it is a part of the pool"
    )

    def __init__(
        self,
        *,
        absolute_turns: CountOrZero = 8,
        relative_ratio: Annotated[float, Ge(1.0)] = 1.5,
        least_tokens: Count = 1,
    ) -> None:
        self.absolute_turns, self.relative_ratio, self.least_tokens = absolute_turns, relative_ratio, least_tokens

    def choose(self, turn: TurnView, pool: PoolView) -> WorkerId | None:
        """Return the holder or the least loaded worker."""
        least = pool.least_loaded()
        if least is None:
            return None
        for worker, tokens in pool.holding(turn.context):
            if tokens < self.least_tokens:
                break
            if pool.open(worker):
                load = pool.view(worker).load_turns
                bound = max(self.absolute_turns, self.relative_ratio * pool.view(least).load_turns)
                return worker if load <= bound else least
        return least
