"""PendingWork under way, and who is to be told when one is taken back.

What crosses to the orchestrator is a plain Future: asyncio awaits any subclass of its own by a way that takes a third
longer, and a turn waits for two or three.
"""

from __future__ import annotations

import asyncio
from typing import Any, Protocol


class Withdrawable(Protocol):
    """The work behind a promise."""

    def withdraw(self) -> None:
        """Nobody waits for it any more: take it off the plant now."""
        ...


class PendingWork(dict[asyncio.Future[Any], Withdrawable]):
    """Work by its promise, until it is done. Any: what is promised differs."""

    def withdraw(self, promise: asyncio.Future[Any]) -> bool:
        """Take work back now, and cancel its promise; tell whether it was under way."""
        work = self.pop(promise, None)
        if work is None:
            return False
        work.withdraw()
        return promise.cancel()
