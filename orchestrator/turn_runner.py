"""From the door to the last token: fill, ready buffer, staging, decode; and back, when a worker or memory gives out."""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Callable

from orchestrator.clock import Clock
from orchestrator.dispatch import Pool
from orchestrator.errors import ContextOverflow, Evicted, Preempted, RebuildNeeded, WorkerLost
from orchestrator.fifo_semaphore import FifoSemaphore
from orchestrator.ledger import DECODING, FILLING, READY, Ledger, Turn
from orchestrator.ports import Filled, Plant, Staged
from orchestrator.turn import EMPTY_CHAIN, KvRef, new
from orchestrator.worker import Worker
from orchestrator.worker_drainer import WorkerDrainer

NO_PREFIX = KvRef(EMPTY_CHAIN, 0, None)


class TurnRunner:
    """Carry a released turn to its end.

    Parameters
    ----------
    clock : Clock
    ledger : Ledger
    plant : Plant
    handover : WorkerDrainer
        Told of turns whose worker is to change, and finds them another place.
    prefill_pool, midfill_pool, decode_pool : Pool
        A turn with a cached prefix goes to the midfill pool, any other to the prefill pool; where one of the two is
        empty, the other serves both.
    ready : FifoSemaphore or None
        The ready buffer, None where it has no bound; a preempted turn comes back to it even when it is full.
    retries : int
        How often a turn may lose its worker.
    lost : callable
        Told of a turn that lost its worker, and why, before it is filled again.
    finished : callable
        Told of every turn that has ended, however it ended.

    Attributes
    ----------
    over : bool
        Set when the run ends: turns that are cancelled from then on stay in the stage that they are in.
    """

    def __init__(
        self,
        clock: Clock,
        ledger: Ledger,
        plant: Plant,
        handover: WorkerDrainer,
        prefill_pool: Pool,
        midfill_pool: Pool,
        decode_pool: Pool,
        ready: FifoSemaphore | None,
        retries: int,
        lost: Callable[[Turn, str], None],
        finished: Callable[[Turn], None],
    ) -> None:
        self._clock, self._ledger, self._plant = clock, ledger, plant
        self._prefill_pool, self._midfill_pool = prefill_pool, midfill_pool
        self._decode_pool, self._ready = decode_pool, ready
        self._retries, self._lost, self._finished = retries, lost, finished
        self._handover = handover
        self.over = False

    async def travel(self, turn: Turn) -> None:
        """Take one released turn through its life: the body of its coroutine.

        A turn whose worker is lost is filled again, `retries` times at most; one that is sent away without its state
        is filled again whatever it has been through, for nothing has failed.
        """
        again = False
        try:
            while True:
                try:
                    worker, kv = await self._fill(turn, again)
                    await self._decode(turn, worker, kv, again)
                    break
                except (WorkerLost, RebuildNeeded) as error:  # its KV state is gone: fill again from the text
                    if turn.retries >= self._retries:
                        self._ledger.fail(turn, "worker_lost", self._clock.now())
                        break
                    turn.retries += 1
                    again = True
                    self._lost(turn, str(error))
                    self._back_to_fill(turn)
                except Evicted:
                    again = True
                    self._handover.sent(turn, moved=False)
                    self._back_to_fill(turn)
        except asyncio.CancelledError:
            if self.over:  # the run has ended: the turn stays where it is
                raise
            self._ledger.fail(turn, turn.bucket or "cancelled", self._clock.now())
            self._finished(turn)
            raise
        except ContextOverflow:
            self._ledger.fail(turn, "context_overflow", self._clock.now())
        self._finished(turn)

    def withdraw(self, turn: Turn) -> None:
        """Take what the plant does for a turn off it at this instant; the turn's task is to be cancelled."""
        if turn.promise is not None:
            self._plant.withdraw(turn.promise)

    def _back_to_fill(self, turn: Turn) -> None:
        now_s = self._clock.now()
        if turn.stage is DECODING:
            self._ledger.move(turn, READY, now_s)
        if turn.stage is READY:
            self._ledger.move(turn, FILLING, now_s)

    async def _fill(self, turn: Turn, again: bool) -> tuple[Worker | None, KvRef]:
        """Fill on some worker; return the state. An aggregated one is kept: its slot and memory serve the decode."""
        pool = self._fill_pool(turn)
        place = pool.place(turn, again) or pool.line_up(turn, again)
        try:
            worker = place if isinstance(place, Worker) else await place
        except asyncio.CancelledError:
            pool.take_back(turn, place)
            raise
        kept = False
        try:
            turn.fill_worker = worker.id
            if worker.aggregated:
                if not worker.enter_nowait(turn):
                    await worker.enter(turn)
                try:
                    filled = await self._start_fill(turn, worker)
                    kept = True
                finally:
                    if not kept:
                        self._plant.evict(worker.id, turn.turn_id)  # it may have been filled at this very instant
                        worker.exit()
                now_s = self._clock.now()
                self._ledger.first_token(turn, now_s)
            else:
                filled = await self._start_fill(turn, worker)
                now_s = self._clock.now()
                self._ledger.first_token(turn, now_s)
                if self._ready is not None and not self._ready.take_nowait():
                    await self._ready.take()  # a full buffer holds the turn, and so its place at the fill worker
                    now_s = self._clock.now()
        finally:
            if not kept:
                worker.free(turn)
        kv, turn.fill_started_s, turn.cached_tokens = filled
        self._ledger.move(turn, READY, now_s)
        return (worker if kept else None), kv

    def _fill_pool(self, turn: Turn) -> Pool:
        prefill, midfill = self._prefill_pool, self._midfill_pool
        if not midfill.workers:
            return prefill
        if not prefill.workers:
            return midfill
        return midfill if self._plant.cached_tokens(turn.view) > 0 else prefill

    def _start_fill(self, turn: Turn, worker: Worker) -> Future[Filled]:
        view = turn.view
        prefix = NO_PREFIX if view.context is EMPTY_CHAIN else new(KvRef, (view.context, 0, None))
        turn.promise = future = self._plant.fill(worker.id, view, prefix)
        if worker.line:
            worker.serve()
        return future

    async def _decode(self, turn: Turn, held: Worker | None, filled: KvRef, again: bool) -> None:
        """Decode to the end, through any preemptions and moves."""
        view, plant, ledger, pool = turn.view, self._plant, self._ledger, self._decode_pool
        ready = self._ready if held is None else None  # the place in the buffer that the turn holds
        back: Future[Worker] | None = None  # a preempted or moving turn's place at the head of the line
        kv = filled
        left: Worker | None = None  # a worker that drains, and holds the turn's state until it has been moved
        try:
            while True:
                inside = held is not None and left is None
                place = back or held or pool.place(turn, again) or pool.line_up(turn, again)
                try:
                    worker = place if isinstance(place, Worker) else await place
                except asyncio.CancelledError:
                    pool.take_back(turn, place)
                    raise
                held = back = None
                try:
                    turn.decode_worker = worker.id
                    if inside:  # an aggregated worker: the state lies where it was filled
                        staged = new(Staged, (kv, 0.0))
                    else:
                        turn.promise = state = plant.stage(worker.id, kv)
                        staged = await state
                        if left is not None:
                            left.free(turn)
                            left = None
                        if worker.hands_over:  # it began to drain while the state was on its way
                            raise Evicted(staged.kv)
                        if not worker.enter_nowait(turn):
                            await worker.enter(turn)
                        inside = True
                    now_s = self._clock.now()
                    ledger.move(turn, DECODING, now_s)
                    turn.joined_s = now_s  # the plant may say a later instant; the run may end before it does
                    if ready is not None:
                        ready.give()
                        ready = None
                    turn.promise = future = plant.decode(worker.id, view, staged)
                    if worker.line:  # memory is as it is now: the next may be looked at
                        worker.serve()
                    if worker.hands_over:
                        self._handover.ask(turn, worker)
                    turn.joined_s, output_tokens, _ = await future
                    ledger.retire(turn, output_tokens, self._clock.now())
                    return
                except Preempted:
                    ledger.preempt(turn, self._clock.now())
                    kv = NO_PREFIX if worker.aggregated else filled
                    back = pool.line_up(turn, first=True)
                except Evicted as sent:
                    if not worker.hands_over:  # its state is given up
                        raise
                    kv, left = sent.kv or staged.kv, worker
                    held = worker.places.pop(view.turn_id, None) or pool.place(turn, first=True)
                    if held is None:
                        back = pool.line_up(turn, first=True)
                    if turn.stage is DECODING:
                        ledger.move(turn, READY, self._clock.now())
                    self._handover.sent(turn, moved=True)
                finally:
                    if inside:
                        worker.exit()
                    if left is not worker:
                        worker.free(turn)
        finally:
            if left is not None:
                left.free(turn)
            if ready is not None:
                ready.give()
