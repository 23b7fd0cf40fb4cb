"""Links that share their rate among the transfers on them (processor sharing), and transfers over several links.

A link serves each of its n flows at min(C / n, flow cap). One clock of service V, in bytes per flow, runs for all of
them, so a flow of `size` bytes ends when V reaches its tag V(join) + size: joining and leaving cost one heap operation
whatever n is, and each link has one live timer. (Kleinrock, Queueing Systems II, 4.4; virtual time as in Parekh and
Gallager, 1993.)

A transfer over several links streams over all of them at once and ends with the slowest. Each link shares on its own:
a flow held back elsewhere does not give its share away, so a transfer is never faster than max-min sharing's fastest
and links stay independent, each an exact M/G/1-PS.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from typing import Any

from orchestrator.clock import Clock

Flow = list[Any]  # [tag_bytes, sequence, end or None once it left, arg, size_bytes]; Any: a heap entry of mixed fields

# Rounding of the service clock and of the instant, a few units in the last place.
ROUNDING = 4e-16


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
        "_at_s",
        "_clock",
        "_due_s",
        "_entry",
        "_flow_cap",
        "_flows",
        "_sequence",
        "_served",
        "_share",
        "live",
        "moved_bytes",
        "rate_bytes_per_s",
    )

    def __init__(self, clock: Clock, bytes_per_s: float, flow_bytes_per_s: float = math.inf) -> None:
        self._clock = clock
        self.rate_bytes_per_s = bytes_per_s
        self._flow_cap = flow_bytes_per_s
        self._flows: list[Flow] = []
        self._served = 0.0  # V, bytes per flow since the link was last idle
        self._at_s = 0.0  # when V was last brought up to date
        self._share = 0.0  # bytes a second that each flow gets now
        self._sequence = 0
        self._entry: Any = None  # a clock's entry is its own affair
        self._due_s = 0.0
        self.live = 0
        self.moved_bytes = 0.0

    def join(self, size_bytes: float, end: Callable[[Any], object], arg: object) -> Flow:
        """Add a flow; `end(arg)` is called when its last byte has passed. Return a handle for `leave`."""
        now = self._clock.now()
        self._bring_up(now)
        self._sequence += 1
        flow: Flow = [self._served + size_bytes, self._sequence, end, arg, size_bytes]
        heapq.heappush(self._flows, flow)
        self.live += 1
        self._arm(now)
        return flow

    def leave(self, flow: Flow) -> None:
        """Take a flow off; its share goes to the others at once. Harmless after its end."""
        if flow[2] is None:
            return
        now = self._clock.now()
        self._bring_up(now)
        self.moved_bytes += flow[4] - max(0.0, flow[0] - self._served)
        flow[2] = flow[3] = None
        self.live -= 1
        self._arm(now)

    def left_bytes(self, flow: Flow) -> float:
        """Return what the link has still to carry of a flow; 0 after its end."""
        if flow[2] is None:
            return 0.0
        self._bring_up(self._clock.now())
        return max(0.0, float(flow[0]) - self._served)

    def carried_bytes(self) -> float:
        """Return what has passed so far, the flows under way included."""
        left = sum(self.left_bytes(flow) for flow in self._flows)
        return self.moved_bytes + sum(float(flow[4]) for flow in self._flows if flow[2] is not None) - left

    def set_rate(self, bytes_per_s: float) -> None:
        """Change the link's rate from now on; flows keep what they have moved."""
        now = self._clock.now()
        self._bring_up(now)
        self.rate_bytes_per_s = bytes_per_s
        self._arm(now)

    def _bring_up(self, now: float) -> None:
        if self.live:
            self._served += (now - self._at_s) * self._share
        self._at_s = now

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
        if share <= 0.0:
            self._disarm()
            return
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
        reached = self._served * (1.0 + ROUNDING) + self._share * now * ROUNDING
        ended: list[tuple[Callable[[Any], object], object]] = []
        while flows and flows[0][0] <= reached:
            _tag, _sequence, end, arg, size = flow = heapq.heappop(flows)
            if end is not None:
                flow[2] = flow[3] = None
                self.live -= 1
                self.moved_bytes += size
                ended.append((end, arg))
        self._arm(now)
        for end, arg in ended:  # only now: an end may join or leave this link
            end(arg)


class Transfer:
    """Bytes on their way over some links at once, after a latency.

    Parameters
    ----------
    clock : Clock
    links : sequence of SharedLink
        Crossed together; none: the transfer takes `alone_s`.
    size_bytes : float
    latency_s : float
        Seconds before the first byte.
    alone_s : float
        Seconds for the bytes where no shared link is crossed.
    end : callable
        Called with this transfer when its last byte has arrived.
    """

    __slots__ = ("_clock", "_end", "_entry", "_flows", "_links", "_pending", "_size")

    def __init__(
        self,
        clock: Clock,
        links: Sequence[SharedLink],
        size_bytes: float,
        latency_s: float,
        alone_s: float,
        end: Callable[[Transfer], object],
    ) -> None:
        self._clock = clock
        self._links = links
        self._size = size_bytes
        self._end = end
        self._pending = len(links)
        self._flows: list[Flow] = []
        self._entry: Any = None
        if not links:
            self._pending = 1
            self._entry = clock.at(clock.now() + latency_s + alone_s, self._passed, None)
        elif latency_s > 0.0:
            self._entry = clock.at(clock.now() + latency_s, self._start, None)
        else:
            self._start(None)

    def _start(self, _: None) -> None:
        self._entry = None
        self._flows = [link.join(self._size, self._passed, None) for link in self._links]

    def _passed(self, _: None) -> None:
        self._pending -= 1
        if not self._pending:
            self._end(self)

    def cancel(self) -> None:
        """Free the transfer's shares at this instant."""
        if self._entry is not None:
            self._clock.cancel_at(self._entry)  # harmless where it has already run
            self._entry = None
        for link, flow in zip(self._links, self._flows):
            link.leave(flow)
