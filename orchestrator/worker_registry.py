"""The workers there are: the one place where the plant's announcements become workers in pools, and slots to count.

The plant announces by facts. `joined` puts a worker to work, be it new, back after a loss, or in another configuration;
`lost` takes it out. Nothing else adds a worker, and its slots are those that the plant has stated.
"""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.clock import Clock
from orchestrator.dispatch import Pool
from orchestrator.messages import DECODES, Role
from orchestrator.ports import Plant, WorkerInfo
from orchestrator.recorder import Recorder
from orchestrator.turn import ConfigurationName, WorkerId
from orchestrator.worker import State, Worker


class WorkerRegistry:
    """Every worker that the plant has ever announced.

    Parameters
    ----------
    clock : Clock
    plant : Plant
    recorder : Recorder
    pools : mapping of Role to Pools
        Where workers of each role take their turns; none for a role that takes none.

    Attributes
    ----------
    workers : dict
        By identity, in the order in which they first joined.
    slots : TimeWeightedLevel
        Decode slots of the active workers.
    """

    def __init__(self, clock: Clock, plant: Plant, recorder: Recorder, pools: Mapping[Role, tuple[Pool, ...]]) -> None:
        self._clock, self._plant, self._recorder, self._pools = clock, plant, recorder, pools
        self.workers: dict[WorkerId, Worker] = {}
        self.slots = recorder.slots
        self._standing_slots = recorder.standing_slots
        self._spent_s: dict[str, float] = {}

    def update(self) -> None:
        """Take in what the plant has announced since the last call."""
        for fact in self._plant.facts():
            self._recorder.event("fact", fact.at_s, fact=fact.kind, detail=fact.detail)
            if fact.info is None:
                continue
            if fact.kind == "joined":
                self._join(fact.info)
            elif fact.kind == "lost":
                self._lose(self.workers[fact.info.worker])

    def _join(self, info: WorkerInfo) -> None:
        worker = self.workers.get(info.worker)
        if worker is None:
            worker = self.workers[info.worker] = Worker(self._clock, self._plant, info)
        worker.activate(info)
        for pool in self._pools.get(info.role, ()):
            pool.join(worker)
        self._count(worker, 1)
        self._stand(worker, 1)

    def _lose(self, worker: Worker) -> None:
        was_active = worker.active
        if was_active or worker.state is State.DRAINING:
            self._stand(worker, -1)
        if not worker.absent:
            worker.lose()
        if was_active:
            self._leave(worker)

    def drain(self, worker: Worker) -> None:
        """Give a worker no more turns, on its way to another configuration."""
        worker.drain()
        self._leave(worker)

    def load(self, worker: Worker) -> None:
        """Let a drained worker load: its slots are there no more."""
        worker.load()
        self._stand(worker, -1)

    def _stand(self, worker: Worker, sign: int) -> None:
        if worker.info.role in DECODES:
            self._standing_slots.add(sign * (worker.info.slots or 0), self._clock.now())

    def _leave(self, worker: Worker) -> None:
        """Take a worker out of its pools and off the counts; what it costs from now on is on its next configuration."""
        now_s, name = self._clock.now(), worker.info.configuration
        self._spent_s[name] = self._spent_s.get(name, 0.0) + now_s - worker.paid_from_s
        worker.paid_from_s = now_s
        for pool in self._pools.get(worker.info.role, ()):
            pool.leave(worker)
        self._count(worker, -1)

    def _count(self, worker: Worker, sign: int) -> None:
        """Add a worker that came, or take off one that left: never a count of all."""
        info, now_s = worker.info, self._clock.now()
        if info.role in DECODES:
            self.slots.add(sign * (info.slots or 0), now_s)
        if info.role is not Role.IDLE:
            self._recorder.workers.add(sign, now_s)

    def resize(self, slots: Mapping[ConfigurationName, int]) -> None:
        """Take the slots per worker that the plant has set, by configuration."""
        workers = [worker for pool in self._pools[Role.DECODE] for worker in pool.workers]
        for worker in workers:
            now = slots.get(worker.info.configuration, worker.slots)
            if now != worker.slots:
                worker.set_slots(now)
        self.slots.set(sum(worker.slots or 0 for worker in workers), self._clock.now())
        standing = [w for w in self.workers.values() if w.active or w.state is State.DRAINING]
        self._standing_slots.set(sum(w.info.slots or 0 for w in standing if w.info.role in DECODES), self._clock.now())
        for pool in self._pools[Role.AGGREGATED]:  # those of aggregated workers wait in the line for a fill
            pool.serve()

    def seconds(self) -> dict[str, float]:
        """Return the worker-seconds of each configuration up to now; those of a change are on what it leads to."""
        now_s = self._clock.now()
        spent: dict[str, float] = dict(self._spent_s)
        for worker in self.workers.values():
            if worker.active:
                name = worker.info.configuration
                spent[name] = spent.get(name, 0.0) + now_s - worker.paid_from_s
        return spent
