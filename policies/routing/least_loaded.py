"""Join the shortest queue: the open worker with the fewest turns assigned, lowest number first.

    argmin over open workers of load          turns

Source: Winston, "Optimality of the shortest line discipline" (1977). Missing data: with a stale view it herds, as any
law on a shared signal does.
"""

from __future__ import annotations

from orchestrator.ports import PoolView
from orchestrator.turn import TurnView, WorkerId


class LeastLoaded:
    """Choose the open worker with the fewest turns."""

    no_linearisation = "a choice among workers at an instant: to the loops above it is a part of the pool"

    def choose(self, turn: TurnView, pool: PoolView) -> WorkerId | None:
        """Return that worker, or None when none is open."""
        return pool.least_loaded()
