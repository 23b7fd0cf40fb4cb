"""A Future that can be withdrawn: cancelling it takes the work off the plant at that instant, not a callback later."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from orchestrator.clock import Clock

T = TypeVar("T")


class Work(asyncio.Future[T]):
    """A plant's promise. `on_withdraw(fn, arg)` names what takes the work back; it runs once, on cancel."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(loop=clock.loop)
        self._withdraw: Callable[[Any], None] | None = None
        self._arg: Any = None  # Any: whatever the plant needs to find the work again

    def on_withdraw(self, fn: Callable[[Any], None], arg: Any) -> None:
        """Call `fn(arg)` if this is cancelled before it is done."""
        self._withdraw, self._arg = fn, arg

    def cancel(self, msg: Any = None) -> bool:
        """Withdraw the work and cancel; False when it was already done."""
        if self.done():
            return False
        if self._withdraw is not None:
            self._withdraw(self._arg)
        return super().cancel(msg)
