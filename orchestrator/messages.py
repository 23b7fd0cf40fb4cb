"""What crosses the seams: frozen readings and absolute commands, one pair a slot, and the counters of the plant.

Readings carry `now_s` (the tick) and `at_s` (when the sample was taken); `None` means not measured. Commands are
absolute; `None` leaves a thing alone. A slot's command holds only its own fields, so a law cannot reach past them.
What a plant fills in at each reading is a NamedTuple, a fifth of the cost of a frozen dataclass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple

from orchestrator.turn import ClassName, ConfigurationName


class Role(StrEnum):
    """What a worker of a configuration does.

    MIDFILL serves turns with a cached prefix; FILL serves both kinds; IDLE serves nothing and is not paid for: the
    reserve that capacity laws take workers from.
    """

    PREFILL = "prefill"
    MIDFILL = "midfill"
    FILL = "fill"
    DECODE = "decode"
    AGGREGATED = "aggregated"
    IDLE = "idle"


FILL_ROLES = (Role.PREFILL, Role.MIDFILL, Role.FILL)
FILLS = (*FILL_ROLES, Role.AGGREGATED)
DECODES = (Role.DECODE, Role.AGGREGATED)
"""The roles that do nothing but fill, those that fill, and those that decode."""


class ClassReading(NamedTuple):
    """One service class at admission."""

    backlog_turns: float
    in_flight_turns: float
    arrived_turns: float
    retired_turns: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionCommand:
    """Absolute settings of admission; `None` leaves one as it is.

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

    Levels are floats because a fluid plant has fractions of turns. Counts ending in `_total` grow from the start of
    the run. `slots` and `busy_slots` are of the decode pools; `in_flight_turns` = filling + ready + decoding.
    `service_per_s` is the predicted rate of a full pool, if the plant states one. `wait_s` is the age of the oldest
    waiting turn; `ttft_s`, `tpot_s` are means over turns since the last sample (None: none ended).
    """

    now_s: float
    at_s: float
    backlog_turns: float
    backlog_smoothed_turns: float
    filling_turns: float
    ready_turns: float
    decoding_turns: float
    in_flight_turns: float
    slots: float
    busy_slots: float
    arrived_total: float
    released_total: float
    retired_total: float
    arrival_per_s: float | None
    retire_per_s: float | None
    wait_s: float
    ttft_s: float | None
    tpot_s: float | None
    service_per_s: float | None
    preempted_total: float
    kv_used_ratio: float | None
    by_class: Mapping[ClassName, ClassReading]
    applied: AdmissionCommand
    setpoint: CapacityCommand | None


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


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityCommand:
    """Workers wanted per prepared configuration; `in_flight_setpoint_turns` is the word to the admission loop."""

    target_workers: Mapping[ConfigurationName, int] | None = None
    in_flight_setpoint_turns: float | None = None


class PoolReading(NamedTuple):
    """One pool (the workers of one configuration), kept as counters by the plant.

    `busy_slots` counts turns in decode batches or in fill; `queued_turns` wait at its workers or in line for one, save
    filled turns, which are ready; `queued_tokens` waits at fill workers. `served_total` and
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
    """Rules by kind, and which idle context goes first when a tier is full. None: leave.

    `capacity_tokens` bounds what the shared tier keeps, within its memory.
    """

    rules: tuple[RetentionRule, ...] | None = None
    order: Literal["lru", "value"] | None = None
    capacity_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionReading:
    """What the retention law sees."""

    now_s: float
    at_s: float
    tiers: tuple[TierReading, ...]
    reuse: tuple[ReuseReading, ...]
    applied: RetentionCommand


class PlantReading(NamedTuple):
    """Counters of the plant; reading them costs O(pools)."""

    at_s: float
    pools: Mapping[ConfigurationName, PoolReading]
    tiers: tuple[TierReading, ...] = ()
    reuse: tuple[ReuseReading, ...] = ()


Readings = AdmissionReading | BatchReading | CapacityReading | DemandReading | RetentionReading
Commands = AdmissionCommand | BatchCommand | CapacityCommand | DemandCommand | RetentionCommand
Slot = Literal["admission", "batching", "capacity", "retention", "demand"]
