"""A Future that can be withdrawn: cancelling it takes the work off the plant at that instant, not a callback later."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Work(asyncio.Future[T]):
    """A plant's promise. Set `withdraw` to what takes the work back; it is called with this Work, once, on cancel.

    `value` and `entry` are the plant's own: what the promise will resolve to, and the event that will resolve it.
    There is no __init__, because a Work is born two times a turn and a C constructor is twice as fast.
    """

    withdraw: Callable[[Work[T]], None] | None = None
    value: T
    entry: Any = None  # Any: an entry of the clock, whose type is the clock's own

    def cancel(self, msg: Any = None) -> bool:
        """Withdraw the work and cancel; False when it was already done."""
        if self.done():
            return False
        if self.withdraw is not None:
            self.withdraw(self)
        return super().cancel(msg)
