"""A decode worker: continuous batching in closed form. Read `_begin`, then `_end`.

Between two changes of its membership a batch of B sequences that holds K positions makes n steps in
`times.span_s(B, K, n)` seconds and gains n B positions, so one event per change is exact:

    next change = the first finish, or the last step that memory still has room for: (capacity - K) // B

Turns join at step boundaries (`batch_slots` decides which). At the capacity the youngest member is preempted.
A preempted turn that comes back to `recompute` computes its lost positions in chunks that share their passes with the
batch's steps. A withdrawn member stays in the step under way, as a kernel cannot shed a row, and leaves at its end.
"""

from __future__ import annotations

from heapq import heappop
from typing import Any

from orchestrator.clock import SLEEP, Clock
from orchestrator.turn import TurnId
from plant.cluster_spec import ConfigurationSpec
from plant.model.times import StepTimes
from plant.workers.batch_slots import BatchSlots
from plant.workers.job import DECODING, FILLING, HELD, LEAVING, OVER, WAITING, Job, WorkerEvents
from plant.workers.pool_counters import Pool

# A boundary this near, relative to the segment's length, is now and not past; twice the rounding of `steps_within`.
BEFORE_NOW_RATIO = 1.0 - 2e-12
AFTER_ANSWER = object()  # instead of an event: the batch forms once the orchestrator has handled a fill's end


