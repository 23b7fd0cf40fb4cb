"""From a cluster's table to a cluster."""

from __future__ import annotations

import math
from typing import Any

from orchestrator.clock import Clock
from orchestrator.messages import FILL_ROLES, Role
from orchestrator.rng import stream_key
from orchestrator.turn import ConfigurationName
from plant.cluster import Cluster
from plant.cluster_spec import ConfigurationSpec, PoolSpec, RackSpec, lay_out
from plant.hidden_turns import HiddenTurns
from plant.kv.spec import KvSpec
from plant.model.measured import MeasuredTimes
from plant.model.times import ChargedFills, LinearTimes, StepTimes
from scenarios.build.faults import fault_specs, poison_specs
from scenarios.build.measured import build_measured_times
from scenarios.build.moe import MoeWorker, build_moe_worker
from scenarios.errors import UserError
from scenarios.schema.moe import MoeTimes
from scenarios.schema.plants import (
    ClusterPlant,
    Configuration,
    LinearTimesPart,
    Rack,
    RecordedTimesPart,
    WorkerPool,
)
from scenarios.schema.table_times import TableTimes


def cluster(
    part: ClusterPlant, clock: Clock, hidden_turns: HiddenTurns, seed: int = 0, kv: KvSpec | None = None
) -> Cluster:
    """Return the cluster of a table, with the tiers `kv`; what it refuses becomes one line to the user."""
    racks, pools = [_rack(rack) for rack in part.racks], [_pool(pool) for pool in part.pools]
    try:
        return Cluster(
            clock,
            hidden_turns,
            racks=racks,
            configurations=[_configuration(name, table) for name, table in part.configurations.items()],
            pools=pools,
            faults=fault_specs(part.faults, lay_out(racks, pools)),
            poisons=poison_specs(part.faults),
            kv=kv,
            load_stream=stream_key(seed, "plant.loading"),
        )
    except ValueError as error:
        raise UserError(f"plant: {error}") from error


def _rack(rack: Rack) -> RackSpec:
    settings = rack.model_dump()
    settings["flow_bytes_per_s"] = _or_inf(rack.flow_bytes_per_s)
    return RackSpec(**settings)


def _pool(pool: WorkerPool) -> PoolSpec:
    return PoolSpec(configuration=ConfigurationName(pool.configuration), workers=pool.workers)


def _configuration(name: str, table: Configuration) -> ConfigurationSpec:
    """A fill worker serves one turn at a time, so its table need not say so."""
    settings = table.model_dump(exclude={"times", "per_chunk_s", "fills"})
    settings["swap_bytes_per_s"] = _or_inf(table.swap_bytes_per_s)
    if table.slots is None and table.role in (*FILL_ROLES, Role.IDLE):
        settings["slots"] = 1
    if isinstance(table.times, MoeTimes):
        worker = _moe_worker(name, table.times)
        settings |= {
            key: value for key, value in _fixed_by_model(worker, settings).items() if key not in table.model_fields_set
        }
        return ConfigurationSpec(name=ConfigurationName(name), times=_charged(table, worker.times), **settings)
    if isinstance(table.times, TableTimes):
        measured = _measured_times(name, table.times, table.role, settings["slots"])
        return ConfigurationSpec(name=ConfigurationName(name), times=_charged(table, measured), **settings)
    return ConfigurationSpec(name=ConfigurationName(name), times=_charged(table, _times(table.times)), **settings)


def _charged(table: Configuration, times: StepTimes | None) -> StepTimes | None:
    if times is None or (table.per_chunk_s == 0.0 and table.fills == "with_decode"):
        return times
    return ChargedFills(times=times, per_chunk_s=table.per_chunk_s, apart=table.fills == "apart")


def _measured_times(name: str, times: TableTimes, role: Role, slots: int | None) -> MeasuredTimes:
    try:
        return build_measured_times(times, role, slots or 1)
    except UserError as error:
        raise UserError(f"plant.configurations.{name}.times: {error}") from error


def _moe_worker(name: str, times: MoeTimes) -> MoeWorker:
    try:
        return build_moe_worker(times)
    except UserError as error:
        raise UserError(f"plant.configurations.{name}.{error}") from error


def _fixed_by_model(worker: MoeWorker, settings: dict[str, Any]) -> dict[str, float]:  # Any: fields of several types
    """Return what a model on its placement fixes of a configuration, unless the table says otherwise."""
    return {
        "gpus": worker.gpus,
        "kv_bytes_per_token": worker.kv_bytes_per_token,
        "kv_bytes_per_turn": worker.state_bytes_per_turn,
        "kv_capacity_tokens": worker.kv_capacity_tokens(settings["slots"]),
        "load_s": worker.load_s,
    }


def startup_s(configuration: Configuration) -> float | None:
    """Return the seconds from a drained worker to one that serves, as stated or as its model makes them.

    None: the plant draws them, or a start may fail, so that no one number is declared.
    """
    if configuration.load_cv_ratio > 0.0 or configuration.fail_ratio > 0.0:
        return None
    if isinstance(configuration.times, MoeTimes) and "load_s" not in configuration.model_fields_set:
        return build_moe_worker(configuration.times).load_s + configuration.warm_s
    return configuration.load_s + configuration.warm_s


def gpus(configuration: Configuration) -> int:
    """Return the accelerators of one worker: as stated, or as its placement has them."""
    if isinstance(configuration.times, MoeTimes) and "gpus" not in configuration.model_fields_set:
        place = configuration.times.placement
        return place.pp * place.tp * place.dp
    return configuration.gpus


def _times(times: LinearTimesPart | RecordedTimesPart | None) -> StepTimes | None:
    match times:
        case None:  # an idle worker computes nothing
            return LinearTimes(base_s=0.0, per_sequence_s=0.0, per_kv_token_s=0.0, per_new_token_s=0.0)
        case RecordedTimesPart():
            return None
        case LinearTimesPart():
            return LinearTimes(**times.model_dump(exclude={"kind"}))


def _or_inf(value: float | None) -> float:
    return math.inf if value is None else value
