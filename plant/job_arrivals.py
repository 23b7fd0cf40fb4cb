"""Jobs whose KV state is on its way to their worker: kept state from the store, swapped-out state from host memory.

A job enters its worker when the state has arrived, unless the worker has changed its epoch or sends turns away.
"""

from __future__ import annotations

from orchestrator.clock import Clock
from orchestrator.messages import Role
from orchestrator.turn import TurnId
from plant.cluster_events import ClusterEvents
from plant.fleet import Fleet, WorkerNode
from plant.workers.job import FETCHING, OVER, WAITING, Job


class JobArrivals:
    """The jobs of a cluster that wait for their state."""

    def __init__(self, clock: Clock, fleet: Fleet, events: ClusterEvents) -> None:
        self._clock, self._fleet, self._events = clock, fleet, events
        self._swapping_in: dict[TurnId, Job] = {}

    def swap_in(self, node: WorkerNode, job: Job) -> None:
        """Bring swapped-out state back from host memory."""
        job.state = FETCHING
        self._swapping_in[job.turn_id] = job
        spec = node.spec
        tokens = job.context_tokens if spec.role is Role.AGGREGATED else job.generated_tokens
        span_s = tokens * spec.kv_bytes_per_token / spec.swap_bytes_per_s
        self._clock.at(self._clock.now() + span_s, self.arrived, (job, node.epoch))

    def arrived(self, arrival: tuple[Job, int]) -> None:
        """Let a job enter its worker, if that is still in the epoch for which the state was sent."""
        job, epoch = arrival
        self._swapping_in.pop(job.turn_id, None)
        node = self._fleet.nodes[job.worker.id]
        if job.state != FETCHING:
            return
        if node.engine is None or node.epoch != epoch:
            job.state = OVER
            self._events.lost(node, [job], [])
        elif node.vacated:
            job.state = OVER
            self._events.evicted(job, keep_kv=False)
        else:
            job.state = WAITING
            node.engine.enter(job)

    def evict(self, turn_id: TurnId) -> bool:
        """Send a turn away whose state is being swapped in; return whether there was one."""
        job = self._swapping_in.get(turn_id)
        if job is None or job.state != FETCHING:
            return False
        job.state = OVER
        self._events.evicted(job, keep_kv=False)
        return True
