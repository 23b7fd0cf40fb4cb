"""Links that few share, and that need no timer: they say when a flow will end, instead of calling when it has.

The same processor sharing as `plant.links`, without a cap for one flow. A flow that is alone on its link, as most are,
costs a comparison and a list. Where several are, owners are told that an end has moved, and ask when the time comes.
"""

from __future__ import annotations

import heapq
import math
from math import fsum

from orchestrator.clock import Clock
from plant.links.shared_link import ROUNDING, Flow, Link, Owner


class LazyLink(Link):
    """A link that knows beforehand when its flows end.

    Parameters
    ----------
    clock : Clock
    bytes_per_s : float
        Rate of the whole link; 0 stops it.
    """

    __slots__ = ("_solo",)

    def __init__(self, clock: Clock, bytes_per_s: float) -> None:
        super().__init__(clock, bytes_per_s)
        self._solo: Flow | None = None  # the only flow, and not yet in the heap

    def enter(self, size_bytes: float, owner: Owner, now: float) -> Flow:
        """Add a flow now. Return a handle for `leave`; its fourth field is the earliest that it may end."""
        solo, rate = self._solo, self.rate_bytes_per_s
        if solo is not None and solo[3] <= now:  # the link is idle: one after the other has it alone
            solo[2] = None
            self.moved_bytes += solo[4]
            self._at_s = now
            self._solo = flow = [size_bytes, solo[1], owner, now + size_bytes / rate, size_bytes]
            return flow
        self._bring_up(now)
        self._sequence += 1
        self.live += 1
        end_s = now + size_bytes / rate if rate > 0.0 else now
        flow = [self._served + size_bytes, self._sequence, owner, end_s, size_bytes]
        if self.live == 1 and rate > 0.0:
            self._solo = flow
            return flow
        heapq.heappush(self._flows, flow)
        for other in self._flows:
            if other[2] is not None:
                other[2].delayed()
        return flow

    def foresee(self, flow: Flow, now: float) -> float:
        """Return when a flow ends if nobody joins (no earlier if somebody does), or ended; inf: the link is stopped."""
        self._bring_up(now)
        if flow[2] is not None:
            flow[3] = self._end_s(flow)
        end_s: float = flow[3]
        return end_s

    def _end_s(self, flow: Flow) -> float:
        """Work out a flow's end: until then the link works for each only as long as for this one, and never idles."""
        if self.rate_bytes_per_s <= 0.0:
            return math.inf
        tag, served = float(flow[0]), self._served
        before = [other[0] - served for other in self._flows if other[0] < tag and other[2] is not None]
        return self._at_s + (fsum(before) + (self.live - len(before)) * (tag - served)) / self.rate_bytes_per_s

    def load(self) -> int:
        """Return how many flows are on the link."""
        self._bring_up(self._clock.now())
        return self.live

    def _sped_up(self, now: float) -> None:
        """Let the owners know that their flows may end earlier than was said."""
        told = [flow for flow in self._flows if flow[2] is not None]
        for flow in told:
            if flow[2] is not None:
                flow[2].retime()

    def _bring_up(self, now: float) -> None:
        """Bring V up to date, ending the flows whose last byte has passed, each at its own instant."""
        flows, served, at_s, live = self._flows, self._served, self._at_s, self.live
        if self._solo is not None:
            heapq.heappush(flows, self._solo)
            self._solo = None
        while flows:
            flow = flows[0]
            if flow[2] is not None:
                share = self.rate_bytes_per_s / live
                upto = served + (now - at_s) * share
                if flow[0] > upto * (1.0 + ROUNDING) + share * now * ROUNDING:
                    served = upto
                    break
                if share > 0.0:
                    at_s = min(now, at_s + (flow[0] - served) / share)
                flow[2], flow[3], served = None, at_s, flow[0]
                self.moved_bytes += flow[4]
                live -= 1
            heapq.heappop(flows)
        self._served, self._at_s, self.live = served if live else 0.0, now, live
