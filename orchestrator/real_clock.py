"""The real clock, and the scaled one: the same calls as the virtual clock, on any running asyncio loop.

At `rate` r, r seconds of the run pass in one second of the wall. Timers may fire a little late, and on some loops a
little early; `sleep_until` sleeps again rather than return before its time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from typing import Any, TypeVar

from orchestrator.clock import PLANT, SLEEP

T = TypeVar("T")


class RealClock:
    """Seconds since the clock was made, `rate` times as fast as the loop's own.

    Parameters
    ----------
    loop : asyncio.AbstractEventLoop
    rate : float
        Seconds of the run per second of the loop, > 0.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, rate: float = 1.0) -> None:
        if not rate > 0.0:
            raise ValueError(f"rate must be positive, not {rate}")
        self.loop = loop
        self.rate = rate
        self.context = copy_context()
        self._start_s = loop.time()

    def now(self) -> float:
        """Return the present, in seconds of the run."""
        return (self.loop.time() - self._start_s) * self.rate

    def _on_loop(self, when_s: float) -> float:
        return self._start_s + when_s / self.rate

    def at(self, when_s: float, fn: Callable[[Any], object], arg: object, priority: int = PLANT) -> asyncio.TimerHandle:
        """Call `fn(arg)` at `when_s`. Priorities order one instant, and two real timers never share one."""
        return self.loop.call_at(self._on_loop(when_s), fn, arg)

    def cancel_at(self, entry: asyncio.TimerHandle) -> None:
        """Forget an entry."""
        entry.cancel()

    def future(self) -> asyncio.Future[Any]:
        """Return a new Future of the loop."""
        return self.loop.create_future()

    async def sleep_until(self, when_s: float, priority: int = SLEEP) -> None:
        """Wait until `when_s`, never less."""
        while (left_s := when_s - self.now()) > 0.0:
            await asyncio.sleep(left_s / self.rate)

    def timeout_at(self, when_s: float) -> asyncio.Timeout:
        """Return an `async with` block that raises TimeoutError at `when_s`."""
        return asyncio.timeout_at(self._on_loop(when_s))


def run_real(main: Callable[[RealClock], Coroutine[Any, Any, T]], rate: float = 1.0) -> T:
    """Run `main(clock)` on a fresh real loop at `rate`."""

    async def started() -> T:
        return await main(RealClock(asyncio.get_running_loop(), rate))

    return asyncio.run(started())
