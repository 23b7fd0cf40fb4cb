"""The orchestrator: one root task group, one coroutine per turn, one per control loop.

A turn is admitted, filled, waits in the ready buffer, is staged into a decode worker's memory, joins the batch, and is
retired. The same code runs on the virtual, the scaled and the real clock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Literal

from orchestrator.admission import AdmissionLimits, AdmissionQueue, ClassSpec
from orchestrator.clock import TICK, Clock
from orchestrator.control import Law, Loops
from orchestrator.dispatch import Pool
from orchestrator.fifo_semaphore import FifoSemaphore
from orchestrator.ledger import RETIRED, WAITING, Ledger, Turn
from orchestrator.messages import AdmissionCommand, Role, Slot
from orchestrator.ports import Plant, Router, Source
from orchestrator.reconfigure import ReconfigureSpec, WorkerLifecycle
from orchestrator.recorder import Recorder, Sink
from orchestrator.rng import stream_key
from orchestrator.telemetry import Sample, Telemetry, TelemetrySpec, take_sample, with_lines
from orchestrator.turn import TurnId, TurnView
from orchestrator.turn_runner import TurnRunner
from orchestrator.turn_tasks import TurnTaskPool
from orchestrator.wiring import loop_specs
from orchestrator.worker import Worker
from orchestrator.worker_drainer import WorkerDrainer
from orchestrator.worker_registry import WorkerRegistry

Ended = Literal["horizon", "drained", "stopped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrchestratorSpec:
    """What the orchestrator is made of, apart from laws, plant and workload. None: no bound.

    `drain_s`: after the horizon, new turns are refused, and those in flight get this long to end. A turn may lose its
    worker `retries` times, and is quarantined at loss `quarantine_after`.
    """

    seed: int
    horizon_s: float
    classes: tuple[ClassSpec, ...]
    admission: AdmissionLimits = field(default_factory=AdmissionLimits)
    telemetry: TelemetrySpec = field(default_factory=TelemetrySpec)
    reconfigure: ReconfigureSpec = field(default_factory=ReconfigureSpec)
    ready_capacity_turns: int | None = None
    smoothing_s: float = 0.0
    midnight_s: float = 0.0
    drain_s: float = 0.0
    retries: int = 3
    quarantine_after: int | None = None
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
        self._clock, self.spec, self.plant, self._source = clock, spec, plant, source
        self.ledger = Ledger([c.name for c in spec.classes], stories=spec.record_moves)
        self.recorder = Recorder(clock, self.ledger, spec.bin_s, sink, spec.record_moves)
        self._queue = AdmissionQueue(
            clock,
            self.ledger,
            list(spec.classes),
            spec.admission,
            stream_key(spec.seed, "shed"),
            self._released,
            opens_before_first_command="admission" not in laws,
        )
        prefill, midfill = (Pool(clock, plant, fill_routers, spec.snapshot_s) for _ in range(2))
        decode = Pool(clock, plant, decode_routers, spec.snapshot_s)
        pools: dict[Role, tuple[Pool, ...]] = {
            Role.PREFILL: (prefill,),
            Role.FILL: (prefill,),
            Role.MIDFILL: (midfill,),
            Role.DECODE: (decode,),
            Role.AGGREGATED: (prefill, decode),
        }
        self._lines = (prefill.line, (Role.PREFILL, Role.FILL, Role.AGGREGATED)), (midfill.line, (Role.MIDFILL,))
        self.registry = WorkerRegistry(clock, plant, self.recorder, pools)
        self.drainer = WorkerDrainer(clock, plant, decode, self.recorder)
        self._runner = TurnRunner(
            clock,
            self.ledger,
            plant,
            self.drainer,
            prefill,
            midfill,
            decode,
            None if spec.ready_capacity_turns is None else FifoSemaphore(clock, spec.ready_capacity_turns),
            spec.retries,
            spec.quarantine_after,
            self._lost,
            self._finish,
        )
        self.telemetry = Telemetry(clock, spec.telemetry, self._sample, stream_key(spec.seed, "telemetry"))
        self.lifecycle = WorkerLifecycle(
            clock, plant, self.recorder, spec.reconfigure, self.registry, self._empty, self._spawn
        )
        specs = loop_specs(
            laws,
            spec.classes,
            self._queue,
            plant,
            self.lifecycle,
            self.registry.resize,
            smoothing_s=spec.smoothing_s,
            midnight_s=spec.midnight_s,
        )
        self.loops = Loops(clock, self.telemetry, self.recorder, specs)
        self._turns: dict[TurnId, Turn] = {}
        self._group: asyncio.TaskGroup
        self._tasks: TurnTaskPool
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
                self._group, self._tasks = group, TurnTaskPool(self._clock, self._runner.run, group)
                self.registry.update()
                self.plant.listen(self.registry.update)
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
                    self._runner.over = True
                    self._queue.set(AdmissionCommand(gate_open=False))
                    for turn in self._turns.values():
                        self._runner.withdraw(turn)
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

    def _spawn(self, coroutine: Coroutine[None, None, None]) -> None:
        self._group.create_task(coroutine)

    # ------------------------------------------------ turns
    def _arrive(self, view: TurnView) -> None:
        if self._runner.over:  # on a real clock, timers of the source may still fire while the tasks end
            return
        turn = self.ledger.arrive(view)
        refusal = self._refusal(turn) if self._queue.refuses or not self._accepting else None
        if refusal is None and not self.plant.fits(view):
            refusal = "context_overflow"
        if refusal is not None:
            self.ledger.reject(turn, refusal, self._clock.now())
            self.recorder.event("rejected", self._clock.now(), turn_id=turn.turn_id, bucket=refusal)
            self._finish(turn)
            return
        self._turns[turn.turn_id] = turn
        self._queue.enter(turn)
        if self.loops.awaited:
            self.loops.happened("arrival")

    def _refusal(self, turn: Turn) -> str | None:
        return self._queue.refusal(turn) if self._accepting else "draining"

    def _released(self, turn: Turn) -> None:
        """Start the coroutine of a turn that admission has let in."""
        self._tasks.start(turn)
        self._source.admitted(turn.turn_id, turn.released_s)

    def cancel(self, turn_id: TurnId, bucket: str = "cancelled") -> bool:
        """Cancel a turn wherever it is; tell whether it was still under way. Its work is withdrawn at this instant."""
        turn = self._turns.get(turn_id)
        if turn is None or turn.bucket:
            return False
        turn.bucket = bucket
        if turn.task is None:  # it waits for admission
            self.ledger.fail(turn, bucket, self._clock.now())
            self._finish(turn)
            return True
        # A task cancelled before its first step never runs: look after the turn once the instant's work is done.
        self._clock.at(self._clock.now(), self._reap, turn, TICK)
        self._runner.withdraw(turn)
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
            self._queue.pump()
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
        self.recorder.event("retry", self._clock.now(), turn_id=turn.turn_id, why=why)

    def _empty(self, worker: Worker) -> None:
        self.drainer.empty(worker, self.spec.reconfigure.drain, list(self._turns.values()))

    def slots(self) -> int:
        """Return the decode slots there are."""
        return int(self.registry.slots.value)

    def _sample(self) -> Sample:
        plant = with_lines(self.plant.read(), self._lines)
        return take_sample(self._clock.now(), self.ledger, self.slots(), self._queue.oldest_s(), plant)
