"""Send a turn where it will be ready first: queueing against transfer against rebuilding.

    q_i    load_i x s                   what stands before it there            s
    c_i    cost_s(i)                    fetching what is kept, filling the rest, from where it lies    s
    i*     argmin (q_i + c_i)           over the holder, the least loaded, and k more

The holder of a context is one candidate among others, never an obligation: its state can be fetched by any worker, so a
turn is bound to no machine. Ties go to the first of that order. Source: essay, sections 2 and 17; the trade-off of
cache against load as in Mooncake's conductor (Qin et al., FAST 2025). Missing data: a worker whose cost the plant
cannot tell costs nothing, and the law becomes the least loaded.
"""

from __future__ import annotations

from typing import ClassVar

from orchestrator.ports import PoolView
from orchestrator.turn import TurnView, WorkerId
from policies.parameters import Count, NotNegative


class StateAware:
    """Choose by the sum of waiting, fetching and filling.

    Parameters
    ----------
    turn_s : float
        Seconds that one turn ahead in a worker's line delays the next.
    choices : int
        Workers looked at beside the holder and the least loaded.
    """

    no_linearisation = "a choice among workers at an instant: to the loops above it is a part of the pool"
    example: ClassVar = {"turn_s": 0.5}

    def __init__(
        self,
        *,
        turn_s: NotNegative,
        choices: Count = 2,
    ) -> None:
        self.turn_s, self.choices = turn_s, choices

    def choose(self, turn: TurnView, pool: PoolView) -> WorkerId | None:
        """Return the worker at which the turn would be filled first."""
        least = pool.least_loaded()
        if least is None:
            return None
        near = [worker for worker, _ in pool.holding(turn.context)]
        best, best_s = least, float("inf")
        for worker in dict.fromkeys([*near, least, *pool.sample(self.choices, turn.key)]):
            if pool.open(worker):
                wait_s = pool.view(worker).load_turns * self.turn_s + (pool.cost_s(worker, turn) or 0.0)
                if wait_s < best_s:
                    best, best_s = worker, wait_s
        return best
