"""Grow the batch by a little, cut it by a share: additive increase, multiplicative decrease.

    good  tpot <= SLO, no preemption since the last act, KV in use below its ceiling
    cap   cap + a     when good                   turns
          beta cap    otherwise                   turns

A sawtooth by construction: it finds the limit by crossing it. Its period is (1 - beta) cap / a acts. Source: Chiu and
Jain, "Analysis of the increase and decrease algorithms for congestion avoidance" (1989); SGLang's new_token_ratio is of
this kind. Missing data: no answer ended, no growth; without an objective, preemption and memory alone decide.
"""

from __future__ import annotations

from typing import ClassVar

from orchestrator.messages import BatchCommand, BatchReading
from orchestrator.ports import Cadence
from policies.parameters import Count, OpenShare, Positive, Share, at_most


class Aimd:
    """Additive increase, multiplicative decrease of the batch cap.

    Parameters
    ----------
    cadence : Cadence
    least_turns, most_turns : int
        Bounds of the cap, 1 <= least_turns <= most_turns.
    add_turns : float
        a, > 0.
    cut_ratio : float
        beta, in (0, 1).
    kv_ceiling_ratio : float
        Share of KV memory above which the cap is cut.
    """

    no_linearisation = "a sawtooth by construction: it finds the limit by crossing it, every (1 - beta) cap / a acts"
    example: ClassVar = {"least_turns": 1, "most_turns": 64}
    rules = (at_most("least_turns", "most_turns"),)

    def __init__(
        self,
        cadence: Cadence,
        *,
        least_turns: Count = 1,
        most_turns: Count,
        add_turns: Positive = 1.0,
        cut_ratio: OpenShare = 0.8,
        kv_ceiling_ratio: Share = 0.95,
    ) -> None:
        self.cadence = cadence
        self.least_turns, self.most_turns = least_turns, most_turns
        self.add_turns, self.cut_ratio, self.kv_ceiling_ratio = add_turns, cut_ratio, kv_ceiling_ratio
        self._cap = float(least_turns)
        self._preempted = 0
        self._at_s = -1.0

    def act(self, y: BatchReading) -> BatchCommand:
        """Grow or cut the cap, once for each new sample."""
        if y.at_s > self._at_s:
            self._at_s = y.at_s
            late = y.tpot_s is not None and y.tpot_slo_s is not None and y.tpot_s > y.tpot_slo_s
            full = y.kv_used_ratio is not None and y.kv_used_ratio > self.kv_ceiling_ratio
            if late or full or y.preempted_total > self._preempted:
                self._cap *= self.cut_ratio
            elif y.tpot_s is not None or y.tpot_slo_s is None:
                self._cap += self.add_turns
            self._cap = min(max(self._cap, self.least_turns), self.most_turns)
            self._preempted = y.preempted_total
        return BatchCommand(batch_cap_turns=int(self._cap))
