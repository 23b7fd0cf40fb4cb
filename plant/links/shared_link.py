"""Links whose rate is shared equally among the flows on them (processor sharing).

A link serves each of its n flows at min(C / n, flow cap). One clock of service V, in bytes per flow, runs for all of
them, so a flow of `size` bytes ends when V reaches its tag V(join) + size: joining and leaving cost one heap operation
whatever n is, and each link has one live timer. (Kleinrock, Queueing Systems II, 4.4; virtual time as in Parekh and
Gallager, 1993.)

Each link shares on its own: a flow held back elsewhere does not give its share away, so links stay independent, each an
exact M/G/1-PS.
"""

from __future__ import annotations

import heapq
import math
from abc import ABC, abstractmethod
from math import fsum
from typing import Any, Protocol

from orchestrator.clock import Clock

# Rounding of the service clock and of the instant, a few units in the last place.
ROUNDING = 4e-16


class FlowOwner(Protocol):
    """The transfer that a flow is part of; it may be on several links at once."""

    def passed(self) -> None:
        """A flow whose end its link could not predict has ended."""
        ...

    def delayed(self) -> None:
        """A flow ends later than its link predicted, as others have joined; ask again when the time comes."""
        ...

    def retime(self) -> None:
        """A flow may now end earlier than its link predicted."""
        ...


class Flow:
    """One transfer's share of one link; only the link changes it.

    Attributes
    ----------
    tag_bytes : float
        Value of the link's service clock at which the last byte has passed.
    size_bytes : float
    end_s : float
        When it ended; before that the earliest end that the link can predict, math.inf where it predicts none.
    owner : FlowOwner or None
        None once the flow has ended or left.
    """

    __slots__ = ("end_s", "owner", "size_bytes", "tag_bytes")

    def __init__(self, tag_bytes: float, size_bytes: float, end_s: float, owner: FlowOwner | None) -> None:
        self.tag_bytes = tag_bytes
        self.size_bytes = size_bytes
        self.end_s = end_s
        self.owner = owner


class Link(ABC):
    """The flows on a link and what it has carried, whether it calls at the end of a flow or predicts it.

    Parameters
    ----------
    clock : Clock
    bytes_per_s : float
        Rate of the whole link; 0 stops it.

    Attributes
    ----------
    live : int
        Flows on the link when it was last brought up to date.
    moved_bytes : float
        What flows that have ended, or left, have moved.
    """

    __slots__ = ("_at_s", "_clock", "_flows", "_sequence", "_served", "live", "moved_bytes", "rate_bytes_per_s")

    def __init__(self, clock: Clock, bytes_per_s: float) -> None:
        self._clock = clock
        self.rate_bytes_per_s = bytes_per_s
        self._flows: list[tuple[float, int, Flow]] = []  # a heap of (tag, sequence, flow)
        self._served = 0.0  # V, bytes per flow since the link was last idle
        self._at_s = 0.0  # when V was last brought up to date
        self._sequence = 0
        self.live = 0
        self.moved_bytes = 0.0

    @abstractmethod
    def enter(self, size_bytes: float, owner: FlowOwner, now: float) -> Flow:
        """Add a flow now; its `end_s` is its earliest end, or inf where the link will call `owner.passed`."""

    @abstractmethod
    def predict_s(self, flow: Flow, now: float) -> float:
        """Return when a flow ends if nobody joins (no earlier if somebody does), or ended; inf: not known."""

    @abstractmethod
    def _bring_up(self, now: float) -> None:
        """Bring V up to date."""

    @abstractmethod
    def _sped_up(self, now: float) -> None:
        """Flows may end earlier from now on: one has left, or the rate has changed."""

    def leave(self, flow: Flow) -> None:
        """Take a flow off; its share goes to the others at once. Harmless after its end."""
        now = self._clock.now()
        if flow.owner is not None:
            self._bring_up(now)  # it may end with this
        if flow.owner is not None:
            self.moved_bytes += flow.size_bytes - max(0.0, flow.tag_bytes - self._served)
            flow.owner, flow.end_s = None, now
            self.live -= 1
            self._sped_up(now)

    def left_bytes(self, flow: Flow) -> float:
        """Return what the link has still to carry of a flow; 0 after its end."""
        if flow.owner is not None:
            self._bring_up(self._clock.now())
        return 0.0 if flow.owner is None else max(0.0, flow.tag_bytes - self._served)

    def load(self) -> int:
        """Return how many flows are on the link."""
        return self.live

    def carried_bytes(self) -> float:
        """Return what has passed so far, the flows under way included."""
        self._bring_up(self._clock.now())
        live = [flow for _, _, flow in self._flows if flow.owner is not None]
        return self.moved_bytes + fsum(flow.size_bytes - max(0.0, flow.tag_bytes - self._served) for flow in live)

    def set_rate(self, bytes_per_s: float) -> None:
        """Change the link's rate from now on; flows keep what they have moved."""
        now = self._clock.now()
        self._bring_up(now)
        self.rate_bytes_per_s = bytes_per_s
        self._sped_up(now)


