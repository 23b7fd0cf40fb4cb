"""Dispatch of turns to workers: pools of workers, and the line of turns that wait for one.

A `Pool` knows the workers that serve one purpose (fill, or decode) and how many turns each has been given. A turn
that finds no open worker waits in line; a worker that frees up serves the head of the line. No decision and no change
of load does work for every worker.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Sequence

from orchestrator.clock import TICK, Clock
from orchestrator.ledger import Turn
from orchestrator.ports import Plant, Router
from orchestrator.turn import TurnView, WorkerId
from orchestrator.views import Snapshot, View
from orchestrator.worker import Worker

HEAP_FLOOR = 64
# How far down the line turns are looked at, where one that cannot be placed says nothing of the next.
LOOK_AHEAD = 16


class Pool:
    """Workers for one purpose, with their line of waiting turns.

    The line is served first come first served: where the head cannot be placed, the pool is full for all. It is not
    where a router is `selective` about turns (a class of contexts has workers of its own), nor where several routers
    each see the pool by their own old view: there up to `LOOK_AHEAD` turns are tried, so that one which waits for its
    own workers does not strand all others. The head is tried first at every change, and so is not passed for ever.

    Parameters
    ----------
    clock : Clock
    plant : Plant
    routers : sequence of Router, >= 1
        A turn is hashed to one of them by its key.
    snapshot_s : float or None
        Each router sees loads as they were at its last snapshot, plus what it gave out since; None: as they are.
    """

    def __init__(self, clock: Clock, plant: Plant, routers: Sequence[Router], snapshot_s: float | None = None) -> None:
        self.clock, self.plant = clock, plant
        self.workers: list[Worker] = []
        self.by_id: dict[WorkerId, Worker] = {}
        self._routers = list(routers)
        self._stale = snapshot_s is not None
        self._views = [View(self) if snapshot_s is None else Snapshot(self) for _ in routers]
        self.line: deque[tuple[Turn, asyncio.Future[Worker]]] = deque()
        self._position: dict[WorkerId, int] = {}
        self.heap: list[tuple[int, WorkerId]] | None = None  # by load; None: nobody has asked of late
        self.sole: Worker | None = None
        selective = any(getattr(router, "selective", False) for router in routers)
        self._looks = LOOK_AHEAD if selective or (snapshot_s is not None and len(routers) > 1) else 1
        if snapshot_s is not None:
            for number, view in enumerate(self._views):
                view.refresh()
                clock.at(snapshot_s * (1.0 + number / len(routers)), self._refresh, (view, snapshot_s), TICK)

    def _refresh(self, what: tuple[View, float]) -> None:
        view, period_s = what
        view.refresh()
        self.clock.at(self.clock.now() + period_s, self._refresh, what, TICK)
        self.serve()

    # ------------------------------------------------ who is in the pool
    def join(self, worker: Worker) -> None:
        """Add a worker, which may be in another pool too."""
        worker_id = worker.id
        self._position[worker_id] = len(self.workers)
        self.workers.append(worker)
        self.by_id[worker_id] = worker
        worker.pools.append(self)
        for view in self._views:
            view.joined(worker)
        if len(self.workers) > 2:
            self.changed(worker)
        else:
            self._settle()
        self.serve()

    def leave(self, worker: Worker) -> None:
        """Remove a worker; turns that it still has come back through their own Futures."""
        worker_id = worker.id
        if self.by_id.pop(worker_id, None) is None:
            return
        position, last = self._position.pop(worker_id), self.workers.pop()
        if last is not worker:
            self.workers[position] = last
            self._position[last.info.worker] = position
        self._settle()

    def _settle(self) -> None:
        self.sole = self.workers[0] if len(self.workers) == 1 else None
        self.heap = None

    def changed(self, worker: Worker) -> None:
        """Note that a worker's load has fallen, or its slots changed; no note is needed while `heap` is None."""
        heap = self.heap
        if heap is not None:
            if len(heap) > 4 * len(self.workers) + HEAP_FLOOR:
                self.heap = None
            else:
                heapq.heappush(heap, (worker.load_turns, worker.id))

    # ------------------------------------------------ giving turns to workers
    def place(self, turn: Turn, first: bool = False) -> Worker | None:
        """Give the turn to a worker that takes it now.

        Nobody passes those who stand in line, save a returning turn, and where those few who wait cannot be placed.
        """
        if self.line and not first and len(self.line) >= self._looks:
            return None
        worker = self._choose(turn.view)
        if worker is not None:
            worker.give(turn)
        return worker

    def line_up(self, turn: Turn, first: bool = False) -> asyncio.Future[Worker]:
        """Put the turn at the end of the line; a returning turn (`first`) at its head.

        A returning turn does so before the place that it leaves is given away.
        """
        waiter: asyncio.Future[Worker] = self.clock.future()
        if first:
            self.line.appendleft((turn, waiter))
        else:
            self.line.append((turn, waiter))
        return waiter

    def take_back(self, turn: Turn, place: asyncio.Future[Worker]) -> None:
        """Free the worker that a turn was given in line at the very instant of its cancellation, if it was."""
        if place.done() and not place.cancelled():
            place.result().free(turn)

    def _choose(self, turn: TurnView) -> Worker | None:
        sole = self.sole
        if sole is not None:
            return sole if sole.open() else None
        routers = len(self._routers)
        number = turn.key % routers if routers > 1 else 0
        view = self._views[number]
        chosen = self._routers[number].choose(turn, view)
        if chosen is None:
            return None
        worker = self.by_id.get(chosen)
        if worker is None or not worker.open():  # a stale view may name a full worker: the turn waits its turn
            return None
        if self._stale:
            view.given(worker, turn)
        return worker

    def serve(self) -> None:
        """Give the head of the line to a worker while one takes it; see the class for who else is looked at."""
        line, refused = self.line, 0
        while refused < len(line):
            turn, waiter = line[refused]
            if waiter.done():
                del line[refused]
                continue
            worker = self._choose(turn.view)
            if worker is None:
                refused += 1
                if refused >= self._looks:
                    return
                continue
            del line[refused]
            worker.give(turn)
            waiter.set_result(worker)

    def waiting(self) -> int:
        """Return how many turns stand in line."""
        return sum(not waiter.done() for _, waiter in self.line)

    def least_loaded(self) -> Worker | None:
        """Return the open worker with the fewest turns.

        Every worker has an entry of its load or less: a fall is noted, a rise is found out when the entry surfaces.
        Other stale entries are dropped then, and so are full workers: `free` puts them back.
        """
        heap = self.heap
        if heap is None:
            heap = self.heap = [(worker.load_turns, worker.id) for worker in self.workers]
            heapq.heapify(heap)
        while heap:
            load, worker_id = heap[0]
            worker = self.by_id.get(worker_id)
            if worker is not None and worker.load_turns > load:
                heapq.heapreplace(heap, (worker.load_turns, worker_id))
            elif worker is None or worker.load_turns < load or not worker.open():
                heapq.heappop(heap)
            else:
                return worker
        return None
