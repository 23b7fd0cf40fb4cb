"""A turn from its release to its last token: fill, ready buffer, staging, decode; and back after a loss or preemption.

The stages are the ledger's. What a turn holds at workers and in the buffer as it decodes is one object, `DecodeHold`,
so that every way out gives it back.
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Callable

from orchestrator.clock import Clock
from orchestrator.decode_hold import DecodeHold
from orchestrator.dispatch import Pool
from orchestrator.errors import ContextOverflow, Evicted, Preempted, RebuildNeeded, WorkerLost
from orchestrator.fifo_semaphore import FifoSemaphore
from orchestrator.ledger import DECODING, FILLING, READY, Ledger, Turn
from orchestrator.ports import Filled, Plant, Retired, Staged
from orchestrator.turn import EMPTY_CHAIN, KvRef, new
from orchestrator.worker import Worker
from orchestrator.worker_drainer import WorkerDrainer

NO_PREFIX = KvRef(EMPTY_CHAIN, 0, None)


class TurnRunner:
    """Runs released turns to their end.

    Parameters
    ----------
    clock : Clock
    ledger : Ledger
    plant : Plant
    drainer : WorkerDrainer
        Finds another place for turns whose worker is to change.
    prefill_pool, midfill_pool, decode_pool : Pool
        A turn with a cached prefix goes to the midfill pool, any other to the prefill pool; where one of the two is
        empty, the other serves both.
    ready : FifoSemaphore or None
        The ready buffer, None where it has no bound; a preempted turn comes back to it even when it is full.
    retries : int
        How often a turn may lose its worker.
    quarantine_after : int or None
        After so many losses it is suspected of causing them, and fails as `quarantined`.
    lost : callable
        Called with a turn that lost its worker, and why, before it is filled again.
    finished : callable
        Called with every turn that has ended, however it ended.

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
        drainer: WorkerDrainer,
        prefill_pool: Pool,
        midfill_pool: Pool,
        decode_pool: Pool,
        ready: FifoSemaphore | None,
        retries: int,
        quarantine_after: int | None,
        lost: Callable[[Turn, str], None],
        finished: Callable[[Turn], None],
    ) -> None:
        self._clock, self._ledger, self._plant = clock, ledger, plant
        self._prefill_pool, self._midfill_pool = prefill_pool, midfill_pool
        self._decode_pool, self._ready = decode_pool, ready
        self._retries, self._lost, self._finished = retries, lost, finished
        self._quarantine_after = quarantine_after
        self._drainer = drainer
        self.over = False

    async def run(self, turn: Turn) -> None:
        """Run one released turn to its end: the body of its coroutine.

        A turn whose worker is lost is filled again, `retries` times at most; one that is sent away without its state
        is filled again whatever it has been through, for nothing has failed.
        """
        returning = False
        try:
            while True:
                try:
                    worker, kv = await self._fill(turn, returning)
                    await self._decode(turn, worker, kv, returning)
                    break
                except (WorkerLost, RebuildNeeded) as error:  # its KV state is gone: fill again from the text
                    turn.losses += isinstance(error, WorkerLost)
                    if self._quarantine_after is not None and turn.losses >= self._quarantine_after:
                        self._ledger.fail(turn, "quarantined", self._clock.now())
                        break
                    if turn.retries >= self._retries:
                        self._ledger.fail(turn, "worker_lost", self._clock.now())
                        break
                    turn.retries += 1
                    returning = True
                    self._lost(turn, str(error))
                    self._back_to_fill(turn)
                except Evicted:
                    returning = True
                    self._drainer.sent(turn, moved=False)
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
        if turn.plant_future is not None:
            self._plant.withdraw(turn.plant_future)

    def _back_to_fill(self, turn: Turn) -> None:
        now_s = self._clock.now()
        if turn.stage is DECODING:
            self._ledger.move(turn, READY, now_s)
        if turn.stage is READY:
            self._ledger.move(turn, FILLING, now_s)

    async def _fill(self, turn: Turn, returning: bool) -> tuple[Worker | None, KvRef]:
        """Fill on some worker; return the state. An aggregated one is kept: its slot and memory serve the decode."""
        pool = self._fill_pool(turn)
        place = pool.place(turn, returning) or pool.line_up(turn, returning)
        worker = place if isinstance(place, Worker) else await self._granted(pool, turn, place)
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
        turn.plant_future = future = self._plant.fill(worker.id, view, prefix)
        if worker.line:
            worker.serve()
        return future

    # ------------------------------------------------ decode
    async def _decode(self, turn: Turn, filler: Worker | None, filled: KvRef, returning: bool) -> None:
        """Decode to the end, through any preemptions and moves; `filler`: the aggregated worker that still holds it."""
        pool = self._decode_pool
        hold = DecodeHold(turn, filled, filler, self._ready if filler is None else None)
        place = filler or pool.place(turn, returning) or pool.line_up(turn, returning)
        try:
            while True:
                worker = place if isinstance(place, Worker) else await self._granted(pool, turn, place)
                hold.worker = worker
                turn.decode_worker = worker.id
                try:
                    if not hold.in_slot:
                        await self._enter(turn, worker, hold)
                    turn.joined_s, output_tokens, _ = await self._join_batch(turn, worker, hold)
                    self._ledger.retire(turn, output_tokens, self._clock.now())
                    return
                except Preempted:
                    self._ledger.preempt(turn, self._clock.now())
                    hold.staged = new(Staged, (NO_PREFIX if worker.aggregated else filled, 0.0))
                    place = pool.line_up(turn, first=True)  # at its head, before the slot is given away
                    hold.leave_worker()
                except Evicted as eviction:
                    if not worker.hands_over:  # its state is given up
                        raise
                    if eviction.kv is not None:
                        hold.staged = new(Staged, (eviction.kv, 0.0))
                    granted = worker.places.pop(turn.turn_id, None)
                    place = granted or pool.place(turn, first=True) or pool.line_up(turn, first=True)
                    if turn.stage is DECODING:
                        self._ledger.move(turn, READY, self._clock.now())
                    self._drainer.sent(turn, moved=True)
                    hold.leave_state_behind()
        finally:
            hold.release()

    async def _granted(self, pool: Pool, turn: Turn, place: Future[Worker]) -> Worker:
        """Wait in line for a worker; one granted at the instant of a cancellation is freed."""
        try:
            return await place
        except asyncio.CancelledError:
            pool.take_back(turn, place)
            raise

    async def _enter(self, turn: Turn, worker: Worker, hold: DecodeHold) -> None:
        """Bring the state to the worker, then take a slot there."""
        turn.plant_future = state = self._plant.stage(worker.id, hold.staged.kv)
        hold.staged = await state
        hold.leave_source()
        if worker.hands_over:  # it began to drain while the state was on its way
            raise Evicted(hold.staged.kv)
        if not worker.enter_nowait(turn):
            await worker.enter(turn)
        hold.in_slot = True

    def _join_batch(self, turn: Turn, worker: Worker, hold: DecodeHold) -> Future[Retired]:
        """Begin to decode in the slot that the turn has: it needs its place in the ready buffer no more."""
        now_s = self._clock.now()
        self._ledger.move(turn, DECODING, now_s)
        turn.joined_s = now_s  # the plant may say a later instant; the run may end before it does
        if hold.buffer is not None:
            hold.leave_buffer()
        turn.plant_future = future = self._plant.decode(worker.id, turn.view, hold.staged)
        if worker.line:  # memory is as it is now: the next may be looked at
            worker.serve()
        if worker.hands_over:
            self._drainer.ask(turn, worker)
        return future
