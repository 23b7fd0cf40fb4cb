"""The seams: protocols of few verbs, and the messages of the plant. Read `Policy`, `Plant` and `Source` first.

Readings and commands stand in `signals`.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from orchestrator.messages import BatchCommand, PlantReading, RetentionCommand, Role
from orchestrator.turn import ConfigurationName, KvChain, KvRef, TurnId, TurnView, WorkerId

Y = TypeVar("Y", contravariant=True)
U = TypeVar("U", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Every:
    """Act at `start + k * period_s`, k = 0, 1, 2 ..."""

    period_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class On:
    """Act once at the start and then at every `event`."""

    event: Literal["retirement", "arrival"]


Cadence = Every | On


class Policy(Protocol[Y, U]):
    """A law: synchronous, causal, without a clock and without I/O."""

    cadence: Cadence

    def act(self, y: Y) -> U:
        """Return the command for this reading."""
        ...


class WorkerView(NamedTuple):
    """One worker as a router sees it. `load_turns` = assigned and not finished; `slots` None: unlimited."""

    worker: WorkerId
    rack: int
    configuration: ConfigurationName
    slots: int | None
    load_turns: int
    load_tokens: int


class PoolView(Protocol):
    """The workers that could take a turn now; no call does work for every worker, save iteration."""

    def sample(self, k: int, key: int) -> Sequence[WorkerId]:
        """Return k workers drawn by counter hash of `key` (with repeats where the pool is smaller)."""
        ...

    def least_loaded(self) -> WorkerId | None:
        """Return the open worker with the fewest turns assigned; ties go to the lowest id."""
        ...

    def holding(self, prefix: KvChain) -> Sequence[tuple[WorkerId, int]]:
        """Return workers near the longest prefix of this chain, with the tokens held, longest first."""
        ...

    def view(self, worker: WorkerId) -> WorkerView:
        """Return one worker's load as this router knows it."""
        ...

    def open(self, worker: WorkerId) -> bool:
        """Tell whether the worker can take one more turn, as far as this router knows."""
        ...

    def cost_s(self, worker: WorkerId, turn: TurnView) -> float | None:
        """Return the plant's estimate of fetching or rebuilding the turn's context there; None: not modelled."""
        ...

    def waiting(self) -> int:
        """Return how many turns stand in line for this pool."""
        ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[WorkerView]: ...


class Router(Protocol):
    """Choose a worker for one turn; None leaves the turn waiting.

    A router that may refuse one turn and still take the next has an attribute `selective = True`: the line is then
    looked at beyond its head.
    """

    def choose(self, turn: TurnView, pool: PoolView) -> WorkerId | None:
        """Return a worker of `pool` that is open, or None."""
        ...


class Filled(NamedTuple):
    """A fill has ended: the first token exists at this instant."""

    kv: KvRef
    started_s: float
    cached_tokens: int


class Staged(NamedTuple):
    """The KV state lies in the decode worker's memory."""

    kv: KvRef
    moved_bytes: float


class Retired(NamedTuple):
    """A turn has ended: its output is complete. `joined_s`: when it entered the batch."""

    joined_s: float
    output_tokens: int
    kv: KvRef


class WorkerInfo(NamedTuple):
    """A worker that exists.

    `slots`: those in force, within the caps set by then (None: unlimited); `staging_turns`: staged ahead of a free slot
    (double buffer).
    """

    worker: WorkerId
    rack: int
    configuration: ConfigurationName
    role: Role
    slots: int | None
    staging_turns: int
    epoch: int


class PlantFact(NamedTuple):
    """Something that happened to the plant.

    `joined` announces every worker that begins to serve, be it new, back or in another configuration; `lost` every one
    that is gone.
    """

    kind: Literal["joined", "lost", "slowed", "link_down", "link_up", "storage_lost"]
    at_s: float
    info: WorkerInfo | None
    detail: str


