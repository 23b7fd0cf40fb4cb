"""The desk: what workers report becomes results of promises, contexts in the store, and counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from orchestrator.errors import ContextOverflow, Evicted, Preempted, WorkerLost
from orchestrator.ports import Filled, Retired
from orchestrator.turn import EMPTY_CHAIN, KvRef, TurnId, new
from plant.hidden_turns import HiddenTurns
from plant.kv.flat_store import KvStore
from plant.kv.lru_queues import BUSY, UNKNOWN
from plant.pending_work import PendingWork
from plant.workers.job import Job, WorkerHandle
from plant.workers.staging import KvTransfer, left_kv


class ClusterEvents:
    """Keeps the promises of a cluster.

    Attributes
    ----------
    promises : PendingWork
        Those of fills and decodes, and of state on its way to a worker.
    progress : dict
        Positions that a turn had generated when a batch threw it out; its next decode takes the entry.
    prompt_tokens, hit_tokens : int
        Of all fills that ended: prompt, and the part that the store held.
    overflows, late : int
        Turns that outgrew every worker; work that met a later epoch of its worker.
    lying : dict or None
        Since when the filled state of a turn has lain in accelerator memory without work; None: not kept.
    """

    def __init__(self, truths: HiddenTurns, store: KvStore, largest: Callable[[], float]) -> None:
        self._truths, self._store, self._largest = truths, store, largest
        self.promises = PendingWork()
        self.progress: dict[TurnId, int] = {}
        truths.beside.append(self.progress)
        self.prompt_tokens = self.hit_tokens = 0
        self.overflows = self.late = 0
        self.lying: dict[TurnId, float] | None = None
        self._now: Callable[[], float] = lambda: 0.0

    def use(self, store: KvStore, now: Callable[[], float]) -> None:
        """Keep contexts in this store from now on, and note how long state lies idle."""
        self._store, self._now, self.lying = store, now, {}
        self._truths.beside.append(self.lying)

    def filled(self, job: Job) -> None:
        """Tell that the first token exists."""
        work = job.work
        if work is None:
            return
        prompt = job.prompt_tokens
        self.prompt_tokens += prompt
        self.hit_tokens += job.cached_tokens
        job.work = None
        if job.fetch is not None and job.fetch.done_s is not None:
            job.fetch = None  # it knows its job: a cycle of references would outlive both
        place = job.place.id
        chain = job.chain
        if chain is not EMPTY_CHAIN:
            self._store.put(job.turn, prompt, place, BUSY)
        if self.lying is not None:
            self.lying[job.turn_id] = self._now()
        kv = new(KvRef, (chain, prompt, place))
        del self.promises[work]
        work.set_result(new(Filled, (kv, job.started_s, job.cached_tokens)))

    def retired(self, job: Job) -> None:
        """Tell that the turn has ended, and keep its context."""
        work = job.work
        if work is None:
            return
        job.work = None
        place, output, prompt = job.place, job.output_tokens, job.prompt_tokens
        pool = place.pool
        pool.served_total += 1
        pool.tokens_total += output
        pool.context_total += prompt + output // 2
        chain = job.chain
        if chain is not EMPTY_CHAIN:
            self._store.put(job.turn, prompt + output - 1, place.id, job.waits_for or UNKNOWN)
        kv = new(KvRef, (chain, prompt + output - 1, place.id))
        del self.promises[work]
        work.set_result(new(Retired, (job.joined_s, output, kv)))

    def preempted(self, job: Job, generated_tokens: int, *, alone: bool) -> None:
        """Give the turn back, with what it had generated remembered; or fail it where no worker could hold it."""
        job.place.pool.preempted_total += 1
        generated = job.generated_tokens + generated_tokens
        context = job.prompt_tokens + generated
        if alone and context >= self._largest():
            self.overflows += 1
            self._throw(job, ContextOverflow(f"{context} tokens have outgrown every worker"))
        else:
            self.progress[job.turn_id] = generated
            self._throw(job, Preempted(f"worker {job.place.id} ran out of memory after {generated} tokens"))

    def evicted(self, job: Job, *, keep_kv: bool) -> None:
        """Send the turn on; what it has generated is text, and stays."""
        turn = job.turn
        if job.generated_tokens:
            self.progress[turn.turn_id] = job.generated_tokens
        if job.fetch is not None:
            job.fetch.cancel()
        tokens = turn.prompt_tokens + job.generated_tokens - job.missing_tokens
        kv = KvRef(turn.context, tokens, job.place.id)
        self._throw(job, Evicted(left_kv(kv, job.place.epoch) if keep_kv else None))

    def lost(self, place: WorkerHandle, jobs: Sequence[Job], shipments: Sequence[KvTransfer]) -> None:
        """Fail what a lost worker held, and what was on its way to it."""
        text = f"worker {place.id} was lost"
        for job in jobs:
            if job.generated_tokens and job.work is not None:
                self.progress[job.turn_id] = job.generated_tokens
            if job.fetch is not None:
                job.fetch.cancel()
                job.fetch = None
            self._throw(job, WorkerLost(text))
        for shipment in shipments:
            shipment.fail(WorkerLost(text))
        self.late += len(shipments)

    def _throw(self, job: Job, error: Exception) -> None:
        work = job.work
        if work is not None:
            job.work = None
            del self.promises[work]
            work.set_exception(error)
