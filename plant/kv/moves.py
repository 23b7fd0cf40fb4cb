"""State on its way: one object over several shared links, with another way round when a link stops.

A move streams over all its links at once and ends with the slowest, never before `floor_s`, the time that its own NICs
need. A link that slows slows it; a link that stops holds it, unless another route is open: then what is left of it
goes there. Nothing is sent twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from orchestrator.clock import Clock
from plant.links import Flow, SharedLink

Route = Sequence[SharedLink]


class Move:
    """One object on its way.

    Parameters
    ----------
    clock : Clock
    routes : sequence of sequences of SharedLink
        The ways there, best first.
    size_bytes : float
    latency_s : float
        Before the first byte.
    floor_s : float
        Least time for the bytes, whatever the links give.
    end : callable
        Called with this move when the last byte has arrived.
    """

    __slots__ = ("_clock", "_end", "_entry", "_floor_s", "_flows", "_pending", "_routes", "over", "route", "size_bytes")

    def __init__(
        self,
        clock: Clock,
        routes: Sequence[Route],
        size_bytes: float,
        latency_s: float,
        floor_s: float,
        end: Callable[[Move], object],
    ) -> None:
        self._clock, self._routes, self._end = clock, routes, end
        self.size_bytes = size_bytes
        self.route: Route = ()
        self.over = False
        self._flows: list[Flow] = []
        self._pending = 0
        self._floor_s = floor_s
        self._entry: Any = None  # an entry is the clock's own affair
        if latency_s > 0.0 or not routes[0]:
            self._entry = clock.at(clock.now() + latency_s, self._start, None)
        else:
            self._start(None)  # a link never ends a flow within the call that begins it

    def _start(self, _: None) -> None:
        self._entry = None
        self._join(self.size_bytes)
        if self._floor_s > 0.0:
            self._pending += 1
            self._entry = self._clock.at(self._clock.now() + self._floor_s, self._rested, None)
        elif not self._pending:
            self._finish()

    def _join(self, size_bytes: float) -> None:
        self.route = route = next(
            (r for r in self._routes if all(link.rate_bytes_per_s > 0.0 for link in r)), self._routes[0]
        )
        self._pending += len(route)
        self._flows = [link.join(size_bytes, self._passed, None) for link in route]

    def _rested(self, _: None) -> None:
        self._entry = None
        self._passed(None)

    def _passed(self, _: None) -> None:
        self._pending -= 1
        if not self._pending:
            self._finish()

    def _finish(self) -> None:
        self.over = True
        self._end(self)

    def left_bytes(self) -> float:
        """Return what the slowest link has still to carry."""
        return max((link.left_bytes(flow) for link, flow in zip(self.route, self._flows)), default=0.0)

    def unmoved_bytes(self) -> float:
        """Return what has not arrived: all of it before the first byte, then what the slowest link still has."""
        if self.over:
            return 0.0
        return self.left_bytes() if self._flows else self.size_bytes

    def reroute(self) -> bool:
        """Send the rest another way if a link of this one has stopped and another is open; tell whether it was sent."""
        if self.over or not self._flows or all(link.rate_bytes_per_s > 0.0 for link in self.route):
            return False
        if not any(all(link.rate_bytes_per_s > 0.0 for link in r) for r in self._routes):
            return False
        left = self.left_bytes()
        if left <= 0.0:
            return False
        self._leave()
        self._join(left)
        return True

    def _leave(self) -> None:
        for link, flow in zip(self.route, self._flows):
            if flow[2] is not None:
                link.leave(flow)
                self._pending -= 1
        self._flows = []

    def cancel(self) -> None:
        """Stop; what has been sent was sent for nothing."""
        if self.over:
            return
        self.over = True
        if self._entry is not None:
            self._clock.cancel_at(self._entry)
            self._entry = None
        self._leave()
