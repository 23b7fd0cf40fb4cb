"""Join the shortest work: the least sum of what is assigned and what the turn would cost there.

    i*    argmin over drawn open i of  load_i / v + c_i              s
    v     tokens a second that a worker computes                     tokens/s
    c_i   the plant's estimate of fetching or rebuilding there       s     (None: 0)

Join-the-shortest-queue counts heads; this counts work, which matters when prompts differ by orders of magnitude.
Source: Harchol-Balter, "Performance Modeling and Design of Computer Systems" (2013), ch. 24 (least work left).
Missing data: without an estimate of cost, tokens assigned alone.
"""

from __future__ import annotations

from typing import ClassVar

from orchestrator.ports import PoolView
from orchestrator.turn import TurnView, WorkerId
from policies.parameters import Count, Positive


class ShortestWork:
    """Choose, among a few drawn workers, the one that would end the turn's fill first.

    Parameters
    ----------
    tokens_per_s : float
        v, > 0.
    choices : int
        How many workers are drawn; as many as the pool has, or more: all are looked at.
    """

    no_linearisation = "a choice among workers at an instant: to the loops above it is a part of the pool"
    example: ClassVar = {"tokens_per_s": 10000}

    def __init__(
        self,
        *,
        tokens_per_s: Positive,
        choices: Count = 8,
    ) -> None:
        self.tokens_per_s, self.choices = tokens_per_s, choices

    def choose(self, turn: TurnView, pool: PoolView) -> WorkerId | None:
        """Return the open worker with the least work, or the least loaded when none of those drawn is open."""
        if self.choices >= len(pool):
            drawn = [view.worker for view in pool if pool.open(view.worker)]
        else:
            near = [worker for worker, _ in pool.holding(turn.context)[:1]]
            drawn = [w for w in (*near, *pool.sample(self.choices, turn.key)) if pool.open(w)]
        if not drawn:
            return pool.least_loaded()
        return min(drawn, key=lambda w: (self._seconds(w, turn, pool), w))

    def _seconds(self, worker: WorkerId, turn: TurnView, pool: PoolView) -> float:
        c = pool.cost_s(worker, turn)
        return pool.view(worker).load_tokens / self.tokens_per_s + (0.0 if c is None else c)
