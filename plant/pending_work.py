"""Work that the plant has under way, by the Future that the orchestrator awaits, so that it can be withdrawn.

What crosses to the orchestrator is a plain Future: asyncio awaits a subclass of its own by a path that takes a third
longer, and a turn waits for two or three.
"""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from orchestrator.clock import Clock


class Withdrawable(Protocol):
    """The work behind a Future."""

    def withdraw(self) -> None:
        """Stop the work at this instant: nobody waits for its result any more."""
        ...


class PendingWork(dict[asyncio.Future[Any], Withdrawable]):
    """Work by its Future, until it is done. Any: results differ by the kind of work."""

    def withdraw(self, future: asyncio.Future[Any]) -> bool:
        """Stop the work behind a Future and cancel it; return whether the work was under way."""
        work = self.pop(future, None)
        if work is None:
            return False
        work.withdraw()
        return future.cancel()


def failed_future(clock: Clock, error: Exception) -> asyncio.Future[Any]:
    """Return a Future that has already failed with `error`. Any: it stands for any kind of work."""
    future = clock.future()
    future.set_exception(error)
    return future