class ContinuousBatch(BatchSlots):
    """One decode worker.

    Parameters
    ----------
    clock : Clock
    spec : ConfigurationSpec
    pool : Pool
        Counters shared with the other workers of the configuration; also holds the caps now in force.
    events : WorkerEvents
        Receives every end.
    """

    __slots__ = (
        "_at", "_chunk_job", "_chunk_s", "_chunk_tokens", "_entry", "_forming", "_kv_base_tokens",
        "_kv_rate_tokens_per_s", "_next_times", "_on_end", "_segment_start_s", "_segment_steps", "_step_s", "times",
    )  # fmt: skip

    def __init__(self, clock: Clock, spec: ConfigurationSpec, pool: Pool, events: WorkerEvents) -> None:
        assert spec.times is not None, "recorded times have a worker of their own"
        super().__init__(clock, spec, pool, events)
        self._at = clock.at
        self.times: StepTimes = spec.times
        self._next_times: StepTimes | None = None
        # The segment under way: start, steps, its event, and the chunk that shares its pass.
        self._segment_start_s, self._segment_steps = 0.0, 0
        self._entry: Any = None  # the clock's handle; its type is private to the clock
        self._chunk_job: Job | None = None
        self._chunk_tokens = 0
        self._chunk_s = 0.0  # seconds of the pass that its chunk adds
        self._forming = False  # at a boundary, before the orchestrator has handled the ends of this instant
        self._on_end = self._end  # bound once, as it is scheduled at every change
        # What this worker adds to the pool's sums.
        self._kv_base_tokens = self._kv_rate_tokens_per_s = self._step_s = 0.0

    # ------------------------------------------------ what the cluster asks
    def enter(self, job: Job) -> None:
        """Queue a job for a slot; it joins at the next boundary if it is first in the queue and fits."""
        self._enqueue(job)
        if self._entry is None:
            self._begin(self._clock.now())
        elif len(self._queue) == 1 and self.used_slots < self._pool.batch_cap and not self._paused:
            self._shorten_segment(self._clock.now(), job)

    def withdraw(self, job: Job) -> None:
        """Remove a job that was withdrawn."""
        now = self._clock.now()
        if job.state == WAITING:
            self._dequeue_counts(job)
            job.state = OVER
            if self._queue[0] is job:
                self._replan(now)
        elif job.state == DECODING:
            job.state = LEAVING
            self._leaving.append(job)
            if now == self._segment_start_s:
                self._remove_leaving()
            self._replan(now)
        elif job.state in (FILLING, HELD):
            if job is self._chunk_job:
                self._chunk_job = None  # its pass runs to its end
            self._release(job)
            self._replan(now)

    def evict(self, turn_id: TurnId) -> None:
        """Evict a turn: from the batch at the next boundary, from the queue now; a fill under way stays."""
        job = self._find(turn_id)
        if job is None or (job.filling and job.state != WAITING):
            return
        decoding = job.state == DECODING
        self.withdraw(job)
        if not decoding:  # a member is evicted at the boundary
            self._events.evicted(job, keep_kv=not job.filling)

    def has_room(self, context_tokens: int) -> bool:
        """Return whether memory would take a context now, beside what is held and what waits."""
        held: float = self._kv + self._pinned
        if self._entry is not None:
            held += self._kv_rate_tokens_per_s * (self._clock.now() - self._segment_start_s)
        return self._room(context_tokens, held)

    def serve_queue(self) -> None:
        """Let in who waits for a slot, at the next boundary: the cap has been raised."""
        if self._queue and not self._paused:
            self._replan(self._clock.now())

    def retime(self, times: StepTimes) -> None:
        """Use other times from the next boundary on."""
        self._next_times = times
        self._replan(self._clock.now())

    def generated(self, now: float) -> tuple[list[tuple[TurnId, int]], float | None]:
        """Return the tokens that each member has generated here and before, and when the next step ends.

        None: no step is under way, or the one that ends now has not been closed yet.
        """
        if self._entry is None or not self._step_s:
            return [], None
        size, start_s, steps = len(self._members), self._segment_start_s, self._segment_steps
        if self._forming:
            done, next_s = 0, None
        elif self._chunk_s:  # one pass, which a chunk shares
            done, next_s = 0, start_s + self._step_s
        else:
            done = min(self.times.steps_within(size, self._kv, now - start_s), steps)
            next_s = start_s + self.times.span_s(size, self._kv, done + 1) if done < steps else None
        step = self.step + done
        members = [(job.turn_id, job.generated_tokens + step - job.joined_step) for _, _, job in self._members]
        return members, next_s

    def close(self) -> list[Job]:
        """Stop at once; return the jobs that were here, with what they had generated."""
        if self._entry is not None:
            if self._members:
                done = self.times.steps_within(len(self._members), self._kv, self._clock.now() - self._segment_start_s)
                self.step += min(done, self._segment_steps)
            if self._entry is not AFTER_ANSWER:
                self._clock.cancel_at(self._entry)
            self._entry = self._chunk_job = None
            self._chunk_s = 0.0
            self._forming = False
        jobs = self._clear()
        self._go_idle()
        return jobs

    # ------------------------------------------------ boundaries
    def _begin(self, now: float) -> None:
        """Form the batch at a boundary, and set the event of its next change."""
        if self._next_times is not None:
            self.times, self._next_times = self._next_times, None
        if self._returning:
            self._rejoin(now)
        if self._queue:
            self._admit(now)
        members, capacity = self._members, self._capacity
        size = len(members)
        kv = self._kv
        held = kv + self._pinned
        if capacity is not None and held + size > capacity and size:
            self._preempt_until_fits(now, capacity)
            size, kv = len(members), self._kv
            held = kv + self._pinned
        if self._filling:
            job = self._filling[0]
            chunk = job.missing_tokens
            if chunk > self._pool.chunk_cap:
                chunk = self._pool.chunk_cap
            self._chunk_job, self._chunk_tokens, steps = job, chunk, 1
            step_s = span = self.times.mixed_s(size, kv, chunk, job.context_tokens - job.missing_tokens)
            self._chunk_s = span - self.times.step_s(size, kv) if size else span
        elif size:
            steps = members[0][0] - self.step
            if capacity is not None and held + steps * size > capacity:
                steps = (capacity - held) // size
            span = self.times.span_s(size, kv, steps)
            step_s = span / steps
        else:
            self._go_idle()
            return
        self._segment_start_s, self._segment_steps = now, steps
        self._entry = self._at(now + span, self._on_end, steps)
        rate = size / step_s
        base = held - rate * now
        pool = self._pool
        if not self._step_s:
            pool.stepping += 1
            pool.stepping_moment_s -= now
        pool.step_sum_s += step_s - self._step_s
        if pool.kv is not None:
            pool.kv.change(base - self._kv_base_tokens, rate - self._kv_rate_tokens_per_s, now)
        self._step_s, self._kv_rate_tokens_per_s, self._kv_base_tokens = step_s, rate, base

    def _preempt_until_fits(self, now: float, capacity: int) -> None:
        """Preempt until memory takes the next step."""
        while self._members and self._kv + self._pinned + len(self._members) > capacity:
            self._preempt()
            if self._queue:
                self._admit(now)

    def _end(self, steps: int) -> None:
        """Close a segment of `steps` steps: grow, drop, retire; then begin the next."""
        now, pool, members = self._clock.now(), self._pool, self._members
        self.step = step = self.step + steps
        self._kv += steps * len(members)
        # The orchestrator may answer an end with a join at this instant: then the batch is formed after the answer. The
        # answer to a fill comes first; that of a turn that waits for a slot, after every other event of the instant.
        was_full = self.used_slots >= pool.batch_cap
        if self._chunk_s:
            pool.chunk_s_total += self._chunk_s
            self._chunk_s = 0.0
        filled = self._chunk_job is not None and self._end_chunk(self._chunk_job, now)
        if self._leaving:
            self._remove_leaving()
        while members and members[0][0] <= step:
            job = heappop(members)[2]
            self._kv -= job.context_tokens + job.steps
            self._free_slot(job)
            self._events.retired(job)
        if was_full:
            self._segment_start_s, self._forming = now, True
            self._entry = self._at(now, self._form, None, SLEEP)
        elif filled:
            self._segment_start_s, self._forming, self._entry = now, True, AFTER_ANSWER
            self._clock.loop.call_soon(self._form, None, context=self._clock.context)
        else:
            self._entry = None
            self._begin(now)

    def _form(self, _: None) -> None:
        if self._forming:
            self._forming = False
            self._entry = None
            self._begin(self._segment_start_s)

    def _go_idle(self) -> None:
        """Stop stepping: remove this worker from the sums of the pool."""
        pool = self._pool
        if self._step_s:
            pool.stepping -= 1
            pool.stepping_moment_s += self._clock.now()
        pool.step_sum_s -= self._step_s
        base = float(self._pinned)
        if pool.kv is not None:
            pool.kv.change(base - self._kv_base_tokens, -self._kv_rate_tokens_per_s, self._clock.now())
        self._kv_rate_tokens_per_s, self._kv_base_tokens, self._step_s = 0.0, base, 0.0

    def _replan(self, now: float) -> None:
        if self._entry is None:
            self._begin(now)
        else:
            self._shorten_segment(now, None)

    def _shorten_segment(self, now: float, job: Job | None) -> None:
        """End the segment at its first boundary that is not past; for a job, only if memory would take it there."""
        if self._forming:
            return
        if now == self._segment_start_s:  # the segment began at this instant: form the batch again
            self._clock.cancel_at(self._entry)
            self._entry = self._chunk_job = None
            self._chunk_s = 0.0
            self._begin(now)
            return
        if self._segment_steps == 1:
            return
        size = len(self._members)
        steps = 1 + self.times.steps_within(size, self._kv, (now - self._segment_start_s) * BEFORE_NOW_RATIO)
        if steps >= self._segment_steps or (job is not None and not self._fits(job, self._kv + steps * size)):
            return
        self._clock.cancel_at(self._entry)
        self._segment_steps = steps
        span = self.times.span_s(size, self._kv, steps)
        self._entry = self._at(self._segment_start_s + span, self._on_end, steps)

    def _end_chunk(self, job: Job, now: float) -> bool:
        """Count a chunk; return whether a fill was reported."""
        self._chunk_job = None
        job.missing_tokens -= self._chunk_tokens
        if job.missing_tokens:
            return False
        self._filling.popleft()
        return self._filled(job, now)

    def _filled(self, job: Job, now: float) -> bool:
        """Let a job whose prompt is complete decode from this boundary on; return whether a fill was reported."""
        job.state = HELD
        self._returning.append(job)
        return False
