"""A transfer over several shared links: it streams over all of them at once and ends with the slowest.

No link gives away the share of a flow that another one holds back, so it never beats the fastest of max-min sharing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from orchestrator.clock import Clock
from plant.links.shared_link import Flow, SharedLink


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
        self._entry: Any = None  # the clock's handle of a timer
        if not links:
            self._entry = clock.at(clock.now() + latency_s + alone_s, end, self)
        elif latency_s > 0.0:
            self._entry = clock.at(clock.now() + latency_s, self._start, None)
        else:
            self._start(None)

    def _start(self, _: None) -> None:
        self._entry = None
        now = self._clock.now()
        self._flows = [link.enter(self._size, self, now) for link in self._links]

    def passed(self) -> None:
        """One of the links has carried its last byte."""
        self._pending -= 1
        if not self._pending:
            self._end(self)

    def delayed(self) -> None:
        """Shared links call at the end, so nothing was predicted."""

    def retime(self) -> None:
        """As `delayed`."""

    def cancel(self) -> None:
        """Free the transfer's shares at this instant."""
        if self._entry is not None:
            self._clock.cancel_at(self._entry)  # harmless where it has already run
            self._entry = None
        for link, flow in zip(self._links, self._flows):
            link.leave(flow)
