"""The seams: one-verb protocols, and the frozen readings and commands that cross them.

Read `Policy`, `Plant` and `Source` first; every other name here is a message of theirs. Readings carry `now_s` (the
tick) and `at_s` (when the sample was taken); `None` means not measured. Commands are absolute; `None` leaves a thing
alone. Each slot has its own reading and its own command, so a law cannot reach past its own fields.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, NamedTuple, Protocol, TypeVar

from orchestrator.turn import ClassName, ConfigurationName, KvChain, KvRef, TurnId, TurnView, WorkerId

Y = TypeVar("Y", contravariant=True)
U = TypeVar("U", covariant=True)


# ---------------------------------------------------------------- when a law acts
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


# ---------------------------------------------------------------- admission
@dataclass(frozen=True, slots=True, kw_only=True)
class ClassReading:
    """One service class at the front door."""

    backlog_turns: int
    in_flight_turns: int
    arrived_turns: int
    retired_turns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionCommand:
    """Absolute settings of the front door; `None` leaves one as it is.

    `release_per_s` paces releases evenly (math.inf: at once); `in_flight_cap_turns` bounds released and not retired;
    `reserve_turns` keeps that many of the cap for a class; `shed_ratio` refuses that share of a class's arrivals.
    `batch_setpoint_turns` is the word to the batching loop.
    """

    gate_open: bool | None = None
    release_per_s: float | None = None
    in_flight_cap_turns: int | None = None
    class_cap_turns: Mapping[ClassName, int] | None = None
    reserve_turns: Mapping[ClassName, int] | None = None
    shed_ratio: Mapping[ClassName, float] | None = None
    batch_setpoint_turns: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionReading:
    """What the admission law sees.

    Counts ending in `_total` grow from the start of the run. `slots` and `busy_slots` are of the decode pools;
    `in_flight_turns` = filling + ready + decoding. `service_per_s` is the predicted rate of a full pool, if the plant
    states one. `wait_s` is the age of the oldest waiting turn; `ttft_s`, `tpot_s` are means over turns since the last
    sample (None: none ended).
    """

    now_s: float
    at_s: float
    backlog_turns: int
    backlog_smoothed_turns: float
    filling_turns: int
    ready_turns: int
    decoding_turns: int
    in_flight_turns: int
    slots: int
    busy_slots: int
    arrived_total: int
    released_total: int
    retired_total: int
    arrival_per_s: float | None
    retire_per_s: float | None
    wait_s: float
    ttft_s: float | None
    tpot_s: float | None
    service_per_s: float | None
    preempted_total: int
    kv_used_ratio: float | None
    by_class: Mapping[ClassName, ClassReading]
    applied: AdmissionCommand
    setpoint: CapacityCommand | None


# ---------------------------------------------------------------- batching
@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCommand:
    """Caps of every decode batch and fill chunk in one configuration (None: in all of them)."""

    configuration: ConfigurationName | None = None
    batch_cap_turns: int | None = None
    chunk_cap_tokens: int | None = None
    load_setpoint_turns: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchReading:
    """What the batching law sees: means over the active decode workers of the pools."""

    now_s: float
    at_s: float
    workers: int
    batch_turns: float | None
    step_s: float | None
    kv_used_ratio: float | None
    ready_turns: int
    backlog_turns: int
    preempted_total: int
    tpot_s: float | None
    tpot_slo_s: float | None
    applied: BatchCommand
    setpoint: AdmissionCommand | None


# ---------------------------------------------------------------- capacity
@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityCommand:
    """Workers wanted per prepared configuration; `in_flight_setpoint_turns` is the word to the admission loop."""

    target_workers: Mapping[ConfigurationName, int] | None = None
    in_flight_setpoint_turns: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolReading:
    """One pool (the workers of one configuration), kept as counters by the plant.

    `busy_slots` counts turns in decode batches or in fill; `queued_tokens` waits at fill workers. `served_total` and
    `tokens_total` grow from the start. `kv_*` are None where the plant models no memory. `service_per_worker_per_s`
    is what one full worker of this pool serves, if the plant states it.
    """

    configuration: ConfigurationName
    role: Role
    active_workers: int
    pending_workers: int
    draining_workers: int
    slots: int
    busy_slots: int
    queued_turns: int
    queued_tokens: int
    served_total: int
    tokens_total: int
    preempted_total: int
    kv_used_tokens: int | None
    kv_capacity_tokens: int | None
    step_s: float | None
    service_per_worker_per_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityReading:
    """What the capacity law sees, per pool, with the transitions under way."""

    now_s: float
    at_s: float
    pools: Mapping[ConfigurationName, PoolReading]
    arrival_per_s: float | None
    retire_per_s: float | None
    backlog_turns: int
    ready_turns: int
    ttft_s: float | None
    tpot_s: float | None
    applied: CapacityCommand
    setpoint: DemandCommand | None


# ---------------------------------------------------------------- demand
@dataclass(frozen=True, slots=True, kw_only=True)
class DemandCommand:
    """A forecast for the capacity loop: turns a second expected, and the fewest workers to keep per configuration."""

    forecast_per_s: float | None = None
    floor_workers: Mapping[ConfigurationName, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandReading:
    """What the demand law sees: arrivals counted since the run began, by class, and time of day."""

    now_s: float
    at_s: float
    time_of_day_s: float
    arrived_total: int
    arrived_by_class: Mapping[ClassName, int]
    prompt_tokens_total: int
    arrival_per_s: float | None
    applied: DemandCommand


# ---------------------------------------------------------------- retention
@dataclass(frozen=True, slots=True, kw_only=True)
class TierReading:
    """One KV tier: bytes now, bytes at most, and what has been done since the run began."""

    name: str
    used_bytes: float
    capacity_bytes: float
    hit_tokens_total: int
    evicted_total: int
    price_per_byte_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReuseReading:
    """Idle contexts of one kind: how many, and reuses seen per age bin.

    `ages_s` are upper edges of the bins; `idle`, `reused` count contexts that reached, and were reused within, each.
    """

    kind: str
    ages_s: tuple[float, ...]
    idle: tuple[int, ...]
    reused: tuple[int, ...]
    mean_bytes: float
    rebuild_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionRule:
    """Contexts of `kind` idle longer than `demote_after_s` move down a tier; than `discard_after_s` keep only text."""

    kind: str
    demote_after_s: float
    discard_after_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionCommand:
    """Rules by kind, and which idle context goes first when a tier is full. None: leave."""

    rules: tuple[RetentionRule, ...] | None = None
    order: Literal["lru", "value"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionReading:
    """What the retention law sees."""

    now_s: float
    at_s: float
    tiers: tuple[TierReading, ...]
    reuse: tuple[ReuseReading, ...]
    applied: RetentionCommand


# ---------------------------------------------------------------- routing
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

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[WorkerView]: ...


class Router(Protocol):
    """Choose a worker for one turn; None leaves the turn waiting."""

    def choose(self, turn: TurnView, pool: PoolView) -> WorkerId | None:
        """Return a worker of `pool` that is open, or None."""
        ...


# ---------------------------------------------------------------- the plant
class Role(str, Enum):
    """What a worker of a configuration does. MIDFILL serves turns with a cached prefix; FILL serves both kinds."""

    PREFILL = "prefill"
    MIDFILL = "midfill"
    FILL = "fill"
    DECODE = "decode"
    AGGREGATED = "aggregated"


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


class Ready(NamedTuple):
    """A worker serves its new configuration, in this epoch."""

    worker: WorkerId
    epoch: int


class WorkerInfo(NamedTuple):
    """A worker that exists. `slots` None: unlimited; `staging_turns`: staged ahead of a free slot (double buffer)."""

    worker: WorkerId
    rack: int
    configuration: ConfigurationName
    role: Role
    slots: int | None
    staging_turns: int
    epoch: int


class PlantFact(NamedTuple):
    """Something that happened to the plant: `kind` is joined, lost, slowed, link_down or link_up."""

    kind: Literal["joined", "lost", "slowed", "link_down", "link_up"]
    at_s: float
    info: WorkerInfo | None
    detail: str


class Applied(NamedTuple):
    """What an actuator really set, after clipping."""

    command: BatchCommand | RetentionCommand
    clipped: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantReading:
    """Counters of the plant; reading them costs O(pools)."""

    at_s: float
    pools: Mapping[ConfigurationName, PoolReading]
    tiers: tuple[TierReading, ...] = ()
    reuse: tuple[ReuseReading, ...] = ()
    extra: Mapping[str, float] = field(default_factory=dict)


class Plant(Protocol):
    """Workers behind plain calls. A Future crosses; cancelling it withdraws the work at that instant."""

    def fill(self, worker: WorkerId, turn: TurnView, prefix: KvRef) -> Future[Filled]:
        """Prefill or midfill the turn. Raises WorkerLost, ContextOverflow through the Future."""
        ...

    def stage(self, worker: WorkerId, kv: KvRef) -> Future[Staged]:
        """Bring the KV state to the worker; may overlap the wait in the ready buffer."""
        ...

    def decode(self, worker: WorkerId, turn: TurnView, kv: Staged) -> Future[Retired]:
        """Join the batch and run to the end. Raises Preempted, WorkerLost, ContextOverflow through the Future."""
        ...

    def room(self, worker: WorkerId, turn: TurnView) -> bool:
        """Tell in O(1) whether the worker's memory would take the turn now, beside what it holds."""
        ...

    def fits(self, turn: TurnView) -> bool:
        """Tell whether any worker could ever hold the turn's context."""
        ...

    def reconfigure(self, worker: WorkerId, to: ConfigurationName) -> Future[Ready]:
        """Load and warm the configuration on a drained worker."""
        ...

    def apply(self, command: BatchCommand | RetentionCommand) -> Applied:
        """Set an actuator."""
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


# ---------------------------------------------------------------- the workload
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


Readings = AdmissionReading | BatchReading | CapacityReading | DemandReading | RetentionReading
Commands = AdmissionCommand | BatchCommand | CapacityCommand | DemandCommand | RetentionCommand
Slot = Literal["admission", "batching", "capacity", "retention", "demand"]
Workers = Iterable[WorkerInfo]
