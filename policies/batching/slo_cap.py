"""The largest batch whose step still meets the objective.

    s     step time seen                          s
    B     mean batch seen                         turns
    s0    step of an empty batch                  s
    c     (s - s0) / B, mean over tau             s/turn    (carries the KV state read per turn)
    cap   (m SLO - s0) / c, between its bounds    turns
    m     share of the objective to use           1

A decode step is affine in the batch at a given context, so one quotient is the model. The mean over tau keeps one odd
step from moving the cap; nothing limits how fast the cap may move: see `slew_limited`. Source: essay, section 16;
Agrawal et al., "Taming throughput-latency tradeoff in LLM inference with Sarathi-Serve" (2024), section 4 (token
budgets from a TBT objective). Missing data: without an objective, a step or a batch, the cap stays as it is.
"""

from __future__ import annotations

import math
from typing import ClassVar

from orchestrator.messages import BatchCommand, BatchReading
from orchestrator.ports import Cadence
from policies.parameters import Count, NotNegative, PositiveShare, at_most


class SloCap:
    """Cap the decode batch by the objective on time per token.

    Parameters
    ----------
    cadence : Cadence
    base_s : float
        s0, >= 0.
    least_turns, most_turns : int
        Bounds of the cap, 1 <= least_turns <= most_turns.
    margin_ratio : float
        m, in (0, 1].
    tau_s : float
        Span of the mean of c, >= 0.
    """

    no_linearisation = (
        "a quotient of what it sees: on a step affine in the batch the cap does not depend on the batch, so "
        "nothing comes back"
    )
    monotone = (("step_s", "batch_cap_turns", -1),)
    example: ClassVar = {"least_turns": 1, "most_turns": 64, "base_s": 0.01}
    rules = (at_most("least_turns", "most_turns"),)

    def __init__(
        self,
        cadence: Cadence,
        *,
        base_s: NotNegative,
        least_turns: Count = 1,
        most_turns: Count,
        margin_ratio: PositiveShare = 0.9,
        tau_s: NotNegative = 2.0,
    ) -> None:
        self.cadence = cadence
        self.base_s, self.margin_ratio, self.tau_s = base_s, margin_ratio, tau_s
        self.least_turns, self.most_turns = least_turns, most_turns
        self._c: float | None = None
        self._at_s = -math.inf

    def act(self, y: BatchReading) -> BatchCommand:
        """Set the cap, or leave it where something is not measured."""
        cap = self.cap(y)
        return BatchCommand() if cap is None else BatchCommand(batch_cap_turns=cap)

    def cap(self, y: BatchReading) -> int | None:
        """Return the cap that this reading asks for; None: not known."""
        s, B, SLO, s0 = y.step_s, y.batch_turns, y.tpot_slo_s, self.base_s
        if s is not None and B is not None and B >= 1.0 and y.at_s > self._at_s:
            keep = math.exp(-(y.at_s - self._at_s) / self.tau_s) if self.tau_s > 0.0 else 0.0
            seen = max(s - s0, 0.0) / B
            self._c = seen if self._c is None else keep * self._c + (1.0 - keep) * seen
            self._at_s = y.at_s
        if SLO is None or self._c is None:
            return None
        room_s = max(self.margin_ratio * SLO - s0, 0.0)
        wanted = room_s / self._c if self._c > 0.0 else math.inf
        return int(min(max(wanted, self.least_turns), self.most_turns))
