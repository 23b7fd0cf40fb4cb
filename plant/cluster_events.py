"""What workers report: it completes Futures, puts contexts into the store, and is counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from orchestrator.errors import ContextOverflow, Evicted, Preempted, WorkerLost
from orchestrator.ports import Filled, Retired
from orchestrator.turn import EMPTY_CHAIN, KvRef, TurnId, new
from plant.hidden_turns import HiddenTurns
from plant.kv.context import BUSY, UNKNOWN
from plant.kv.flat_store import KvStore
from plant.pending_work import PendingWork
from plant.workers.job import Job, WorkerHandle
from plant.workers.staging import KvTransfer, bind_to_epoch


class ClusterEvents:
    """Completes the Futures of a cluster.

    Attributes
    ----------
    pending_work : PendingWork
        Fills and decodes, and KV transfers to workers.
    progress : dict
        Positions that a turn had generated when it was preempted or evicted; its next decode takes the entry.
    prompt_tokens, hit_tokens : int
        Of all fills that ended: the prompt, and the part that the store held.
    overflows, late : int
        Turns that outgrew every worker; work that met a later epoch of its worker.
    idle_since_s : dict or None
        Since when the filled state of a turn has been in HBM without a decode; None: not recorded.
    """

    def __init__(self, hidden_turns: HiddenTurns, store: KvStore, decodable_tokens: Callable[[], float]) -> None:
        self._hidden_turns, self._store, self._decodable_tokens = hidden_turns, store, decodable_tokens
        self.pending_work = PendingWork()
        self.progress: dict[TurnId, int] = {}
        hidden_turns.other_tables.append(self.progress)
        self.prompt_tokens = self.hit_tokens = 0
        self.overflows = self.late = 0
        self.idle_since_s: dict[TurnId, float] | None = None
        self._now: Callable[[], float] = lambda: 0.0

    def use_store(self, store: KvStore, now: Callable[[], float]) -> None:
        """Put contexts into this store from now on, and record how long state is idle in HBM."""
        self._store, self._now, self.idle_since_s = store, now, {}
        self._hidden_turns.other_tables.append(self.idle_since_s)

    def filled(self, job: Job) -> None:
        """Complete a fill: the first token exists."""
        future = job.future
        if future is None:
            return
        prompt = job.prompt_tokens
        self.prompt_tokens += prompt
        self.hit_tokens += job.cached_tokens
        job.future = None
        if job.fetch is not None and job.fetch.done_s is not None:
            job.fetch = None  # it refers to its job: a cycle of references would outlive both
        worker = job.worker.id
        chain = job.chain
        if chain is not EMPTY_CHAIN:
            self._store.put(job.turn, prompt, worker, BUSY)
        if self.idle_since_s is not None:
            self.idle_since_s[job.turn_id] = self._now()
        kv = new(KvRef, (chain, prompt, worker))
        del self.pending_work[future]
        future.set_result(new(Filled, (kv, job.started_s, job.cached_tokens)))

    def retired(self, job: Job) -> None:
        """Complete a decode: the turn has ended, and its context goes to the store."""
        future = job.future
        if future is None:
            return
        job.future = None
        worker, output, prompt = job.worker, job.output_tokens, job.prompt_tokens
        pool = worker.pool
        pool.served_total += 1
        pool.tokens_total += output
        pool.context_total += prompt + output // 2
        chain = job.chain
        if chain is not EMPTY_CHAIN:
            self._store.put(job.turn, prompt + output - 1, worker.id, job.waits_for or UNKNOWN)
        kv = new(KvRef, (chain, prompt + output - 1, worker.id))
        del self.pending_work[future]
        future.set_result(new(Retired, (job.joined_s, output, kv)))

    def preempted(self, job: Job, generated_tokens: int, *, alone: bool) -> None:
        """Fail the decode with `Preempted`, or with `ContextOverflow` where no worker could hold the turn."""
        job.worker.pool.preempted_total += 1
        generated = job.generated_tokens + generated_tokens
        context = job.prompt_tokens + generated
        if alone and context >= self._decodable_tokens():
            self.overflows += 1
            self._fail(job, ContextOverflow(f"{context} tokens have outgrown every worker"))
        else:
            self.progress[job.turn_id] = generated
            self._fail(job, Preempted(f"worker {job.worker.id} ran out of memory after {generated} tokens"))

    def evicted(self, job: Job, *, keep_kv: bool) -> None:
        """Fail the work with `Evicted`; what the turn has generated is text, and is kept."""
        turn = job.turn
        if job.generated_tokens:
            self.progress[turn.turn_id] = job.generated_tokens
        if job.fetch is not None:
            job.fetch.cancel()
        tokens = turn.prompt_tokens + job.generated_tokens - job.missing_tokens
        kv = KvRef(turn.context, tokens, job.worker.id)
        self._fail(job, Evicted(bind_to_epoch(kv, job.worker.epoch) if keep_kv else None))

    def lost(self, worker: WorkerHandle, jobs: Sequence[Job], kv_transfers: Sequence[KvTransfer]) -> None:
        """Fail the jobs of a lost worker, and the KV transfers to it."""
        text = f"worker {worker.id} was lost"
        for job in jobs:
            if job.generated_tokens and job.future is not None:
                self.progress[job.turn_id] = job.generated_tokens
            if job.fetch is not None:
                job.fetch.cancel()
                job.fetch = None
            self._fail(job, WorkerLost(text))
        for kv_transfer in kv_transfers:
            kv_transfer.fail(WorkerLost(text))
        self.late += len(kv_transfers)

    def _fail(self, job: Job, error: Exception) -> None:
        future = job.future
        if future is not None:
            job.future = None
            del self.pending_work[future]
            future.set_exception(error)
