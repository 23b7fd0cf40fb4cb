"""The static description of a cluster: racks, prepared configurations and pools.

Workers take the places of the racks in the order in which pools and racks are written.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from orchestrator.messages import FILL_ROLES, Role
from orchestrator.turn import ConfigurationName
from plant.model.times import StepTimes


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationSpec:
    """A prepared configuration: what a worker that has loaded it can do.

    Attributes
    ----------
    times : StepTimes or None
        Seconds of steps and chunks. None: a turn takes the server time that its trace recorded.
    slots : int or None
        Turns in one decode batch (aggregated: in fill and decode together). Fill workers serve one turn at a time.
        None: unlimited, for recorded times only.
    kv_capacity_tokens : int or None
        Positions that fit the worker's memory. None: memory is not modelled.
    kv_bytes_per_token, kv_bytes_per_turn : float
        Bytes of KV state per position, and of recurrent state per context whatever its length, for transfers.
    chunk_tokens : int
        Most new tokens that one pass computes.
    headroom_tokens : int
        Positions reserved beyond the context when a turn joins a batch.
    staging_turns : int
        Turns staged (decode) or queued (fill) ahead of a free slot.
    gpus : int
        Accelerators per worker.
    load_s, warm_s : float
        Mean seconds to load the configuration onto a drained worker, and to warm it.
    weights : str or None
        What is loaded. A worker that holds it already only changes its role, in `flip_s`.
    flip_s : float
        Seconds of such a change (process groups, graph capture), before warming.
    load_cv_ratio : float
        Coefficient of variation of loads and flips, which are lognormal; 0: always the mean.
    fail_ratio : float
        Share of loads that fail.
    fails_at_ratio : float
        The part of its time after which such a load fails; 1: at its end.
    preemption : {"recompute", "swap"}
        What happens to the KV state of a preempted turn: dropped and computed again, or moved to host memory and
        fetched back at `swap_bytes_per_s`.
    readmission : {"waits", "at_once"}
        After a preemption no turn joins the batch until one has left it; or whichever fits joins at the next step,
        which moves turns back and forth where memory is short.
    """

    name: ConfigurationName
    role: Role
    times: StepTimes | None
    slots: int | None
    kv_capacity_tokens: int | None = None
    kv_bytes_per_token: float = 0.0
    kv_bytes_per_turn: float = 0.0
    chunk_tokens: int = 8192
    headroom_tokens: int = 0
    staging_turns: int = 1
    gpus: int = 1
    load_s: float = 0.0
    warm_s: float = 0.0
    weights: str | None = None
    flip_s: float = 0.0
    load_cv_ratio: float = 0.0
    fail_ratio: float = 0.0
    fails_at_ratio: float = 1.0
    preemption: Literal["recompute", "swap"] = "recompute"
    swap_bytes_per_s: float = math.inf
    readmission: Literal["waits", "at_once"] = "waits"

    def __post_init__(self) -> None:
        if self.slots is None and self.times is not None:
            raise ValueError(f"configuration {self.name}: only recorded times may leave slots unlimited")
        if self.times is None and self.role is not Role.AGGREGATED:
            raise ValueError(f"configuration {self.name}: recorded times need the role aggregated, not {self.role}")
        if self.role in FILL_ROLES and self.slots != 1:
            raise ValueError(f"configuration {self.name}: a fill worker serves one turn at a time; slots must be 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class RackSpec:
    """`count` equal racks of `workers` places, each behind one uplink that its workers share.

    `flow_bytes_per_s` bounds one transfer (a worker's own NICs); `latency_s` precedes each.
    """

    count: int
    workers: int
    uplink_bytes_per_s: float
    flow_bytes_per_s: float = math.inf
    latency_s: float = 0.0

    def at_efficiency(self, ratio: float, set_up_s: float) -> RackSpec:
        """Return the rack with the share of the line rate that KV objects reach, and with their set-up time."""
        return replace(self, flow_bytes_per_s=self.flow_bytes_per_s * ratio, latency_s=self.latency_s + set_up_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSpec:
    """`workers` workers that begin in one configuration."""

    configuration: ConfigurationName
    workers: int


def lay_out(racks: Sequence[RackSpec], pools: Sequence[PoolSpec]) -> list[int]:
    """Return the rack of every worker, in the order of the pools.

    Raises
    ------
    ValueError
        The pools hold more workers than the racks have places.
    """
    places = [number for number, rack in enumerate(each(racks)) for _ in range(rack.workers)]
    workers = sum(pool.workers for pool in pools)
    if workers > len(places):
        raise ValueError(f"the pools hold {workers} workers, but the racks have {len(places)} places")
    return places[:workers]


def each(racks: Sequence[RackSpec]) -> list[RackSpec]:
    """Return one entry per single rack."""
    return [rack for rack in racks for _ in range(rack.count)]
