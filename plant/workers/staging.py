"""The staging dock of a decode worker: KV state that comes in while its turn waits for a slot (double buffering).

How many come ahead of a free slot is the orchestrator's to keep, by the worker's `staging_turns`. Staged contexts lie
in the dock's own buffer, apart from the batch's memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from orchestrator.errors import WorkerLost
from orchestrator.ports import Staged
from orchestrator.turn import KvRef, new
from plant.links.transfer import Transfer
from plant.pending_work import PendingWork


class EvictedKv(KvRef):
    """State of a turn that was sent away; it lies in the memory of a worker of this `epoch`, and goes with it."""

    epoch: int


def left_kv(kv: KvRef, epoch: int) -> EvictedKv:
    """Return the same state, bound to the epoch of its worker."""
    left = new(EvictedKv, kv)
    left.epoch = epoch
    return left


class KvTransfer:
    """One context on its way to a dock. `gone` tells whether what it comes from has been lost meanwhile.

    A shipment, its promise and its transfer know one another until it is struck off; then they part, so that no cycle
    of references outlives it.
    """

    __slots__ = ("_dock", "_staged", "gone", "transfer", "work")

    def __init__(self, dock: StagingBuffer, work: asyncio.Future[Staged], staged: Staged) -> None:
        self._dock, self.work, self._staged = dock, work, staged
        self.transfer: Transfer | None = None
        self.gone: Callable[[], bool] | None = None

    def arrived(self, _: Transfer) -> None:
        """The last byte is there, unless the source was cut off on the way."""
        self._part()
        if self.gone is not None and self.gone():
            self.fail(WorkerLost("the worker that held the state was lost while it was moved"))
        else:
            del self._dock.promises[self.work]
            self.work.set_result(self._staged)

    def fail(self, error: Exception) -> None:
        """Break the promise: the state will not come."""
        del self._dock.promises[self.work]
        self.work.set_exception(error)

    def withdraw(self) -> None:
        """Stop: the promise was taken back."""
        transfer = self.transfer
        self._part()
        if transfer is not None:
            transfer.cancel()

    def _part(self) -> None:
        self._dock.forget(self)
        self.transfer = None


class StagingBuffer:
    """The transfers under way to one worker.

    Parameters
    ----------
    promises : PendingWork
        The plant's.
    """

    __slots__ = ("_moving", "promises")

    def __init__(self, promises: PendingWork) -> None:
        self.promises = promises
        self._moving: dict[KvTransfer, None] = {}

    def expect(self, work: asyncio.Future[Staged], staged: Staged) -> KvTransfer:
        """Note a context that is about to be sent."""
        shipment = self.promises[work] = KvTransfer(self, work, staged)
        self._moving[shipment] = None
        return shipment

    def forget(self, shipment: KvTransfer) -> None:
        """Strike a shipment off."""
        del self._moving[shipment]

    def close(self) -> list[KvTransfer]:
        """Stop all transfers; return them."""
        shipments = list(self._moving)
        self._moving.clear()
        for shipment in shipments:
            if shipment.transfer is not None:
                shipment.transfer.cancel()
        return shipments

    def __len__(self) -> int:
        return len(self._moving)
