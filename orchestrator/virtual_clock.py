"""The clock of a virtual loop, and how to run a coroutine on a fresh one."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from orchestrator.errors import Deadlock
from orchestrator.virtual_loop import VirtualLoop

T = TypeVar("T")
COLLECT_EVENTS = 100_000


class VirtualClock:
    """The `Clock` of a `VirtualLoop`; its other methods are the loop's own, bound once."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.loop: asyncio.AbstractEventLoop = loop
        self._loop = loop
        self.context = loop.home
        self.at = loop.at
        self.cancel_at = loop.cancel_at
        self.future = loop.create_future
        self.sleep_until = loop.sleep_until

    def now(self) -> float:
        """Return the virtual present, in seconds."""
        return self._loop._now  # the clock's own loop; a method call less, fifteen times a turn

    def timeout_at(self, when_s: float) -> asyncio.Timeout:
        """Return an `async with` block that raises TimeoutError at `when_s`."""
        return asyncio.timeout_at(when_s)


def run_virtual(main: Callable[[VirtualClock], Coroutine[Any, Any, T]], start_s: float = 0.0) -> T:
    """Run `main(clock)` to its end on a fresh virtual loop, without garbage collection in between.

    Collection is off because a run makes few cycles and many live tasks, each of which every pass would visit. A loop
    that runs already, as a notebook's does, is set aside meanwhile: it is blocked as by any call that takes its time.
    """
    outer = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    loop = VirtualLoop(start_s)
    clock = VirtualClock(loop)
    collecting = gc.isenabled()
    gc.disable()
    try:
        return loop.run_until_complete(main(clock))
    except (KeyboardInterrupt, SystemExit):
        loop.set_exception_handler(lambda *_: None)  # the tasks that it broke off have nothing to add
        loop.forget()  # nor has the plant: a turn let in now would find its task group shut
        raise
    finally:
        _close(loop)
        asyncio._set_running_loop(outer)
        if collecting:
            gc.enable()
        if loop.scheduled > COLLECT_EVENTS:  # a pass over the whole process costs more than a short run leaves behind
            gc.collect()


def _close(loop: VirtualLoop) -> None:
    pending = sorted(asyncio.all_tasks(loop), key=hash)
    for task in pending:
        task.cancel()
    if pending:
        # A task that was interrupted hands it on once more, and one may wait for what has been forgotten.
        with suppress(KeyboardInterrupt, SystemExit, Deadlock):
            loop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))
    loop.close()
