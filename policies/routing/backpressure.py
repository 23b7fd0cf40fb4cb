"""MaxWeight: send work down the steepest drop of backlog, less what it costs, and not for a small gain.

    Q     turns in line for the pool, and this one                   turns
    q_i   turns at worker i beyond its slots                         turns
    c_i   the plant's estimate of fetching or rebuilding there       s     (None: 0)
    i*    argmax over drawn open i of  (Q - q_i) - V c_i             turns
    V     price of cost against backlog                              turns/s
    eta   the holder of the prefix keeps the turn unless another's weight is greater by eta   turns

With no drop anywhere (max <= 0 before cost) the turn stays in line: that is the back-pressure. V trades cost O(1/V)
against backlog O(V); eta is the hysteresis that switching needs. Missing data: without cost, the least loaded.
Source: Tassiulas and Ephremides, "Stability properties of constrained queueing systems" (1992); Neely, "Stochastic
Network Optimization" (2010), ch. 4.
"""

from __future__ import annotations

from orchestrator.ports import PoolView
from orchestrator.turn import TurnView, WorkerId
from policies.parameters import Count, NotNegative


class Backpressure:
    """Choose the worker with the greatest weight; hold the turn when no worker has less backlog than the line.

    Parameters
    ----------
    cost_weight_turns_per_s : float
        V, >= 0.
    margin_turns : float
        eta, >= 0.
    choices : int
        How many workers are drawn; as many as the pool has, or more: all are looked at.
    """

    no_linearisation = "a choice among workers at an instant: to the loops above it is a part of the pool"

    def __init__(
        self,
        *,
        cost_weight_turns_per_s: NotNegative = 1.0,
        margin_turns: NotNegative = 1.0,
        choices: Count = 8,
    ) -> None:
        self.cost_weight_turns_per_s, self.margin_turns = cost_weight_turns_per_s, margin_turns
        self.choices = choices

    def choose(self, turn: TurnView, pool: PoolView) -> WorkerId | None:
        """Return the worker of greatest weight, the holder of the prefix within the margin, or None."""
        eta = self.margin_turns
        holder = next((w for w, _ in pool.holding(turn.context) if pool.open(w)), None)
        if self.choices >= len(pool):
            drawn = [view.worker for view in pool if pool.open(view.worker)]
        else:
            drawn = [w for w in pool.sample(self.choices, turn.key) if pool.open(w)]
            least = pool.least_loaded()
            drawn += [w for w in (holder, least) if w is not None]
        weighed = [
            (self._weight(w, turn, pool), -pool.view(w).load_turns, -w) for w in drawn if self._drop(w, pool) > 0
        ]
        if not weighed:
            return None
        best, _, negative = max(weighed)
        if holder is not None and self._drop(holder, pool) > 0 and best - self._weight(holder, turn, pool) <= eta:
            return holder
        return WorkerId(-negative)

    def _drop(self, worker: WorkerId, pool: PoolView) -> float:
        seen = pool.view(worker)
        q = max(0, seen.load_turns - seen.slots) if seen.slots is not None else 0
        return 1 + pool.waiting() - q

    def _weight(self, worker: WorkerId, turn: TurnView, pool: PoolView) -> float:
        c = pool.cost_s(worker, turn)
        return self._drop(worker, pool) - self.cost_weight_turns_per_s * (0.0 if c is None else c)
