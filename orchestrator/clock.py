"""The clock protocol, and the order of events at one instant, for virtual, scaled and real runs.

A `Clock` counts seconds from 0 at the start of a run. The orchestrator awaits `sleep_until`; the plant schedules plain
functions with `at`. Order at one instant (exact on the virtual clock, best effort on the others):

1. `PLANT`: facts of the plant, 2. `SLEEP`: sleeps, 3. `DEADLINE`: timeouts, 4. `TICK`: control ticks;
within one priority, first scheduled comes first. What a tick schedules for the present instant runs after it, in the
same order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

PLANT, SLEEP, DEADLINE, TICK = 0, 1, 2, 3


class Clock(Protocol):
    """Seconds since the start of the run, and ways to wait for them.

    `context` is for tasks that set no context variables: one for all of them.
    """

    loop: asyncio.AbstractEventLoop
    context: Context

    def now(self) -> float:
        """Return the present, in seconds."""
        ...

    def at(self, when_s: float, fn: Callable[[Any], object], arg: object, priority: int = PLANT) -> Any:
        """Call `fn(arg)` at `when_s` (at once if that has passed); return an entry for `cancel_at`."""
        ...

    def cancel_at(self, entry: Any) -> None:
        """Forget an entry; harmless when it has already run."""
        ...

    def future(self) -> asyncio.Future[Any]:
        """Return a new Future of the running loop."""
        ...

    async def sleep_until(self, when_s: float, priority: int = SLEEP) -> None:
        """Wait until `when_s`; returns at once if that has passed."""
        ...

    def timeout_at(self, when_s: float) -> asyncio.Timeout:
        """Return an `async with` block that raises TimeoutError at `when_s`; a completion at that instant wins."""
        ...
