"""Deal turns out in a ring, whatever the loads.

    i*    the next open worker after the last one        -

Fair in counts, blind to work: lines grow where long turns meet. It cannot herd, because it looks at no signal.
Source: the default of most load balancers. Missing data: needs none. The ring is drawn up anew at each lap.
"""

from __future__ import annotations

from orchestrator.ports import PoolView
from orchestrator.turn import TurnView, WorkerId


class RoundRobin:
    """Choose the next open worker in a ring."""

    no_linearisation = "it sees no load: no loop is closed"

    def __init__(self) -> None:
        self._ring: list[WorkerId] = []
        self._next = 0

    def choose(self, turn: TurnView, pool: PoolView) -> WorkerId | None:
        """Return the next open worker, or None after a lap without one."""
        for _ in range(len(self._ring) + len(pool) + 1):
            if self._next >= len(self._ring):
                self._ring, self._next = [view.worker for view in pool], 0
                if not self._ring:
                    return None
            worker = self._ring[self._next]
            self._next += 1
            if pool.open(worker):
                return worker
        return None
