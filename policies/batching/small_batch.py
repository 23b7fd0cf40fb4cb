"""The smallest batch that keeps up: interactive first.

    q     ready turns per worker                                   turns
    cap   cap + d    q > high for rise_s                           turns
          cap - d    q < low and B <= cap - d, for fall_s          turns
    d     max(1, step_ratio cap)                                   turns

"The optimum batch size ... may be much closer to one or five": each turn decodes faster in a smaller batch, so the cap
rises only under a standing line of ready work and falls as soon as the batch itself has room. The gap between high and
low, and the two spans, are the hysteresis. Source: essay, section 16. Missing data: without workers, the cap stays.
"""

from __future__ import annotations

from typing import ClassVar

from orchestrator.messages import BatchCommand, BatchReading
from orchestrator.ports import Cadence
from policies.parameters import Count, NotNegative, Positive, PositiveShare, at_most, below


class SmallBatch:
    """Keep the decode batch as small as the ready line allows.

    Parameters
    ----------
    cadence : Cadence
    least_turns, most_turns : int
        Bounds of the cap, 1 <= least_turns <= most_turns.
    low_turns, high_turns : float
        Ready turns per worker between which the cap stays, low_turns < high_turns.
    rise_s, fall_s : float
        How long a condition must hold before the cap moves.
    step_ratio : float
        Size of a move as a share of the cap.
    """

    no_linearisation = "steps with hysteresis and waiting times: between its two levels it stands still"
    example: ClassVar = {"least_turns": 1, "most_turns": 64}
    rules = (at_most("least_turns", "most_turns"), below("low_turns", "high_turns"))

    def __init__(
        self,
        cadence: Cadence,
        *,
        least_turns: Count = 1,
        most_turns: Count,
        low_turns: NotNegative = 0.25,
        high_turns: Positive = 1.0,
        rise_s: NotNegative = 1.0,
        fall_s: NotNegative = 5.0,
        step_ratio: PositiveShare = 0.1,
    ) -> None:
        self.cadence = cadence
        self.least_turns, self.most_turns = least_turns, most_turns
        self.low_turns, self.high_turns = low_turns, high_turns
        self.rise_s, self.fall_s, self.step_ratio = rise_s, fall_s, step_ratio
        self._cap = least_turns
        self._wish, self._since_s = 0, 0.0

    def act(self, y: BatchReading) -> BatchCommand:
        """Move the cap by a step where its condition has held long enough."""
        cap = self._cap
        d = max(1, int(self.step_ratio * cap))
        wish = self._direction(y, cap, d)
        if wish != self._wish:
            self._wish, self._since_s = wish, y.at_s
        waited_s = y.at_s - self._since_s
        if wish and waited_s >= (self.rise_s if wish > 0 else self.fall_s):
            self._cap = min(max(cap + wish * d, self.least_turns), self.most_turns)
            self._since_s = y.at_s
            self._wish = 0
        return BatchCommand(batch_cap_turns=self._cap)

    def _direction(self, y: BatchReading, cap: int, d: int) -> int:
        if y.workers <= 0 or y.batch_turns is None:
            return 0
        q = y.ready_turns / y.workers
        if q > self.high_turns:
            return 1
        return -1 if q < self.low_turns and y.batch_turns <= cap - d else 0
