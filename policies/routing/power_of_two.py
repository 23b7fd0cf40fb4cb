"""Draw d workers by chance and take the least loaded of them.

    D     d workers drawn by hash of the turn's key      -
    i*    argmin over open i in D of load_i              turns

Two choices already bring the longest line from log n / log log n down to log log n, and a stale view does less harm
than a full argmin: routers that share a snapshot do not all draw the same pair. Source: Mitzenmacher, "The power of two
choices in randomized load balancing" (2001), and "How useful is old information?" (2000). Missing data: where none of
those drawn is open, the least loaded worker of all.
"""

from __future__ import annotations

from orchestrator.ports import PoolView
from orchestrator.turn import TurnView, WorkerId
from policies.parameters import Count


class PowerOfTwo:
    """Choose the least loaded of a few workers drawn by chance.

    Parameters
    ----------
    choices : int
        d, >= 1; 1 is blind chance.
    """

    no_linearisation = "a choice among workers at an instant: to the loops above it is a part of the pool"

    def __init__(
        self,
        *,
        choices: Count = 2,
    ) -> None:
        self.choices = choices

    def choose(self, turn: TurnView, pool: PoolView) -> WorkerId | None:
        """Return the best of those drawn, or the least loaded worker when none of them is open."""
        best: tuple[int, WorkerId] | None = None
        for w in pool.sample(self.choices, turn.key):
            if pool.open(w):
                known = (pool.view(w).load_turns, w)
                if best is None or known < best:
                    best = known
        return pool.least_loaded() if best is None else best[1]
