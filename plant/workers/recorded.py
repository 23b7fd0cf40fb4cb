"""A worker on which a turn takes the server time that its trace recorded.

All of it passes in the decode call; fill and staging return at once, as traces seldom record the first token.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from orchestrator.clock import Clock
from orchestrator.errors import SteadyflowError
from orchestrator.turn import TurnId
from plant.cluster_spec import ConfigurationSpec
from plant.workers.job import DECODING, HELD, OVER, WAITING, Job, WorkerEvents
from plant.workers.pool_counters import Pool


class RecordedWorker:
    """N servers, or unlimited ones (`slots` None), first come first served."""

    def __init__(self, clock: Clock, spec: ConfigurationSpec, pool: Pool, events: WorkerEvents) -> None:
        self._clock, self._pool, self._events = clock, pool, events
        self._queue: deque[Job] = deque()
        self._running: dict[Job, Any] = {}  # job -> clock entry of its end
        self._incoming: dict[Job, None] = {}  # fills whose kept state is on its way
        self._waiting = 0

    def enter(self, job: Job) -> None:
        """Fill at once, or queue for a server."""
        if job.filling:
            job.started_s = self._clock.now()
            fetch = job.fetch
            if fetch is not None and fetch.done_s is None:  # it came in parts, and nothing is computed here meanwhile
                self._incoming[job] = None
                job.state = HELD
                fetch.when_done(lambda _: self._filled(job))
            else:
                self._filled(job)
            return
        self._pool.queued_turns += 1
        self._waiting += 1
        self._queue.append(job)
        self._next()

    def _filled(self, job: Job) -> None:
        self._incoming.pop(job, None)
        job.state = OVER
        self._events.filled(job)

    def withdraw(self, job: Job) -> None:
        """Remove a job that was withdrawn; its server is free at once."""
        if job.state == WAITING:
            self._pool.queued_turns -= 1
            self._waiting -= 1
        elif job.state == HELD:
            del self._incoming[job]
        else:
            self._clock.cancel_at(self._running.pop(job))
            self._pool.busy.add(-1, self._clock.now())
        job.state = OVER
        self._next()

    def evict(self, turn_id: TurnId) -> None:
        """Evict a turn without its state: a recorded time does not say how much of it exists at any moment.

        The turn takes its recorded time anew elsewhere.
        """
        jobs = [*self._incoming, *self._running, *(job for job in self._queue if job.state == WAITING)]
        job = next((job for job in jobs if job.turn_id == turn_id), None)
        if job is not None:
            self.withdraw(job)
            self._events.evicted(job, keep_kv=False)

    def has_room(self, context_tokens: int) -> bool:
        """Memory is not modelled here."""
        return True

    def load(self) -> int:
        """Return how many jobs are here, in service or in line."""
        return len(self._running) + self._waiting

    def serve_queue(self) -> None:
        """Serve who waits: the cap has been raised."""
        self._next()

    def retime(self, times: object) -> None:
        """Recorded times stay as they were recorded."""

    def close(self) -> list[Job]:
        """Stop at once; return the jobs that were here."""
        jobs = [*self._incoming, *self._running, *(job for job in self._queue if job.state == WAITING)]
        for entry in self._running.values():
            self._clock.cancel_at(entry)
        self._pool.busy.add(-len(self._running), self._clock.now())
        self._pool.queued_turns -= self._waiting
        self._incoming.clear()
        self._running.clear()
        self._queue.clear()
        self._waiting = 0
        for job in jobs:
            job.state = OVER
        return jobs

    def _next(self) -> None:
        while self._queue and len(self._running) < self._pool.batch_cap:
            job = self._queue.popleft()
            if job.state != WAITING:
                continue
            if job.service_s is None:
                raise SteadyflowError(f"turn {job.turn_id} has no recorded server time, which this plant replays")
            self._pool.queued_turns -= 1
            self._waiting -= 1
            job.state = DECODING
            job.joined_s = now = self._clock.now()
            self._pool.busy.add(1, now)
            self._running[job] = self._clock.at(now + job.service_s, self._end, job)

    def _end(self, job: Job) -> None:
        del self._running[job]
        self._pool.busy.add(-1, self._clock.now())
        job.state = OVER
        self._events.retired(job)
        self._next()
