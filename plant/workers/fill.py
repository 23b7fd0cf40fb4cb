"""A fill worker: prefill and midfill, one turn at a time, first come first served.

A prompt of P positions of which C are cached computes P - C new ones in chunks; chunk k costs
`times.mixed_s(0, 0, chunk, C + chunks before)`. Nothing interrupts a fill but a cancellation, so the chunks of one
turn are one event at their summed time. A cancelled fill frees the worker at the end of the chunk under way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from math import fsum
from typing import Any

from orchestrator.clock import Clock
from orchestrator.turn import TurnId
from plant.cluster_spec import ConfigurationSpec
from plant.model.times import StepTimes
from plant.workers.job import FILLING, OVER, WAITING, Job, WorkerEvents
from plant.workers.pool_counters import Pool


def chunk_spans_s(times: StepTimes, new_tokens: int, cached_tokens: int, chunk_tokens: int) -> Iterator[float]:
    """Yield the seconds of each chunk of a fill."""
    while new_tokens > 0:
        chunk = min(chunk_tokens, new_tokens)
        yield times.mixed_s(0, 0, chunk, cached_tokens)
        new_tokens -= chunk
        cached_tokens += chunk


class FillWorker:
    """One fill worker.

    Parameters
    ----------
    clock : Clock
    spec : ConfigurationSpec
    pool : Pool
        Counters shared with the other workers of the configuration; also holds the chunk cap now in force.
    events : WorkerEvents
        Receives every end.
    """

    def __init__(self, clock: Clock, spec: ConfigurationSpec, pool: Pool, events: WorkerEvents) -> None:
        assert spec.times is not None, "recorded times have a worker of their own"
        self._clock, self._pool, self._events = clock, pool, events
        self._capacity = spec.kv_capacity_tokens
        self.times: StepTimes = spec.times
        self._queue: deque[Job] = deque()
        self._waiting = 0
        self._running: Job | None = None
        self._entry: Any = None  # the clock's handle of the next event; its type is private to the clock
        self._spans: list[float] = []

    def enter(self, job: Job) -> None:
        """Queue a fill."""
        self._waiting += 1
        self._pool.queued_turns += 1
        self._pool.queued_tokens += job.missing_tokens
        self._queue.append(job)
        if self._entry is None and self._running is None:
            self._next(None)

    def withdraw(self, job: Job) -> None:
        """Remove a job that was withdrawn; the worker is free at the end of the chunk under way."""
        if job.state == WAITING:
            self._dequeue_counts(job)
        elif job is self._running:
            now = self._clock.now()
            end = job.started_s
            for span in self._spans:
                if end >= now:
                    break
                end += span
            self._stop(job)
            if self._entry is not None:
                self._clock.cancel_at(self._entry)
            self._entry = self._clock.at(end, self._next, None)
        job.state = OVER

    def evict(self, turn_id: TurnId) -> None:
        """Evict a turn that waits; the fill under way runs to its end."""
        for job in self._queue:
            if job.turn_id == turn_id and job.state == WAITING:
                self.withdraw(job)
                self._events.evicted(job, keep_kv=False)
                return

    def has_room(self, context_tokens: int) -> bool:
        """Return whether memory would take the prompt."""
        return self._capacity is None or context_tokens <= self._capacity

    def load(self) -> int:
        """Return how many jobs are here, running or in line."""
        return self._waiting + (self._running is not None)

    def serve_queue(self) -> None:
        """Nothing to do: a fill worker has one slot."""

    def retime(self, times: StepTimes) -> None:
        """Use other times from the next turn on."""
        self.times = times

    def close(self) -> list[Job]:
        """Stop at once; return the jobs that were here."""
        jobs = [job for job in self._queue if job.state == WAITING]
        for job in jobs:
            self._dequeue_counts(job)
        self._queue.clear()
        if self._running is not None:
            jobs.insert(0, self._running)
            self._stop(self._running)
        if self._entry is not None:
            self._clock.cancel_at(self._entry)
            self._entry = None
        for job in jobs:
            job.state = OVER
        return jobs

    def _next(self, _: None) -> None:
        self._entry = None
        while self._queue:
            job = self._queue.popleft()
            if job.state != WAITING:
                continue
            self._dequeue_counts(job)
            job.state = FILLING
            job.started_s = now = self._clock.now()
            pool = self._pool
            pool.busy.add(1, now)
            pool.chunk_s_total -= now
            self._running = job
            self._spans = list(chunk_spans_s(self.times, job.missing_tokens, job.cached_tokens, pool.chunk_cap))
            self._entry = self._clock.at(now + fsum(self._spans), self._end, job)
            return

    def _end(self, job: Job) -> None:
        self._entry = None
        fetch = job.fetch
        if fetch is not None and fetch.stages > 1:  # its last layers wait for the last part of its state
            if fetch.done_s is None:
                fetch.when_done(self._last_part_arrived)
                return
            end_s = fetch.done_s + fsum(self._spans) / fetch.stages
            job.fetch = None
            if end_s > self._clock.now():
                self._entry = self._clock.at(end_s, self._end, job)
                return
        self._stop(job)
        job.state = OVER
        pool = self._pool
        pool.served_total += 1
        pool.filled_total += 1
        pool.tokens_total += job.missing_tokens
        pool.fill_s_total += self._clock.now() - job.started_s
        self._events.filled(job)
        self._next(None)

    def _last_part_arrived(self, fetched: tuple[Job, int]) -> None:
        job = fetched[0]
        if job is self._running:
            self._end(job)

    def _stop(self, job: Job) -> None:
        self._running = None
        now = self._clock.now()
        self._pool.busy.add(-1, now)
        self._pool.chunk_s_total += now

    def _dequeue_counts(self, job: Job) -> None:
        self._waiting -= 1
        self._pool.queued_turns -= 1
        self._pool.queued_tokens -= job.missing_tokens
