"""A Future that can be withdrawn: cancelling it takes the work off the plant at that instant, not a callback later."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Work(asyncio.Future[T]):
    """A plant's promise. Set `withdraw` to what takes the work back; it is called with this Work, once, on cancel.

    `value` and `entry` are the plant's own: what the promise will resolve to, and the event that will resolve it.
    Slots and no __init__, because a Work is born two times a turn: a dict and a Python frame would each cost as much
    again. An attribute that was never set does not exist.
    """

    __slots__ = ("entry", "value", "withdraw")
    withdraw: Callable[[Work[T]], None]
    value: T
    entry: Any  # an entry of the clock, whose type is the clock's own

    def cancel(self, msg: Any = None) -> bool:
        """Withdraw the work and cancel; False when it was already done."""
        if self.done():
            return False
        withdraw = getattr(self, "withdraw", None)
        if withdraw is not None:
            withdraw(self)
        return super().cancel(msg)
