"""The transfer of one object over several shared links, rerouted when a link stops.

A transfer streams over all its links at once and ends with the slowest, never before `floor_s`, the time that its own
NICs need, and `latency_s` after its last byte. A link that slows slows it; a link that stops holds it, unless another
route is open: then what is left of it goes there. Nothing is sent twice.

A link either calls when a flow has ended or predicts when it will, and reports when a prediction fails. So a transfer
has a timer of its own once the last link that calls has done so, or from the start where none does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from orchestrator.clock import Clock
from plant.links.shared_link import Flow, Link

Route = Sequence[Link]

ROUNDING = 2e-15
"""An end so near the present, as a share of it, is now."""


class RoutedTransfer:
    """One object under transfer.

    Parameters
    ----------
    clock : Clock
    routes : sequence of sequences of SharedLink
        Links crossed together, best route first.
    size_bytes : float
    latency_s : float
        Between the last byte's leaving and its arrival, set-up included.
    floor_s : float
        Least time for the bytes, whatever the links give.
    end : callable
        Called with this transfer when the last byte has arrived.
    live : dict, optional
        Where it is listed as long as it is under way.
    """

    __slots__ = (
        "_callers", "_clock", "_end", "_entry", "_floor_s", "_flows", "_latency_s", "_least_s", "_live", "_predicted",
        "_routes", "begun_s", "over", "route", "size_bytes",
    )  # fmt: skip

    def __init__(
        self,
        clock: Clock,
        routes: Sequence[Route],
        size_bytes: float,
        latency_s: float,
        floor_s: float,
        end: Callable[[RoutedTransfer], object],
        live: dict[RoutedTransfer, None] | None = None,
    ) -> None:
        self._clock, self._routes, self._end = clock, routes, end
        self.size_bytes, self._latency_s = size_bytes, latency_s
        self.over = False
        self._live = live
        if live is not None:
            live[self] = None
        self.begun_s = now = clock.now()
        self._floor_s = now + floor_s
        self._entry: Any = None  # the clock's handle of the timer; its type is the clock's own
        self._start(routes[0] if len(routes) == 1 else _open(routes), size_bytes, now)

    def _start(self, route: Route, size_bytes: float, now: float) -> None:
        self.route = route
        self._predicted = True  # what the links have predicted still holds
        self._flows: list[Flow] = []
        callers, least_s = 0, self._floor_s
        for link in route:
            flow = link.enter(size_bytes, self, now)
            self._flows.append(flow)
            end_s = flow.end_s
            if end_s == math.inf:
                callers += 1
            elif end_s > least_s:
                least_s = end_s
        self._callers = callers  # links that have still to call
        self._least_s = least_s  # the earliest that it may have passed the others
        if not callers:
            self._entry = self._clock.at(least_s + self._latency_s, self._check, None)

    def _check(self, _: None) -> None:
        """End, or wait on if others have since taken a share of a link."""
        self._entry = None
        if not self._predicted:
            now = self._clock.now()
            due_s = self._due_s(now)
            if due_s > now * (1.0 + ROUNDING):
                self._wait(due_s)
                return
        self.over = True
        if self._live is not None:
            del self._live[self]
        self._end(self)

    def _due_s(self, now: float) -> float:
        due_s = self._floor_s
        for link, flow in zip(self.route, self._flows):
            due_s = max(due_s, link.predict_s(flow, now))
        return due_s + self._latency_s

    def _wait(self, due_s: float) -> None:
        if due_s < math.inf:
            self._entry = self._clock.at(due_s, self._check, None)

    def passed(self) -> None:
        """A link has carried it: once the last that calls has, it can be there after its latency."""
        self._callers = callers = self._callers - 1
        if not callers:
            self._disarm()
            now, least_s = self._clock.now(), self._least_s
            self._entry = self._clock.at((now if now > least_s else least_s) + self._latency_s, self._check, None)

    def delayed(self) -> None:
        """A prediction does not hold: ask again before the end."""
        self._predicted = False

    def retime(self) -> None:
        """Ask again now: a flow may end earlier than predicted."""
        self._predicted = False
        self._least_s = self._floor_s
        self._disarm()
        self._wait(self._due_s(self._clock.now()))

    def _disarm(self) -> None:
        if self._entry is not None:
            self._clock.cancel_at(self._entry)
            self._entry = None

    def left_bytes(self) -> float:
        """Return what the slowest link has still to carry."""
        return max((link.left_bytes(flow) for link, flow in zip(self.route, self._flows)), default=0.0)

    def left_source_s(self) -> float:
        """Return when the last byte left the first link, or will."""
        first = self._flows[0]
        return first.end_s if self._predicted else self.route[0].predict_s(first, self._clock.now())

    def reroute(self) -> bool:
        """Send the rest over another route if a link of this one has stopped; tell whether one is open."""
        if self.over or all(link.rate_bytes_per_s > 0.0 for link in self.route):
            return False
        route = _open(self._routes)
        if any(link.rate_bytes_per_s <= 0.0 for link in route):
            return False
        left = self.left_bytes()
        if left <= 0.0:
            return False
        self._leave()
        self._disarm()
        self._start(route, left, self._clock.now())
        return True

    def _leave(self) -> None:
        flows, self._flows = self._flows, []
        for link, flow in zip(self.route, flows):
            link.leave(flow)

    def cancel(self) -> None:
        """Stop; what has been sent is wasted."""
        if not self.over:
            self.over = True
            self._disarm()
            self._leave()


def _open(routes: Sequence[Route]) -> Route:
    """Return the first route that no stopped link closes, or the first of all."""
    return next((r for r in routes if all(link.rate_bytes_per_s > 0.0 for link in r)), routes[0])
