"""Emptying a worker that is to change its configuration, by one of three policies; no turn is lost by any of them.

    wait      turns stay to their end: nothing is moved or computed twice, and the longest answer sets the time
    migrate   a turn that decodes asks for a place at another worker and goes on here until it has one; then it leaves
              at the end of its step, and its state crosses the links. A fill that waits goes to another worker, a
              fill under way ends here. Where no other worker has room, this is `wait`.
              (As in Sun et al., Llumnix, OSDI 2024, save that a turn stands still while its state moves.)
    retry     everything leaves at once and is filled again: the worker is free, and state is computed twice

A turn keeps the tokens that it has generated in all three: they are text, and only their state is computed again.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Iterable
from functools import partial
from typing import Literal

from orchestrator.clock import Clock
from orchestrator.dispatch import Pool
from orchestrator.ledger import DECODING, FILLING, Turn
from orchestrator.ports import Plant
from orchestrator.recorder import Recorder
from orchestrator.worker import Worker

Drain = Literal["wait", "migrate", "retry"]


class WorkerDrainer:
    """Turns on their way out of workers that drain.

    Parameters
    ----------
    clock : Clock
    plant : Plant
    decode_pool : Pool
        Where turns that decode look for another place, ahead of turns that have none yet.
    recorder : Recorder

    Attributes
    ----------
    moved_turns, refilled_turns : int
        Turns that went on elsewhere with their state, and without it.
    """

    def __init__(self, clock: Clock, plant: Plant, decode_pool: Pool, recorder: Recorder) -> None:
        self._clock, self._plant, self._pool, self._recorder = clock, plant, decode_pool, recorder
        self.moved_turns = self.refilled_turns = 0

    def empty(self, worker: Worker, drain: Drain, turns: Iterable[Turn]) -> None:
        """Have a worker's turns leave it as `drain` says; `turns`: all those under way. It is in no pool any more."""
        if drain == "wait":
            return
        if drain == "retry":
            worker.send_away()
            self._plant.evict(worker.id, None)
            return
        worker.hands_over = True
        worker.send_away()
        for turn in turns:
            if turn.stage is DECODING and turn.decode_worker == worker.id:
                self.ask(turn, worker)
            elif turn.stage is FILLING and turn.fill_worker == worker.id:
                self._plant.evict(worker.id, turn.view.turn_id)

    def sent(self, turn: Turn, *, moved: bool) -> None:
        """Note that a turn has left its worker, with its state (`moved`) or without."""
        self.moved_turns += moved
        self.refilled_turns += not moved
        how = "moved" if moved else "refilled"
        self._recorder.event("sent_on", self._clock.now(), turn_id=turn.view.turn_id, how=how)

    def ask(self, turn: Turn, source: Worker) -> None:
        """Find a place elsewhere for a turn that decodes, now or as soon as there is one."""
        place = self._pool.place(turn, first=True)
        if place is not None:
            self._go(turn, source, place)
            return
        waiter = self._pool.line_up(turn, first=True)
        source.asking[turn.view.turn_id] = waiter
        waiter.add_done_callback(partial(self._granted, turn, source))

    def _granted(self, turn: Turn, source: Worker, waiter: Future[Worker]) -> None:
        if waiter.cancelled():
            return
        if source.asking.pop(turn.view.turn_id, None) is None:  # it has left of itself in the meantime
            waiter.result().free(turn)
        else:
            self._go(turn, source, waiter.result())

    def _go(self, turn: Turn, source: Worker, place: Worker) -> None:
        source.places[turn.view.turn_id] = place
        self._plant.evict(source.id, turn.view.turn_id)
