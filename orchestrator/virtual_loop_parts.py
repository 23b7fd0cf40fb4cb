"""Handles, timers and tasks of the virtual loop: asyncio's, plainer and ordered."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

Entry = list[Any]  # [when_s, priority, sequence, fn or None once cancelled or run, arg]
NOTHING = (bool, ())  # what a cancelled handle runs: a call without effect, and without a Python frame


class TimerLoop(Protocol):
    """What a timer asks of its loop."""

    def time(self) -> float:
        """Return the present, in seconds."""
        ...

    def cancel_at(self, entry: Entry) -> None:
        """Forget an entry of the heap."""
        ...

    def run_handle(self, handle: Handle) -> None:
        """Run a handle's callback now."""
        ...


class Handle(list[Any]):
    """What is ready: `run(*call)`. asyncio's Handle without repr, debug and loop fields."""

    __slots__ = ()

    def cancel(self) -> None:
        """Run nothing when the time comes."""
        self[:] = NOTHING

    def cancelled(self) -> bool:
        """Tell whether it was cancelled."""
        return self[0] is NOTHING[0]


class Timer(Handle):
    """A handle that waits in the heap."""

    __slots__ = ("entry", "loop")
    entry: Entry | None
    loop: TimerLoop

    def cancel(self) -> None:
        """Run nothing when the time comes."""
        super().cancel()
        entry, self.entry = self.entry, None
        if entry is not None:
            self.loop.cancel_at(entry)

    def when(self) -> float:
        """Return the instant at which it fires, in seconds."""
        when: float = self.entry[0] if self.entry is not None else self.loop.time()
        return when


class OrderedTask(asyncio.Task[Any]):
    """Hashes by birth order, so that the sets inside TaskGroup and asyncio.wait iterate alike in every run."""

    __slots__ = ("birth",)
    birth: int

    def __hash__(self) -> int:
        return self.birth

    def __eq__(self, other: object) -> bool:
        return self is other


class NullSelector:
    """A selector that holds nothing."""

    def close(self) -> None:
        """BaseEventLoop closes its selector; this one holds nothing."""

    def get_map(self) -> dict[int, object]:
        """Return no registered file."""
        return {}
