"""An aggregated worker fills and decodes a turn on the same slot and memory reservation (essay, section 19).

While a prompt is being computed, each pass decodes the batch and one chunk of the first turn in fill (chunked prefill:
Agrawal et al., Sarathi-Serve, OSDI 2024); one event per such pass. A chunk belongs to one turn. Without a chunk the
batch runs in the closed form of `decode`. A turn whose kept state comes in parts is filled when its last layers have
had the last part.
"""

from __future__ import annotations

from orchestrator.clock import Clock
from orchestrator.turn import TurnId
from plant.cluster_spec import ConfigurationSpec
from plant.workers.decode import ContinuousBatch
from plant.workers.job import HELD, Job, WorkerEvents
from plant.workers.pool_counters import Pool


class AggregatedBatch(ContinuousBatch):
    """One aggregated worker. A filled turn keeps its slot and memory until it is claimed, released or lost."""

    __slots__ = ("_held",)

    def __init__(self, clock: Clock, spec: ConfigurationSpec, pool: Pool, events: WorkerEvents) -> None:
        super().__init__(clock, spec, pool, events)
        self._held: dict[TurnId, Job] = {}

    def held(self, turn_id: TurnId) -> Job | None:
        """Return the turn's job if it was filled here and waits to be claimed."""
        return self._held.get(turn_id)

    def claim(self, job: Job) -> None:
        """Let a held turn decode from the next boundary on; at least one step remains."""
        del self._held[job.turn_id]
        job.filling = False
        self._returning.append(job)
        if not self._forming:
            self._replan(self._clock.now())

    def release(self, job: Job) -> None:
        """Free the slot and memory of a filled turn."""
        self._release(job)
        self._replan(self._clock.now())

    def evict(self, turn_id: TurnId) -> None:
        """Evict a turn; one that is filled and not yet claimed is released."""
        held = self._held.get(turn_id)
        if held is not None and held.future is None:
            self.release(held)
        else:
            super().evict(turn_id)

    def _release(self, job: Job) -> None:
        self._held.pop(job.turn_id, None)
        super()._release(job)

    def _filled(self, job: Job, now: float) -> bool:
        if not job.filling:
            return super()._filled(job, now)
        job.state = HELD
        self._held[job.turn_id] = job
        if job.fetch is not None and self._late_parts(job, now):
            return False
        self._report_filled(job, now)
        return True

    def _late_parts(self, job: Job, now: float) -> bool:
        """Return whether the last layers of a computed turn must still wait for the last part of its state."""
        fetch = job.fetch
        if fetch is None or fetch.stages == 1:
            return False
        compute_s = now - job.started_s
        if fetch.done_s is None:
            fetch.when_done(lambda _: self._last_part_arrived(job, compute_s / fetch.stages))
            return True
        last_s = fetch.done_s + compute_s / fetch.stages
        if last_s <= now:
            return False
        self._clock.at(last_s, self._report_late, job)
        return True

    def _last_part_arrived(self, job: Job, last_layers_s: float) -> None:
        self._clock.at(self._clock.now() + last_layers_s, self._report_late, job)

    def _report_late(self, job: Job) -> None:
        if self._held.get(job.turn_id) is job and job.future is not None:
            self._report_filled(job, self._clock.now())

    def _report_filled(self, job: Job, now: float) -> None:
        pool = self._pool
        pool.filled_total += 1
        pool.fill_s_total += now - job.started_s
        self._events.filled(job)

    def _not_decoding(self) -> list[Job]:
        return [*super()._not_decoding(), *self._held.values()]

    def _clear(self) -> list[Job]:
        jobs = super()._clear()
        self._held.clear()
        return jobs