class Applied(NamedTuple):
    """What an actuator really set, after clipping.

    `slots`: the decode slots now in force on each worker of every configuration whose batch cap was set. Of several
    caps `command` holds the largest.
    """

    command: BatchCommand | RetentionCommand
    clipped: bool
    slots: Mapping[ConfigurationName, int]


class Plant(Protocol):
    """Workers behind plain calls. A plain Future crosses; `withdraw` takes its work back at that instant."""

    def fill(self, worker: WorkerId, turn: TurnView, prefix: KvRef) -> Future[Filled]:
        """Prefill or midfill the turn. Raises WorkerLost, ContextOverflow through the Future."""
        ...

    def stage(self, worker: WorkerId, kv: KvRef) -> Future[Staged]:
        """Bring the KV state to the worker; may overlap the wait in the ready buffer."""
        ...

    def decode(self, worker: WorkerId, turn: TurnView, kv: Staged) -> Future[Retired]:
        """Join the batch and run to the end. Raises Preempted, WorkerLost, ContextOverflow through the Future."""
        ...

    def withdraw(self, future: Future[Any]) -> bool:
        """Take the work of a fill, a staging or a decode back at this instant, and cancel its Future.

        Tell whether it was under way. Do not cancel the Future itself: the plant would not hear of it.
        """
        ...

    def has_room(self, worker: WorkerId, turn: TurnView) -> bool:
        """Tell in O(1) whether the worker's memory would take the turn now, beside what it holds."""
        ...

    def fits(self, turn: TurnView) -> bool:
        """Tell whether any worker could ever hold the turn's context."""
        ...

    def cached_tokens(self, turn: TurnView) -> int:
        """Return how many tokens of the turn's context the store holds now: midfill if any, else prefill."""
        ...

    def reconfigure(self, worker: WorkerId, to: ConfigurationName) -> Future[None]:
        """Load and warm the configuration on a drained worker. Its end has the fact `joined` announce the worker."""
        ...

    def evict(self, worker: WorkerId, turn_id: TurnId | None) -> None:
        """Send a turn away from a worker that is to change: its Future raises Evicted. Harmless where it is not there.

        A turn that decodes leaves at the end of the step under way, with its state; a fill that waits leaves at once,
        a fill under way goes on to its end. None: every turn leaves at once, its state is given up, and whatever comes
        to the worker later is sent away too.
        """
        ...

    def apply(self, command: BatchCommand | RetentionCommand) -> Applied:
        """Set an actuator; a batch command that names no configuration sets each within its own limits."""
        ...

    def read(self) -> PlantReading:
        """Return the counters as they stand."""
        ...

    def holding(self, prefix: KvChain) -> Sequence[tuple[WorkerId, int]]:
        """Return (worker, tokens) for workers near the longest held prefix, longest first; empty if none is kept."""
        ...

    def cost_s(self, worker: WorkerId, turn: TurnView) -> float | None:
        """Estimate the seconds to fetch or rebuild the turn's context at this worker; None: not modelled."""
        ...

    def facts(self) -> Iterator[PlantFact]:
        """Yield, once each, the facts since the last call; the first call yields every worker as joined."""
        ...

    def listen(self, heard: Callable[[], None]) -> None:
        """Call `heard` at the instant of every later fact, which `facts` then yields."""
        ...


class Source(Protocol):
    """Where turns come from. Closed loops hear of endings, a saturated one of admissions."""

    def start(self, arrive: Callable[[TurnView], None]) -> None:
        """Begin; call `arrive` for each turn at its instant."""
        ...

    def admitted(self, turn_id: TurnId, at_s: float) -> None:
        """Hear that the gate released this turn."""
        ...

    def ended(self, turn_id: TurnId, at_s: float, outcome: str) -> None:
        """Hear that the turn ended: outcome is `retired`, or the bucket of its rejection or failure."""
        ...

    def exhausted(self) -> bool:
        """Tell whether no turn will ever arrive again, whatever is retired."""
        ...
