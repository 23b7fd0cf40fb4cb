"""Links with few flows and no timer: they predict when a flow will end instead of calling when it has.

The same processor sharing as `plant.links.shared_link`, without a cap for one flow. A flow that is alone on its link,
as most are, costs a comparison and one object. Where several are, their owners hear that an end has moved, and ask
again when the time comes.
"""

from __future__ import annotations

import heapq
import math
from math import fsum

from orchestrator.clock import Clock
from plant.links.shared_link import ROUNDING, Flow, FlowOwner, Link


class LazyLink(Link):
    """A link that predicts the ends of its flows.

    Parameters
    ----------
    clock : Clock
    bytes_per_s : float
        Rate of the whole link; 0 stops it.
    """

    __slots__ = ("_solo",)

    def __init__(self, clock: Clock, bytes_per_s: float) -> None:
        super().__init__(clock, bytes_per_s)
        self._solo: Flow | None = None  # the only flow, not yet in the heap; its sequence is the last one given

    def enter(self, size_bytes: float, owner: FlowOwner, now: float) -> Flow:
        """Add a flow now; its `end_s` is the earliest that it may end."""
        solo, rate = self._solo, self.rate_bytes_per_s
        if solo is not None and solo.end_s <= now:  # the link is idle: one after the other has it alone
            solo.owner = None
            self.moved_bytes += solo.size_bytes
            self._at_s = now
            self._solo = flow = Flow(size_bytes, size_bytes, now + size_bytes / rate, owner)
            return flow
        self._bring_up(now)
        self._sequence += 1
        self.live += 1
        end_s = now + size_bytes / rate if rate > 0.0 else now
        flow = Flow(self._served + size_bytes, size_bytes, end_s, owner)
        if self.live == 1 and rate > 0.0:
            self._solo = flow
            return flow
        heapq.heappush(self._flows, (flow.tag_bytes, self._sequence, flow))
        for _, _, other in self._flows:
            if other.owner is not None:
                other.owner.delayed()
        return flow

    def predict_s(self, flow: Flow, now: float) -> float:
        """Return when a flow ends if nobody joins (no earlier if somebody does), or ended; inf: the link is stopped."""
        self._bring_up(now)
        if flow.owner is not None:
            flow.end_s = self._end_s(flow)
        return flow.end_s

    def _end_s(self, flow: Flow) -> float:
        """Work out a flow's end: until then the link works for each only as long as for this one, and never idles."""
        if self.rate_bytes_per_s <= 0.0:
            return math.inf
        tag, served = flow.tag_bytes, self._served
        before = [at - served for at, _, other in self._flows if at < tag and other.owner is not None]
        return self._at_s + (fsum(before) + (self.live - len(before)) * (tag - served)) / self.rate_bytes_per_s

    def load(self) -> int:
        """Return how many flows are on the link."""
        self._bring_up(self._clock.now())
        return self.live

    def _sped_up(self, now: float) -> None:
        """Let the owners know that their flows may end earlier than was predicted."""
        for flow in [flow for _, _, flow in self._flows if flow.owner is not None]:
            if flow.owner is not None:  # it may have ended when an earlier one of the list was retimed
                flow.owner.retime()

    def _bring_up(self, now: float) -> None:
        """Bring V up to date, ending the flows whose last byte has passed, each at its own instant."""
        flows, served, at_s, live = self._flows, self._served, self._at_s, self.live
        if self._solo is not None:
            heapq.heappush(flows, (self._solo.tag_bytes, self._sequence, self._solo))
            self._solo = None
        while flows:
            tag, _, flow = flows[0]
            if flow.owner is not None:
                share = self.rate_bytes_per_s / live
                upto = served + (now - at_s) * share
                if tag > upto * (1.0 + ROUNDING) + share * now * ROUNDING:
                    served = upto
                    break
                if share > 0.0:
                    at_s = min(now, at_s + (tag - served) / share)
                flow.owner, flow.end_s, served = None, at_s, tag
                self.moved_bytes += flow.size_bytes
                live -= 1
            heapq.heappop(flows)
        self._served, self._at_s, self.live = served if live else 0.0, now, live
