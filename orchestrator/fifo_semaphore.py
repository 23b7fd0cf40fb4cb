"""A semaphore that serves its waiters first come, first served, and is safe to cancel at any await.

The stock primitives will not do: a cancelled getter may lose its item or its wake-up. Here a place is handed over at
the instant that it falls free, and a waiter that is cancelled after that gives it back.
"""

from __future__ import annotations

import asyncio
from collections import deque

from orchestrator.clock import Clock


class FifoSemaphore:
    """A number of places; `take` waits for one, `give` hands it to the longest waiter.

    Parameters
    ----------
    clock : Clock
    capacity : int or None
        How many places there are; None: no bound.
    """

    __slots__ = ("_clock", "_waiters", "capacity", "taken")

    def __init__(self, clock: Clock, capacity: int | None) -> None:
        self._clock = clock
        self._waiters: deque[asyncio.Future[None]] = deque()
        self.capacity = capacity
        self.taken = 0

    def free(self) -> bool:
        """Tell whether a place can be had without waiting."""
        return not self._waiters and (self.capacity is None or self.taken < self.capacity)

    def take_nowait(self) -> bool:
        """Take a place if one is free; tell whether it was."""
        if self.free():
            self.taken += 1
            return True
        return False

    async def take(self) -> None:
        """Wait for a place and take it."""
        if self.take_nowait():
            return
        waiter: asyncio.Future[None] = self._clock.future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self.give()
            raise

    def give(self) -> None:
        """Free a place: the longest waiter has it at once."""
        self.taken -= 1
        self._serve()

    def _serve(self) -> None:
        while self._waiters and (self.capacity is None or self.taken < self.capacity):
            waiter = self._waiters.popleft()
            if not waiter.done():
                self.taken += 1
                waiter.set_result(None)
