"""Poisoned turns: each kills the worker that decodes it, at every attempt (a request that crashes its engine)."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.clock import Clock
from orchestrator.rng import mix, uniform
from orchestrator.turn import TurnView, WorkerId
from plant.fault_schedule import FaultSchedule
from plant.faults import FaultSpec, PoisonSpec


class Poison:
    """Watches what begins to decode.

    Parameters
    ----------
    clock : Clock
    schedule : FaultSchedule
        Through it workers are lost and come back.
    specs : sequence of PoisonSpec
    stream : int
        Key of the random stream of who is poisoned.
    """

    def __init__(self, clock: Clock, schedule: FaultSchedule, specs: Sequence[PoisonSpec], stream: int) -> None:
        self._clock, self._schedule, self._specs, self._stream = clock, schedule, specs, stream
        self.kills = 0

    def decodes(self, worker: WorkerId, turn: TurnView, epoch: int) -> None:
        """Note that a turn begins to decode; a poisoned one ends its worker's epoch."""
        now_s = self._clock.now()
        for number, spec in enumerate(self._specs):
            key = mix(turn.session_id, turn.ordinal)  # the same at every attempt
            if spec.at_s <= now_s < spec.until_s and uniform(self._stream, key, number) < spec.share:
                self._clock.at(now_s + spec.after_s, self._kill, (worker, epoch, spec))

    def _kill(self, what: tuple[WorkerId, int, PoisonSpec]) -> None:
        worker, epoch, spec = what
        if self._schedule.epoch(worker) == epoch:
            now_s = self._clock.now()
            self.kills += 1
            self._schedule.strike(FaultSpec(kind="lost", at_s=now_s, until_s=now_s + spec.back_s, worker=worker))
