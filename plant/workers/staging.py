"""The staging buffer of a decode worker: KV state that comes in while its turn waits for a slot (double buffering).

The orchestrator limits how many turns are staged ahead of a free slot, by the worker's `staging_turns`. The buffer is
apart from the memory of the batch.
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
    """KV state of an evicted turn: its only copy is in the memory of its worker, and is lost when that `epoch` ends."""

    epoch: int


def bind_to_epoch(kv: KvRef, epoch: int) -> EvictedKv:
    """Return the same KV state, as one that exists only in this epoch of its worker."""
    evicted = new(EvictedKv, kv)
    evicted.epoch = epoch
    return evicted


class KvTransfer:
    """One context on its way to a staging buffer. `source_lost` returns whether its worker has been lost meanwhile.

    It, its Future and its `Transfer` refer to one another while it is under way, and no longer, so that no cycle of
    references is left.
    """

    __slots__ = ("_buffer", "_staged", "future", "source_lost", "transfer")

    def __init__(self, buffer: StagingBuffer, future: asyncio.Future[Staged], staged: Staged) -> None:
        self._buffer, self.future, self._staged = buffer, future, staged
        self.transfer: Transfer | None = None
        self.source_lost: Callable[[], bool] | None = None

    def arrived(self, _: Transfer) -> None:
        """Complete the Future, unless the source was lost on the way."""
        self._detach()
        if self.source_lost is not None and self.source_lost():
            self.fail(WorkerLost("the worker that held the state was lost while it was moved"))
        else:
            del self._buffer.pending_work[self.future]
            self.future.set_result(self._staged)

    def fail(self, error: Exception) -> None:
        """Fail the Future: the state will not come."""
        del self._buffer.pending_work[self.future]
        self.future.set_exception(error)

    def withdraw(self) -> None:
        """Stop the transfer: nobody waits for it any more."""
        transfer = self.transfer
        self._detach()
        if transfer is not None:
            transfer.cancel()

    def _detach(self) -> None:
        self._buffer.remove(self)
        self.transfer = None


class StagingBuffer:
    """The transfers under way to one worker.

    Parameters
    ----------
    pending_work : PendingWork
        Shared with the other parts of the plant.
    """

    __slots__ = ("_under_way", "pending_work")

    def __init__(self, pending_work: PendingWork) -> None:
        self.pending_work = pending_work
        self._under_way: dict[KvTransfer, None] = {}

    def begin(self, future: asyncio.Future[Staged], staged: Staged) -> KvTransfer:
        """Add a transfer that is about to begin."""
        kv_transfer = self.pending_work[future] = KvTransfer(self, future, staged)
        self._under_way[kv_transfer] = None
        return kv_transfer

    def remove(self, kv_transfer: KvTransfer) -> None:
        """Remove a transfer that has ended."""
        del self._under_way[kv_transfer]

    def close(self) -> list[KvTransfer]:
        """Stop all transfers; return them."""
        kv_transfers = list(self._under_way)
        self._under_way.clear()
        for kv_transfer in kv_transfers:
            if kv_transfer.transfer is not None:
                kv_transfer.transfer.cancel()
        return kv_transfers

    def __len__(self) -> int:
        return len(self._under_way)
