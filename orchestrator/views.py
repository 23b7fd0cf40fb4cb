"""Views of a pool for routers: the loads as they are, or as they were at the last snapshot."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence, Sized
from typing import Protocol

from orchestrator.ports import Plant, WorkerView
from orchestrator.rng import GOLDEN, MASK, finalise
from orchestrator.turn import KvChain, TurnView, WorkerId, new
from orchestrator.worker import Worker


class ViewedPool(Protocol):
    """What a view reads of its pool."""

    plant: Plant
    workers: list[Worker]
    by_id: dict[WorkerId, Worker]

    @property
    def line(self) -> Sized:
        """The turns that wait for a worker."""
        ...

    def least_loaded(self) -> Worker | None:
        """Return the open worker with the fewest turns."""
        ...


class View:
    """The pool as it is: the `PoolView` of a router with fresh knowledge."""

    __slots__ = ("_pool",)

    def __init__(self, pool: ViewedPool) -> None:
        self._pool = pool

    def refresh(self) -> None:
        """Nothing to do: this view is always fresh."""

    def joined(self, worker: Worker) -> None:
        """Nothing to note: the pool itself knows who is in it."""

    def given(self, worker: Worker, turn: TurnView) -> None:
        """Nothing to note, so a pool whose views are fresh does not tell: the load itself changes."""

    def load(self, worker: Worker) -> int:
        """Return the turns given to a worker, as this view knows it."""
        return worker.load_turns

    def load_tokens(self, worker: Worker) -> int:
        """Return their prompts' tokens, as this view knows it."""
        return worker.load_tokens

    def sample(self, k: int, key: int) -> Sequence[WorkerId]:
        """Return k workers drawn by counter hash of `key`: splitmix64 that starts there, one hash a draw."""
        workers = self._pool.workers
        size = len(workers)
        if not size:
            return []
        drawn = []
        for _ in range(k):
            key = (key + GOLDEN) & MASK
            drawn.append(workers[(finalise(key) * size) >> 64].id)
        return drawn

    def least_loaded(self) -> WorkerId | None:
        """Return the open worker with the fewest turns."""
        worker = self._pool.least_loaded()
        return None if worker is None else worker.id

    def holding(self, prefix: KvChain) -> Sequence[tuple[WorkerId, int]]:
        """Return this pool's workers near the longest prefix held, longest first."""
        return [(w, tokens) for w, tokens in self._pool.plant.holding(prefix) if w in self._pool.by_id]

    def view(self, worker: WorkerId) -> WorkerView:
        """Return one worker's load."""
        return self._as_view(self._pool.by_id[worker])

    def _as_view(self, worker: Worker) -> WorkerView:
        info = worker.info
        load, tokens = self.load(worker), self.load_tokens(worker)
        return new(WorkerView, (worker.id, info.rack, info.configuration, worker.slots, load, tokens))

    def open(self, worker: WorkerId) -> bool:
        """Tell whether the worker is open, as this view knows it."""
        known = self._pool.by_id.get(worker)
        if known is None or not known.active:
            return False
        return known.room is None or self.load(known) < known.room

    def cost_s(self, worker: WorkerId, turn: TurnView) -> float | None:
        """Return the plant's estimate of fetching or rebuilding the turn's context there."""
        return self._pool.plant.cost_s(worker, turn)

    def waiting(self) -> int:
        """Return how many turns stand in line, those among them that have since been cancelled included."""
        return len(self._pool.line)

    def __len__(self) -> int:
        return len(self._pool.workers)

    def __iter__(self) -> Iterator[WorkerView]:
        return (self._as_view(worker) for worker in self._pool.workers)


class Snapshot(View):
    """The pool as one router last saw it, plus what that router itself gave out since: the stale view that herds.

    Who is in the pool, and who drains, is news that reaches every router at once; loads are not.
    """

    __slots__ = ("_heap", "_loads", "_tokens")

    def __init__(self, pool: ViewedPool) -> None:
        super().__init__(pool)
        self._loads: dict[WorkerId, int] = {}
        self._tokens: dict[WorkerId, int] = {}
        self._heap: list[tuple[int, WorkerId]] = []

    def refresh(self) -> None:
        """Take a new snapshot; local notes are wiped by it."""
        self._loads = {worker.id: worker.load_turns for worker in self._pool.workers}
        self._tokens = {worker.id: worker.load_tokens for worker in self._pool.workers}
        self._heap = [(load, worker_id) for worker_id, load in self._loads.items()]
        heapq.heapify(self._heap)

    def joined(self, worker: Worker) -> None:
        """Take in a worker that is new; what it holds at that instant is known."""
        self._loads[worker.id], self._tokens[worker.id] = worker.load_turns, worker.load_tokens
        heapq.heappush(self._heap, (worker.load_turns, worker.id))

    def given(self, worker: Worker, turn: TurnView) -> None:
        """Note locally that this router gave the worker a turn."""
        self._loads[worker.id] = load = self.load(worker) + 1
        self._tokens[worker.id] = self.load_tokens(worker) + turn.prompt_tokens
        heapq.heappush(self._heap, (load, worker.id))

    def load(self, worker: Worker) -> int:
        """Return the load at the snapshot, plus this router's own turns since."""
        return self._loads.get(worker.id, 0)

    def load_tokens(self, worker: Worker) -> int:
        """Return the tokens at the snapshot, plus those of this router's own turns since."""
        return self._tokens.get(worker.id, 0)

    def least_loaded(self) -> WorkerId | None:
        """Return the worker with the fewest turns as last seen."""
        heap = self._heap
        while heap:
            load, worker_id = heap[0]
            if self._loads.get(worker_id) == load and self.open(worker_id):
                return worker_id
            heapq.heappop(heap)
        return None
