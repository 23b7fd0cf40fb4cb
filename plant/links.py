"""Links that share their rate among the transfers on them (processor sharing).

A link serves each of its n flows at min(C / n, flow cap). One clock of service V, in bytes per flow, runs for all of
them, so a flow of `size` bytes ends when V reaches its tag V(join) + size: joining and leaving cost one heap operation
whatever n is, and each link has one live timer. (Kleinrock, Queueing Systems II, 4.4; virtual time as in Parekh and
Gallager, 1993.)

Each link shares on its own: a flow held back elsewhere does not give its share away, so links stay independent, each an
exact M/G/1-PS.

A quiet flow has no timer: its link works out when it ended as soon as anybody asks or joins. Who is carried by several
links at once so needs one timer, not one a link.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from math import fsum
from typing import Any, Protocol

from orchestrator.clock import Clock

# [tag_bytes, sequence, end (a quiet flow: its owner; None once over), arg (a quiet flow: when it ends or ended),
# size_bytes, who had last joined when that end was foreseen]. Any: a heap entry of mixed fields.
Flow = list[Any]


class Owner(Protocol):
    """Whoever a quiet flow belongs to."""

    def retime(self) -> None:
        """A flow may now end earlier than the link said: its rate has changed, or another flow was taken off."""
        ...


# Rounding of the service clock and of the instant, a few units in the last place.
ROUNDING = 4e-16
UNFORESEEN = -1


class SharedLink:
    """One link under processor sharing.

    Parameters
    ----------
    clock : Clock
    bytes_per_s : float
        Rate of the whole link; 0 stops it.
    flow_bytes_per_s : float
        Most that one flow can take.
    """

    __slots__ = (
        "_at_s", "_clock", "_due_s", "_entry", "_flow_cap", "_flows", "_quiet", "_sequence", "_served",
        "_share", "_solo", "live", "moved_bytes", "rate_bytes_per_s", "squeezed",
    )  # fmt: skip

    def __init__(self, clock: Clock, bytes_per_s: float, flow_bytes_per_s: float = math.inf) -> None:
        self._clock = clock
        self.rate_bytes_per_s = bytes_per_s
        self._flow_cap = flow_bytes_per_s
        self._flows: list[Flow] = []  # a heap of those with an end to call
        self._quiet: list[Flow] = []  # a heap of those without
        self._served = 0.0  # V, bytes per flow since the link was last idle
        self._at_s = 0.0  # when V was last brought up to date
        self._share = 0.0  # bytes a second that each flow gets now
        self._solo: Flow | None = None  # the only flow, quiet, and not yet in its heap
        self._sequence = 0
        self.squeezed = 0  # who last joined so that all before it got less each
        self._entry: Any = None  # a clock's entry is its own affair
        self._due_s = 0.0
        self.live = 0
        self.moved_bytes = 0.0

    def join(self, size_bytes: float, end: Callable[[Any], object], arg: object) -> Flow:
        """Add a flow; `end(arg)` is called when its last byte has passed. Return a handle for `leave`."""
        now = self._clock.now()
        self._bring_up(now)
        self._sequence = sequence = self._sequence + 1
        flow: Flow = [self._served + size_bytes, sequence, end, arg, size_bytes, sequence]
        heapq.heappush(self._flows, flow)
        self.live = live = self.live + 1
        if self.rate_bytes_per_s < live * self._flow_cap:
            self.squeezed = sequence
            if self._entry is not None and self._flows[0] is not flow:  # the next end has moved away, if anything
                self._share = self.rate_bytes_per_s / live
                return flow
        self._arm(now)
        return flow

    def enter(self, size_bytes: float, owner: Owner, now: float) -> Flow:
        """Add a quiet flow now. Return a handle for `leave`; its fourth field is its end as long as `squeezed` is at
        most its sixth: nobody who joined since has taken from it.
        """
        solo = self._solo
        if solo is not None and solo[3] <= now:  # the link is idle, as most are: one after the other has it alone
            solo[2] = None
            self.moved_bytes += solo[4]
            self._at_s = now
            sequence = solo[1]
            self._solo = flow = [size_bytes, sequence, owner, now + size_bytes / self._share, size_bytes, sequence]
            return flow
        if self.live:
            self._bring_up(now)
        self._at_s = now
        self._sequence = sequence = self._sequence + 1
        self.live = live = self.live + 1
        share, cap = self.rate_bytes_per_s / live, self._flow_cap
        # A timer that others wait for is now early, if anything: it looks again when it fires.
        self._share = share if share < cap else cap
        flow = [self._served + size_bytes, sequence, owner, 0.0, size_bytes, sequence]
        if live == 1 and share > 0.0:
            self._solo = flow
        else:
            heapq.heappush(self._quiet, flow)
            if share < cap:
                self.squeezed = sequence
        flow[3] = self.end_s(flow)
        return flow

    def end_s(self, flow: Flow) -> float:
        """Return when a flow ends if nobody joins (no earlier if somebody does), or ended if quiet; inf: stopped."""
        at_s: float
        if flow[2] is None:
            at_s = flow[3]
            return at_s
        share, live = self._share, self.live
        if share <= 0.0:
            return math.inf
        at_s, served, cap = self._at_s, self._served, self._flow_cap
        tag: float = flow[0]
        if live == 1 or share >= cap:
            return at_s + (tag - served) / share
        rate = self.rate_bytes_per_s
        tags = [other[0] for other in self._quiet if other[0] < tag and other[2] is not None]
        if self._flows:
            tags += [other[0] for other in self._flows if other[0] < tag and other[2] is not None]
        if cap == math.inf:  # the link is never idle until then, and works for each only as long as for this one
            return at_s + (fsum(tags) - len(tags) * served + (live - len(tags)) * (tag - served)) / rate
        tags.sort()
        for end in tags:
            at_s += (end - served) / share
            served = end
            live -= 1
            share = rate / live
            if share >= cap:
                share = cap
                break
        return at_s + (tag - served) / share

    def foresee(self, flow: Flow) -> float:
        """Return a quiet flow's end, looked at again if somebody who joined since has taken from it."""
        if flow[5] < self.squeezed and flow[2] is not None:
            flow[3], flow[5] = self.end_s(flow), self._sequence
        end_s: float = flow[3]
        return end_s

    def leave(self, flow: Flow) -> None:
        """Take a flow off; its share goes to the others at once. Harmless after its end."""
        now = self._clock.now()
        self._bring_up(now)
        if flow[2] is None:
            return
        self.moved_bytes += flow[4] - max(0.0, flow[0] - self._served)
        flow[2], flow[3] = None, now
        self.live -= 1
        self._arm(now)
        self._tell()

    def left_bytes(self, flow: Flow) -> float:
        """Return what the link has still to carry of a flow; 0 after its end."""
        self._bring_up(self._clock.now())
        if flow[2] is None:
            return 0.0
        return max(0.0, float(flow[0]) - self._served)

    def load(self) -> int:
        """Return how many flows are on the link."""
        self._bring_up(self._clock.now())
        return self.live

    def carried_bytes(self) -> float:
        """Return what has passed so far, the flows under way included."""
        self._bring_up(self._clock.now())
        live = [flow for heap in (self._flows, self._quiet) for flow in heap if flow[2] is not None]
        return self.moved_bytes + fsum(float(flow[4]) - max(0.0, float(flow[0]) - self._served) for flow in live)

    def set_rate(self, bytes_per_s: float) -> None:
        """Change the link's rate from now on; flows keep what they have moved."""
        now = self._clock.now()
        self._bring_up(now)
        self.rate_bytes_per_s = bytes_per_s
        self._arm(now)
        self._tell()

    def _tell(self) -> None:
        """Let the owners of quiet flows know that they may end earlier than was said."""
        told = [flow for flow in self._quiet if flow[2] is not None]
        for flow in told:
            flow[5] = UNFORESEEN
        for flow in told:
            if flow[2] is not None:
                flow[2].retime()

    def _bring_up(self, now: float) -> None:
        if self._solo is not None:
            heapq.heappush(self._quiet, self._solo)
            self._solo = None
        if self.live:
            quiet, share = self._quiet, self._share
            served = self._served + (now - self._at_s) * share
            if quiet and quiet[0][0] <= served * (1.0 + ROUNDING) + share * now * ROUNDING:
                self._end_quiet(now)
            else:
                self._served = served
        self._at_s = now

    def _end_quiet(self, now: float) -> None:
        """Bring V up to date, ending the quiet flows whose last byte has passed, each at its own instant."""
        quiet, share, at_s, served, live = self._quiet, self._share, self._at_s, self._served, self.live
        while quiet:
            flow = quiet[0]
            tag = flow[0]
            if flow[2] is not None:
                upto = served + (now - at_s) * share
                if tag > upto * (1.0 + ROUNDING) + share * now * ROUNDING:
                    break
                if share > 0.0:
                    at_s += (tag - served) / share
                    at_s = at_s if at_s < now else now
                flow[2], flow[3] = None, at_s
                self.moved_bytes += flow[4]
                live -= 1
                if live:
                    served = tag
                    share = self.rate_bytes_per_s / live
                    share = share if share < self._flow_cap else self._flow_cap
                else:
                    served = share = 0.0
            heapq.heappop(quiet)
        self._share, self.live, self._served = share, live, served + (now - at_s) * share

    def _arm(self, now: float) -> None:
        """Set the timer for the next end, unless one is set for no later: that one re-arms when it fires."""
        flows, live = self._flows, self.live
        while flows and flows[0][2] is None:
            heapq.heappop(flows)
        if not live:
            self._served = 0.0
            self._disarm()
            return
        share = self.rate_bytes_per_s / live
        self._share = share = share if share < self._flow_cap else self._flow_cap
        if share <= 0.0 or not flows:
            self._disarm()
            return
        if self._quiet:
            when = self.end_s(flows[0])
        else:
            when = now + (flows[0][0] - self._served) / share
        entry = self._entry
        if entry is not None:
            if self._due_s <= when:
                return
            self._clock.cancel_at(entry)
        self._due_s = when
        self._entry = self._clock.at(when, self._fire, None)

    def _disarm(self) -> None:
        if self._entry is not None:
            self._clock.cancel_at(self._entry)
            self._entry = None

    def _fire(self, _: None) -> None:
        self._entry = None
        now = self._clock.now()
        self._bring_up(now)
        flows = self._flows
        sharers = self.live if self._quiet else 1  # an end foreseen past others' carries the rounding of all of them
        reached = self._served * (1.0 + ROUNDING) + sharers * self._share * now * ROUNDING
        ended: list[tuple[Callable[[Any], object], object]] = []
        while flows and flows[0][0] <= reached:
            _tag, _, end, arg, size, _ = flow = heapq.heappop(flows)
            if end is not None:
                flow[2] = flow[3] = None
                self.live -= 1
                self.moved_bytes += size
                ended.append((end, arg))
        self._arm(now)
        for end, arg in ended:  # only now: an end may join or leave this link
            end(arg)
