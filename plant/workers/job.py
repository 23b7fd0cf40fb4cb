"""`Job`, one turn at one worker, and `WorkerEvents`, the interface to which workers report.

Workers are objects on the clock's heap: they never see the orchestrator, only jobs, each with the Future of its result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, Protocol

from orchestrator.turn import TurnView, WorkerId
from plant.hidden_turns import HiddenTurn
from plant.pending_work import PendingWork
from plant.workers.pool_counters import Pool

# States of a job at its worker. LEAVING: withdrawn, but part of the step that is under way.
WAITING: Final = 0
FILLING: Final = 1
HELD: Final = 2
DECODING: Final = 3
LEAVING: Final = 4
OVER: Final = 5
FETCHING: Final = 6  # its kept or swapped-out state is on the way; the worker has not seen it yet


class WorkerHandle(Protocol):
    """The worker that a job is at."""

    id: WorkerId
    pool: Pool
    epoch: int

    def withdraw(self, job: Job) -> None:
        """Remove a job that was withdrawn."""
        ...


class Fetching(Protocol):
    """Kept KV state on its way to the worker. `done_s`: when the last byte came; `stages`: the parts it comes in."""

    done_s: float | None
    stages: int

    def when_done(self, then: Callable[[Any], object]) -> None:
        """Call `then` when the last byte is there, with the argument that was given to the fetch."""
        ...

    def cancel(self) -> None:
        """Stop, and release what was pinned."""
        ...


class Job:
    """A turn at a worker.

    Attributes
    ----------
    turn_id, prompt_tokens, chain
        As in `turn`: a slot is read several times as fast as a NamedTuple's field.
    context_tokens : int
        Positions that the turn holds once it may decode: the prompt, and what it had generated before a preemption.
    missing_tokens : int
        How many of them must still be computed here.
    steps : int
        Decode steps that remain when it joins; the first token came with the fill.
    generated_tokens : int
        Positions generated earlier, before a preemption or eviction.
    reserved_tokens : int
        Memory set aside from join to end.
    joined_step : int
        The worker's step count when it began to decode.
    filling : bool
        The Future is of a fill; otherwise of the decode, from first to last step.
    service_s : float or None
        Recorded server time.
    waits_for : str
        What the session does once the turn has ended.
    fetch : Fetching or None
        Kept state that is on its way here.
    """

    __slots__ = (
        "cached_tokens",
        "chain",
        "context_tokens",
        "fetch",
        "filling",
        "future",
        "generated_tokens",
        "joined_s",
        "joined_step",
        "missing_tokens",
        "output_tokens",
        "prompt_tokens",
        "reserved_tokens",
        "service_s",
        "started_s",
        "state",
        "steps",
        "turn",
        "turn_id",
        "waits_for",
        "worker",
    )

    def __init__(
        self,
        turn: TurnView,
        hidden: HiddenTurn,
        worker: WorkerHandle,
        filling: bool,
        missing_tokens: int,
        cached_tokens: int,
        generated_tokens: int,
        headroom_tokens: int,
    ) -> None:
        self.turn, self.worker = turn, worker
        self.turn_id, _, _, _, _, _, self.prompt_tokens, self.chain = turn
        self.output_tokens, _, self.service_s, self.waits_for = hidden
        self.fetch: Fetching | None = None
        self.context_tokens = context_tokens = self.prompt_tokens + generated_tokens
        self.missing_tokens = missing_tokens
        self.cached_tokens = cached_tokens
        self.generated_tokens = generated_tokens
        self.reserved_tokens = context_tokens + headroom_tokens
        self.steps = self.output_tokens - 1 - generated_tokens
        self.filling = filling
        self.state = WAITING
        self.started_s = self.joined_s = 0.0
        self.joined_step = 0
        # None between the end of a fill and the call that decodes it. Any: Filled for a fill, Retired for a decode.
        self.future: asyncio.Future[Any] | None = None

    def new_future(self, loop: asyncio.AbstractEventLoop, pending_work: PendingWork) -> asyncio.Future[Any]:
        """Return a new Future of the job's result, for the orchestrator."""
        future: asyncio.Future[Any] = asyncio.Future(loop=loop)
        self.future = future
        pending_work[future] = self
        return future

    def withdraw(self) -> None:
        """Leave the worker: nobody waits for the result any more."""
        self.future = None
        if self.fetch is not None:
            self.fetch.cancel()
            self.fetch = None
        if self.state == FETCHING:
            self.state = OVER
        else:
            self.worker.withdraw(self)


class WorkerEvents(Protocol):
    """Receives what happened at workers, and completes the Futures."""

    def filled(self, job: Job) -> None:
        """The prompt's KV state is complete."""
        ...

    def retired(self, job: Job) -> None:
        """The last token is out."""
        ...

    def evicted(self, job: Job, *, keep_kv: bool) -> None:
        """The worker sends the job away, with its state or without."""
        ...

    def preempted(self, job: Job, generated_tokens: int, *, alone: bool) -> None:
        """The batch preempted the job; `alone`: no other job held memory there."""
        ...