class SharedLink(Link):
    """A link with a timer of its own, that calls the owner when a flow ends.

    Parameters
    ----------
    clock : Clock
    bytes_per_s : float
        Rate of the whole link; 0 stops it.
    flow_bytes_per_s : float
        Most that one flow can take.
    """

    __slots__ = ("_due_s", "_entry", "_flow_cap", "_share")

    def __init__(self, clock: Clock, bytes_per_s: float, flow_bytes_per_s: float = math.inf) -> None:
        super().__init__(clock, bytes_per_s)
        self._flow_cap = flow_bytes_per_s
        self._share = 0.0  # bytes a second that each flow gets now
        self._entry: Any = None  # the clock's handle of the timer; its type is the clock's own
        self._due_s = 0.0

    def enter(self, size_bytes: float, owner: FlowOwner, now: float) -> Flow:
        """Add a flow now; `owner.passed` is called when its last byte has passed."""
        self._served = served = self._served + (now - self._at_s) * self._share
        self._at_s = now
        self._sequence = sequence = self._sequence + 1
        tag = served + size_bytes
        flow = Flow(tag, size_bytes, math.inf, owner)
        flows = self._flows
        heapq.heappush(flows, (tag, sequence, flow))
        self.live = live = self.live + 1
        rate = self.rate_bytes_per_s
        if rate < live * self._flow_cap and self._entry is not None and flows[0][2] is not flow:
            self._share = rate / live  # the next end has only moved away
        else:
            self._arm(now)
        return flow

    def predict_s(self, flow: Flow, now: float) -> float:
        """Return when a flow ended; inf: it has not."""
        return flow.end_s

    def _bring_up(self, now: float) -> None:
        self._served += (now - self._at_s) * self._share
        self._at_s = now

    def _sped_up(self, now: float) -> None:
        self._arm(now)

    def _arm(self, now: float) -> None:
        """Set the timer for the next end, unless one is set for no later: that one re-arms when it fires."""
        flows, live = self._flows, self.live
        while flows and flows[0][2].owner is None:
            heapq.heappop(flows)
        if not live:
            self._served = self._share = 0.0
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
        now, share, flows = self._clock.now(), self._share, self._flows
        self._served = served = self._served + (now - self._at_s) * share
        self._at_s = now
        reached = served * (1.0 + ROUNDING) + share * now * ROUNDING
        ended: list[FlowOwner] = []
        while flows and flows[0][0] <= reached:
            flow = heapq.heappop(flows)[2]
            owner = flow.owner
            if owner is not None:
                flow.owner, flow.end_s = None, now
                self.live -= 1
                self.moved_bytes += flow.size_bytes
                ended.append(owner)
        self._arm(now)
        for owner in ended:  # only now: an owner may join or leave this link
            owner.passed()
