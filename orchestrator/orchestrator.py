"""The orchestrator: one root task group, one coroutine per turn, one per control loop.

A turn reads as it lives: it is admitted at the door, filled, waits in the ready buffer, is staged into a decode
worker's memory, joins the batch, and is retired. The same code runs on the virtual, the scaled and the real clock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from orchestrator.admission import AdmissionLimits, AdmissionQueue, ClassSpec
from orchestrator.clock import TICK, Clock
from orchestrator.control import Law, Loops
from orchestrator.dispatch import Pool
from orchestrator.fifo_semaphore import FifoSemaphore
from orchestrator.ledger import RETIRED, WAITING, Ledger, Turn
from orchestrator.levels import TimeWeightedLevel
from orchestrator.messages import DECODES, AdmissionCommand, Role, Slot
from orchestrator.ports import Plant, Router, Source, WorkerInfo
from orchestrator.reconfigure import ReconfigureSpec, WorkerLifecycle
from orchestrator.recorder import Recorder, Sink
from orchestrator.rng import stream_key
from orchestrator.telemetry import Sample, Telemetry, TelemetrySpec, take_sample
from orchestrator.turn import ConfigurationName, TurnId, TurnView, WorkerId
from orchestrator.turn_runner import TurnRunner
from orchestrator.turn_tasks import TurnTaskPool
from orchestrator.wiring import loop_specs
from orchestrator.worker import Worker
from orchestrator.worker_drainer import WorkerDrainer

PREFILLS = (Role.PREFILL, Role.FILL, Role.AGGREGATED)
Ended = Literal["horizon", "drained", "stopped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrchestratorSpec:
    """What the orchestrator is made of, apart from its laws, its plant and its workload.

    `ready_capacity_turns` None: no bound. `drain_s`: after the horizon, new turns are refused and those in flight get
    this long to end. `retries`: how often a turn may lose its worker before it fails.
    """

    seed: int
    horizon_s: float
    classes: tuple[ClassSpec, ...]
    door: AdmissionLimits = field(default_factory=AdmissionLimits)
    telemetry: TelemetrySpec = field(default_factory=TelemetrySpec)
    reconfigure: ReconfigureSpec = field(default_factory=ReconfigureSpec)
    ready_capacity_turns: int | None = None
    smoothing_s: float = 0.0
    midnight_s: float = 0.0
    drain_s: float = 0.0
    retries: int = 3
    snapshot_s: float | None = None
    bin_s: float = 0.25
    record_moves: bool = False


class _Over(Exception):
    """Raised inside the root task group to end it."""


class Orchestrator:
    """Run turns from a source through a plant under the given laws.

    Parameters
    ----------
    clock : Clock
    spec : OrchestratorSpec
    plant : Plant
    source : Source
    laws : dict of Slot to Policy
    fill_routers, decode_routers : sequences of Router
        One router per entry; a turn is hashed to one of each.
    sink : Sink
        Where the record goes.
    """

    def __init__(
        self,
        clock: Clock,
        spec: OrchestratorSpec,
        plant: Plant,
        source: Source,
        laws: dict[Slot, Law],
        fill_routers: Sequence[Router],
        decode_routers: Sequence[Router],
        sink: Sink,
    ) -> None:
        self._clock, self.spec, self._plant, self._source = clock, spec, plant, source
        self.ledger = Ledger([c.name for c in spec.classes], stories=spec.record_moves)
        self._slots = TimeWeightedLevel()
        self.recorder = Recorder(clock, self.ledger, self.slots, spec.bin_s, sink, spec.record_moves)
        self._door = AdmissionQueue(
            clock,
            self.ledger,
            list(spec.classes),
            spec.door,
            stream_key(spec.seed, "shed"),
            self._released,
            told="admission" not in laws,
        )
        self._prefillers = Pool(clock, plant, fill_routers, spec.snapshot_s)
        self._midfillers = Pool(clock, plant, fill_routers, spec.snapshot_s)
        self._decoders = Pool(clock, plant, decode_routers, spec.snapshot_s)
        self.handover = WorkerDrainer(clock, plant, self._decoders, self.recorder)
        self._journey = TurnRunner(
            clock,
            self.ledger,
            plant,
            self.handover,
            self._prefillers,
            self._midfillers,
            self._decoders,
            None if spec.ready_capacity_turns is None else FifoSemaphore(clock, spec.ready_capacity_turns),
            spec.retries,
            self._lost,
            self._finish,
        )
        self.telemetry = Telemetry(clock, spec.telemetry, self._sample, stream_key(spec.seed, "telemetry"))
        self.roster = WorkerLifecycle(
            clock, plant, self.recorder, spec.reconfigure, self._drain_worker, self._join, self._spawn
        )
        self.loops = Loops(
            clock, self.telemetry, self.recorder, loop_specs(spec, laws, self._door, plant, self.roster, self._resize)
        )
        self._workers: dict[WorkerId, Worker] = {}
        self._spent_s: dict[str, float] = {}
        self._left_s: dict[WorkerId, float] = {}
        self._turns: dict[TurnId, Turn] = {}
        self._group: asyncio.TaskGroup
        self._carriers: TurnTaskPool
        self._over: asyncio.Future[Ended] | None = None
        self._emptied: asyncio.Future[None] | None = None
        self._accepting = True

    # ------------------------------------------------ the run
    async def run(self) -> Ended:
        """Run until the horizon, or until the source is exhausted and every turn has ended; say which."""
        self._over = self._clock.future()
        ended: Ended = "stopped"
        try:
            async with asyncio.TaskGroup() as group:
                self._group, self._carriers = group, TurnTaskPool(self._clock, self._journey.travel, group)
                self._hear_facts()
                self.telemetry.start()
                self.recorder.start()
                for loop in self.loops.specs:
                    group.create_task(self.loops.run(loop), name=f"loop {loop.slot}")
                self._source.start(self._arrive)
                self._check_drained()
                self._clock.at(self.spec.horizon_s, self._end, "horizon")
                try:
                    ended = await self._over
                    if self.spec.drain_s > 0.0 and ended == "horizon":
                        await self.drain(self._clock.now() + self.spec.drain_s)
                finally:  # also where it is broken off: nobody is let into a group that shuts down
                    self._journey.over = True
                    self._door.set(AdmissionCommand(gate_open=False))
                    for turn in self._turns.values():
                        self._journey.withdraw(turn)
                raise _Over
        except* _Over:
            pass
        self._close()
        return ended

    def _end(self, why: Ended) -> None:
        assert self._over is not None
        if not self._over.done():
            self._over.set_result(why)

    def stop(self) -> None:
        """End the run at this instant; turns in flight stay where they are, and are recorded so."""
        self._end("stopped")

    async def drain(self, deadline_s: float) -> None:
        """Refuse new turns, wait until those here have ended, and cancel what is left at `deadline_s`."""
        self._accepting = False
        self._emptied = self._clock.future()
        if self._turns:
            try:
                async with self._clock.timeout_at(deadline_s):
                    await self._emptied
            except TimeoutError:
                for turn_id in list(self._turns):
                    self.cancel(turn_id, "drain_deadline")
                # What was cancelled ends within this instant, before its ticks.
                await self._clock.sleep_until(self._clock.now(), TICK)

    def _close(self) -> None:
        self.ledger.check()
        for turn in self._turns.values():
            self.recorder.turn(turn)
        self.recorder.finish(self._clock.now())

    def _spawn(self, coroutine: object) -> None:
        self._group.create_task(coroutine)  # type: ignore[arg-type]  # a coroutine, whatever it returns

    # ------------------------------------------------ turns
    def _arrive(self, view: TurnView) -> None:
        if self._journey.over:  # on a real clock, timers of the source may still fire while the tasks end
            return
        turn = self.ledger.arrive(view)
        refusal = self._refusal(turn) if self._door.refuses or not self._accepting else None
        if refusal is None and not self._plant.fits(view):
            refusal = "context_overflow"
        if refusal is not None:
            self.ledger.reject(turn, refusal, self._clock.now())
            self.recorder.event("rejected", self._clock.now(), turn_id=turn.turn_id, bucket=refusal)
            self._finish(turn)
            return
        self._turns[turn.turn_id] = turn
        self._door.enter(turn)
        if self.loops.awaited:
            self.loops.happened("arrival")

    def _refusal(self, turn: Turn) -> str | None:
        return self._door.refusal(turn) if self._accepting else "draining"

    def _released(self, turn: Turn) -> None:
        """The door has let a turn in: its coroutine begins."""
        self._carriers.carry(turn)
        self._source.admitted(turn.turn_id, turn.released_s)

    def cancel(self, turn_id: TurnId, bucket: str = "cancelled") -> bool:
        """Cancel a turn wherever it is; tell whether it was still under way. Its work is withdrawn at this instant."""
        turn = self._turns.get(turn_id)
        if turn is None or turn.bucket:
            return False
        turn.bucket = bucket
        if turn.task is None:  # it waits at the door
            self.ledger.fail(turn, bucket, self._clock.now())
            self._finish(turn)
            return True
        # A task cancelled before its first step never runs: look after the turn once the instant's work is done.
        self._clock.at(self._clock.now(), self._reap, turn, TICK)
        self._journey.withdraw(turn)
        return turn.task.cancel()

    def _reap(self, turn: Turn) -> None:
        if turn.task is not None and turn.task.done():
            self.ledger.fail(turn, turn.bucket, self._clock.now())
            self._finish(turn)

    def _finish(self, turn: Turn) -> None:
        turn_id = turn.turn_id
        self._turns.pop(turn_id, None)
        turn.task = None
        self.recorder.turn(turn)
        retired = turn.stage is RETIRED
        self._source.ended(turn_id, turn.ended_s, "retired" if retired else turn.bucket)
        if self.ledger.levels[WAITING].value:
            self._door.pump()
        if retired and self.loops.awaited:
            self.loops.happened("retirement")
        if not self._turns:
            if self._emptied is not None and not self._emptied.done():
                self._emptied.set_result(None)
            self._check_drained()

    def _check_drained(self) -> None:
        if not self._turns and self._source.exhausted():
            self._end("drained")

    # ------------------------------------------------ workers
    def _lost(self, turn: Turn, why: str) -> None:
        self._hear_facts()
        self.recorder.event("retry", self._clock.now(), turn_id=turn.turn_id, why=why)

    def _hear_facts(self) -> None:
        for fact in self._plant.facts():
            self.recorder.event("fact", fact.at_s, fact=fact.kind, detail=fact.detail)
            if fact.kind == "joined" and fact.info is not None:
                self.roster.joined(fact.info)
            elif fact.kind == "lost" and fact.info is not None:
                self.roster.lost(fact.info.worker)
                self._leave(fact.info)

    def _join(self, info: WorkerInfo) -> None:
        worker = self._workers[info.worker] = Worker(self._clock, self._plant, info)
        # The seconds of a change are paid for too, by the configuration that the worker came to.
        worker.since_s = self._left_s.pop(info.worker, worker.since_s)
        if info.role in PREFILLS:
            self._prefillers.join(worker)
        if info.role is Role.MIDFILL:
            self._midfillers.join(worker)
        if info.role in DECODES:
            self._decoders.join(worker)
        self._count(worker, 1)

    def _leave(self, info: WorkerInfo) -> None:
        worker = self._workers.pop(info.worker, None)
        if worker is not None:
            name = worker.info.configuration
            self._spent_s[name] = self._spent_s.get(name, 0.0) + self._clock.now() - worker.since_s
            self._prefillers.leave(worker)
            self._midfillers.leave(worker)
            self._decoders.leave(worker)
            self._count(worker, -1)

    async def _drain_worker(self, info: WorkerInfo) -> None:
        """Take a worker out of its pools, have its turns leave it, and wait until it has none."""
        worker = self._workers[info.worker]
        left_s = self._clock.now()
        self._leave(info)
        self.handover.empty(worker, self.spec.reconfigure.drain, list(self._turns.values()))
        await worker.emptied()
        self._left_s[info.worker] = left_s

    def _count(self, worker: Worker, sign: int) -> None:
        """Add a worker that came, or take off one that left: never a count of all."""
        info, now_s = worker.info, self._clock.now()
        if info.role in DECODES:
            self._slots.add(sign * (info.slots or 0), now_s)
        if info.role is not Role.IDLE:
            self.recorder.workers.add(sign, now_s)

    def _resize(self, slots: Mapping[ConfigurationName, int]) -> None:
        self._decoders.set_slots(slots)
        self._slots.set(sum(worker.info.slots or 0 for worker in self._decoders.workers), self._clock.now())

    @property
    def plant(self) -> Plant:
        """The plant, as it was given."""
        return self._plant

    def slots(self) -> int:
        """Return the decode slots there are."""
        return int(self._slots.value)

    def worker_seconds(self) -> dict[str, float]:
        """Return the seconds that workers of each configuration have existed, up to now."""
        now_s = self._clock.now()
        spent = dict(self._spent_s)
        for worker in self._workers.values():
            name = worker.info.configuration
            spent[name] = spent.get(name, 0.0) + now_s - worker.since_s
        return spent

    def _sample(self) -> Sample:
        self._hear_facts()
        return take_sample(self._clock.now(), self.ledger, self.slots(), self._door.oldest_s(), self._plant.read())
