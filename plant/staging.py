"""The staging dock of a decode worker: KV state that comes in while its turn waits for a slot (double buffering).

At most `slots + staging_turns` turns are at the worker, on their way or in its batch; further transfers wait in line.
Staged contexts lie in the dock's own buffer, apart from the batch's memory.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from orchestrator.clock import TICK, Clock
from orchestrator.ports import Staged
from orchestrator.turn import KvRef
from plant.links import SharedLink, Transfer


class Shipment:
    """One context on its way to a dock."""

    __slots__ = ("alone_s", "dock", "future", "kv", "latency_s", "path", "size_bytes", "transfer")

    def __init__(
        self,
        future: asyncio.Future[Any],  # Any: Staged, in a Future of the clock's loop
        kv: KvRef,
        size_bytes: float,
        path: Sequence[SharedLink],
        latency_s: float,
        alone_s: float,
    ) -> None:
        self.future, self.kv, self.size_bytes = future, kv, size_bytes
        self.path, self.latency_s, self.alone_s = path, latency_s, alone_s
        self.transfer: Transfer | None = None
        self.dock: Dock | None = None

    def settled(self, future: asyncio.Future[Any]) -> None:
        """Stop moving bytes if the Future was cancelled."""
        if future.cancelled() and self.dock is not None:
            self.dock.withdraw(self)


class Dock:
    """The transfers towards one worker.

    Parameters
    ----------
    clock : Clock
    places : int or None
        Most turns on their way or at the worker; None: no bound.
    load : callable
        How many turns the worker holds now.
    """

    __slots__ = ("_clock", "_load", "_moving", "_places", "inbound_tokens", "lined_up")

    def __init__(self, clock: Clock, places: int | None, load: Callable[[], int]) -> None:
        self._clock, self._places, self._load = clock, places, load
        self._moving: dict[Shipment, None] = {}
        self.lined_up: deque[Shipment] = deque()
        self.inbound_tokens = 0

    def bring(self, shipment: Shipment) -> None:
        """Start the transfer, or line it up until there is a place."""
        shipment.dock = self
        shipment.future.add_done_callback(shipment.settled)
        self.inbound_tokens += shipment.kv.tokens
        self.lined_up.append(shipment)
        self.pump()

    def pump(self, _: object = None) -> None:
        """Start waiting transfers while there are places."""
        waiting = self.lined_up
        while waiting and (self._places is None or len(self._moving) + self._load() < self._places):
            shipment = waiting.popleft()
            self._moving[shipment] = None
            shipment.transfer = Transfer(
                self._clock,
                shipment.path,
                shipment.size_bytes,
                shipment.latency_s,
                shipment.alone_s,
                partial(self._arrived, shipment),
            )

    def withdraw(self, shipment: Shipment) -> None:
        """Forget a shipment; its share of the links is free at once."""
        self._forget(shipment)
        self.pump()

    def close(self) -> list[Shipment]:
        """Stop all transfers; return them."""
        shipments = [*self._moving, *self.lined_up]
        for shipment in shipments:
            self._forget(shipment)
        return shipments

    def __len__(self) -> int:
        return len(self._moving) + len(self.lined_up)

    def _forget(self, shipment: Shipment) -> None:
        shipment.dock = None
        self.inbound_tokens -= shipment.kv.tokens
        if shipment in self._moving:
            del self._moving[shipment]
            if shipment.transfer is not None:
                shipment.transfer.cancel()
        else:
            self.lined_up.remove(shipment)

    def _arrived(self, shipment: Shipment, _: Transfer) -> None:
        shipment.dock = None
        del self._moving[shipment]
        self.inbound_tokens -= shipment.kv.tokens
        if not shipment.future.done():
            shipment.future.set_result(Staged(shipment.kv, shipment.size_bytes))
        if self.lined_up:  # after the turn has had the chance to enter the worker, at this same instant
            self._clock.at(self._clock.now(), self.pump, None, TICK)
