"""What a turn holds between its fill and its end, as one object that gives everything back on every way out."""

from __future__ import annotations

from orchestrator.fifo_semaphore import FifoSemaphore
from orchestrator.ledger import Turn
from orchestrator.ports import Staged
from orchestrator.turn import KvRef, new
from orchestrator.worker import Worker


class DecodeHold:
    """What one turn holds; each is given back once.

    Attributes
    ----------
    staged : Staged
        Its state, where it lies now.
    worker : Worker or None
        The worker that it is given to.
    in_slot : bool
        Whether it has a slot there, and not only its place.
    source : Worker or None
        A worker that drains, and keeps the turn's state until it has been moved to `worker`.
    buffer : FifoSemaphore or None
        The ready buffer, while the turn has a place in it.
    """

    __slots__ = ("buffer", "in_slot", "source", "staged", "turn", "worker")

    def __init__(self, turn: Turn, kv: KvRef, worker: Worker | None, buffer: FifoSemaphore | None) -> None:
        self.turn, self.staged, self.worker, self.buffer = turn, new(Staged, (kv, 0.0)), worker, buffer
        self.in_slot = worker is not None
        self.source: Worker | None = None

    def leave_worker(self) -> None:
        """Give up slot and place at the worker."""
        worker = self.worker
        if worker is not None:
            self.worker = None
            if self.in_slot:
                self.in_slot = False
                worker.exit()
            worker.free(self.turn)

    def leave_state_behind(self) -> None:
        """Give up the slot, but keep the place until the state has been moved away."""
        if self.in_slot and self.worker is not None:
            self.worker.exit()
        self.in_slot = False
        self.leave_source()
        self.source, self.worker = self.worker, None

    def leave_source(self) -> None:
        """Give up the place where the state lay: it has been moved."""
        source = self.source
        if source is not None:
            self.source = None
            source.free(self.turn)

    def leave_buffer(self) -> None:
        """Give up the place in the ready buffer."""
        buffer = self.buffer
        if buffer is not None:
            self.buffer = None
            buffer.give()

    def release(self) -> None:
        """Give up whatever is still held."""
        self.leave_worker()
        if self.source is not None:
            self.leave_source()
        if self.buffer is not None:
            self.leave_buffer()
