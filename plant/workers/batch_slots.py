"""Slots, queue and KV memory of one batch: which jobs may join it. It schedules nothing.

Jobs join first come first served while a slot is free and memory takes them. Joining reserves context + headroom; the
reservations never exceed the capacity (a job that is alone may outgrow its own), nor do the positions held after the
next step of the batch. After a preemption no job joins until a member has left, so that turns are not moved back and
forth; with the `readmission` "at_once" they are.
"""

from __future__ import annotations

from collections import deque
from heapq import heapify, heappush
from operator import itemgetter

from orchestrator.clock import Clock
from orchestrator.turn import TurnId
from plant.cluster_spec import ConfigurationSpec
from plant.workers.job import DECODING, FILLING, LEAVING, OVER, WAITING, Job, WorkerEvents
from plant.workers.pool_counters import Pool

AGE = itemgetter(1)


class BatchSlots:
    """The jobs of one worker by state, and the KV positions that they hold.

    Attributes
    ----------
    used_slots, waiting : int
        Slots in use; turns in the queue.
    step : int
        Decode steps since the worker began.
    """

    __slots__ = (
        "_capacity", "_clock", "_events", "_filling", "_headroom", "_joins_total", "_kv", "_leaving", "_members",
        "_paused", "_pauses_after_preemption", "_pinned", "_pool", "_queue", "_queued_tokens", "_reserved",
        "_returning", "step", "used_slots", "waiting",
    )  # fmt: skip

    def __init__(self, clock: Clock, spec: ConfigurationSpec, pool: Pool, events: WorkerEvents) -> None:
        self._clock, self._pool, self._events = clock, pool, events
        self._capacity = spec.kv_capacity_tokens
        self._headroom = spec.headroom_tokens
        self._pauses_after_preemption = spec.readmission == "waits"
        self._queue: deque[Job] = deque()
        self._queued_tokens = 0  # reservations that wait
        self._members: list[tuple[int, int, Job]] = []  # heap of (finishing step, age, job)
        self._filling: deque[Job] = deque()  # in memory, some positions still to compute
        self._returning: list[Job] = []  # in memory and complete; decode from the next boundary
        self._leaving: list[Job] = []
        self._joins_total = 0
        self._paused = False  # a member was preempted and none has left since
        self.used_slots = self.waiting = 0
        self.step = 0
        self._kv = 0  # positions of the members at the last boundary
        self._pinned = 0  # positions of turns in memory that do not decode yet
        self._reserved = 0

    def load(self) -> int:
        """Return how many jobs are here, in a slot or in the queue."""
        return self.used_slots + self.waiting

    def _room(self, context_tokens: int, held: float) -> bool:
        """Return whether memory would take the context, not counting members that were withdrawn."""
        capacity = self._capacity
        if capacity is None:
            return True
        used_slots, reserved, size = self.used_slots, self._reserved, len(self._members)
        for job in self._leaving:
            used_slots -= 1
            size -= 1
            reserved -= job.reserved_tokens
            held -= job.context_tokens + self.step - job.joined_step
        if not used_slots and not self.waiting:
            return context_tokens < capacity
        waiting = self._queued_tokens + context_tokens
        return held + waiting + size < capacity and reserved + waiting + self._headroom <= capacity

    def _enqueue(self, job: Job) -> None:
        pool = self._pool
        pool.queued_turns += 1
        pool.queued_tokens += job.missing_tokens
        self.waiting += 1
        self._queued_tokens += job.reserved_tokens
        self._queue.append(job)

    def _dequeue_counts(self, job: Job) -> None:
        pool = self._pool
        pool.queued_turns -= 1
        pool.queued_tokens -= job.missing_tokens
        self.waiting -= 1
        self._queued_tokens -= job.reserved_tokens

    def _admit(self, now: float) -> None:
        """Move jobs from the head of the queue to slots while there is a slot and memory takes the next."""
        queue, pool = self._queue, self._pool
        while queue and self.used_slots < pool.batch_cap and not self._paused:
            job = queue[0]
            if job.state == WAITING:
                if self._capacity is not None and not self._fits(job, self._kv):
                    return
                self.waiting -= 1
                self._queued_tokens -= job.reserved_tokens
                pool.queued_turns -= 1
                self.used_slots += 1
                pool.busy.add(1, now)
                self._reserved += job.reserved_tokens
                job.started_s = now
                if job.missing_tokens:
                    pool.queued_tokens -= job.missing_tokens
                    job.state = FILLING
                    self._pinned += job.context_tokens
                    self._filling.append(job)
                else:
                    self._decode(job, now)
            queue.popleft()

    def _fits(self, job: Job, kv: int) -> bool:
        capacity = self._capacity
        if capacity is None:
            return True
        if kv + self._pinned + job.context_tokens + len(self._members) >= capacity:
            return False
        return not self.used_slots or self._reserved + job.reserved_tokens <= capacity

    def _decode(self, job: Job, now: float) -> None:
        job.state = DECODING
        job.joined_s, job.joined_step = now, self.step
        self._kv += job.context_tokens
        self._joins_total += 1
        heappush(self._members, (self.step + job.steps, self._joins_total, job))

    def _rejoin(self, now: float) -> None:
        for job in self._returning:
            self._pinned -= job.context_tokens
            self._decode(job, now)
        self._returning.clear()

    def _preempt(self) -> None:
        members = self._members
        entry = max(members, key=AGE)
        members.remove(entry)
        heapify(members)
        job = entry[2]
        generated = self.step - job.joined_step
        self._kv -= job.context_tokens + generated
        self._free_slot(job)
        self._paused = self._pauses_after_preemption and bool(members)
        self._events.preempted(job, generated, alone=not self.used_slots)

    def _remove_leaving(self) -> None:
        """Remove members that were withdrawn, and those evicted unless this step was their last."""
        for job in self._leaving:
            if job.future is not None and self.step - job.joined_step >= job.steps:
                job.state = DECODING
        self._members[:] = [entry for entry in self._members if entry[2].state != LEAVING]
        heapify(self._members)
        for job in self._leaving:
            if job.state == LEAVING:
                generated = self.step - job.joined_step
                self._kv -= job.context_tokens + generated
                self._free_slot(job)
                if job.future is not None:
                    job.generated_tokens += generated
                    self._events.evicted(job, keep_kv=True)
        self._leaving.clear()

    def _release(self, job: Job) -> None:
        """Free the slot and memory of a job that does not decode."""
        if job.state == FILLING:
            self._filling.remove(job)
        elif job in self._returning:
            self._returning.remove(job)
        self._pinned -= job.context_tokens
        self._free_slot(job)

    def _free_slot(self, job: Job) -> None:
        job.state = OVER
        self.used_slots -= 1
        self._reserved -= job.reserved_tokens
        self._pool.busy.add(-1, self._clock.now())
        self._paused = False

    def _clear(self) -> list[Job]:
        """Empty the worker; return the jobs that were here, with what they had generated."""
        self._remove_leaving()
        members = [entry[2] for entry in sorted(self._members, key=AGE)]
        for job in members:
            job.generated_tokens += self.step - job.joined_step
        waiting = [job for job in self._queue if job.state == WAITING]
        for job in waiting:
            self._dequeue_counts(job)
        in_slots = members + self._not_decoding()
        self._pool.busy.add(-len(in_slots), self._clock.now())
        for job in in_slots + waiting:
            job.state = OVER
        self._members.clear()
        self._queue.clear()
        self._filling.clear()
        self._returning.clear()
        self.used_slots = self._kv = self._pinned = self._reserved = 0
        self._paused = False
        return in_slots + waiting

    def _find(self, turn_id: TurnId) -> Job | None:
        """Return the turn's job, if it is here and not withdrawn."""
        jobs = [*(entry[2] for entry in self._members), *self._not_decoding(), *self._queue]
        return next((job for job in jobs if job.turn_id == turn_id and job.future is not None), None)

    def _not_decoding(self) -> list[Job]:
        """Return the jobs in slots that do not decode."""
        return [*self._filling, *self._returning]
