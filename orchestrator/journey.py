"""From the door to the last token: fill, ready buffer, staging, decode; and back, when a worker or memory gives out."""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Callable

from orchestrator.buffers import Places
from orchestrator.clock import Clock
from orchestrator.dispatch import Pool
from orchestrator.errors import ContextOverflow, Preempted, RebuildNeeded, WorkerLost
from orchestrator.ledger import DECODING, FILLING, READY, Ledger, Turn
from orchestrator.ports import Filled, Plant, Staged
from orchestrator.turn import EMPTY_CHAIN, KvRef, new
from orchestrator.worker import Worker

NO_PREFIX = KvRef(EMPTY_CHAIN, 0, None)


class Journey:
    """Carry a released turn to its end.

    Parameters
    ----------
    clock : Clock
    ledger : Ledger
    plant : Plant
    prefill_pool, midfill_pool, decode_pool : Pool
        A turn with a cached prefix goes to the midfill pool, any other to the prefill pool; where one of the two is
        empty, the other serves both.
    ready : Places or None
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
        prefill_pool: Pool,
        midfill_pool: Pool,
        decode_pool: Pool,
        ready: Places | None,
        retries: int,
        lost: Callable[[Turn, str], None],
        finished: Callable[[Turn], None],
    ) -> None:
        self._clock, self._ledger, self._plant = clock, ledger, plant
        self._prefill_pool, self._midfill_pool = prefill_pool, midfill_pool
        self._decode_pool, self._ready = decode_pool, ready
        self._retries, self._lost, self._finished = retries, lost, finished
        self.over = False

    async def travel(self, turn: Turn) -> None:
        """Take one released turn through its life: the body of its coroutine.

        A turn whose worker is lost is filled again, `retries` times at most.
        """
        again = False
        try:
            while True:
                try:
                    worker, filled = await self._fill(turn)
                    await self._decode(turn, worker, filled, again)
                    break
                except (WorkerLost, RebuildNeeded) as error:  # its KV state is gone: fill again from the text
                    if turn.retries >= self._retries:
                        self._ledger.fail(turn, "worker_lost", self._clock.now())
                        break
                    turn.retries += 1
                    again = True
                    self._lost(turn, str(error))
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

    def _back_to_fill(self, turn: Turn) -> None:
        now_s = self._clock.now()
        if turn.stage is DECODING:
            self._ledger.move(turn, READY, now_s)
        if turn.stage is READY:
            self._ledger.move(turn, FILLING, now_s)

    async def _fill(self, turn: Turn) -> tuple[Worker | None, Filled]:
        """Fill on some worker. An aggregated worker is kept: its slot and memory serve the decode too."""
        pool = self._fill_pool(turn)
        worker = pool.place(turn) or await pool.given(turn, pool.line_up(turn))
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
        turn.fill_started_s, turn.cached_tokens = filled.started_s, filled.cached_tokens
        self._ledger.move(turn, READY, now_s)
        return (worker if kept else None), filled

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
        future = self._plant.fill(worker.id, view, prefix)
        if worker.line:
            worker.serve()
        return future

    async def _decode(self, turn: Turn, held: Worker | None, filled: Filled, again: bool) -> None:
        """Decode to the end, through any preemptions."""
        view, plant, ledger, pool = turn.view, self._plant, self._ledger, self._decode_pool
        ready = self._ready if held is None else None  # the place in the buffer that the turn holds
        back: Future[Worker] | None = None  # a preempted turn's place at the head of the line
        try:
            while True:
                inside = held is not None
                if back is not None:
                    worker = await pool.given(turn, back)
                else:
                    worker = held or pool.place(turn, again) or await pool.given(turn, pool.line_up(turn, again))
                held = None
                try:
                    turn.decode_worker = worker.id
                    if inside:  # an aggregated worker: the state lies where it was filled
                        staged = new(Staged, (filled.kv, 0.0))
                    else:
                        staged = await plant.stage(worker.id, filled.kv)
                        if not worker.enter_nowait(turn):
                            await worker.enter(turn)
                        inside = True
                    now_s = self._clock.now()
                    ledger.move(turn, DECODING, now_s)
                    turn.joined_s = now_s  # the plant may say a later instant; the run may end before it does
                    if ready is not None:
                        ready.give()
                        ready = None
                    future = plant.decode(worker.id, view, staged)
                    if worker.line:  # memory is as it is now: the next may be looked at
                        worker.serve()
                    done = await future
                    turn.joined_s = done.joined_s
                    ledger.retire(turn, done.output_tokens, self._clock.now())
                    return
                except Preempted:
                    ledger.preempt(turn, self._clock.now())
                    back = pool.line_up(turn, first=True)
                finally:
                    if inside:
                        worker.exit()
                    worker.free(turn)
        finally:
            if ready is not None:
                ready.give()
