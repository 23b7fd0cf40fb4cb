"""From the table of tiers to their spec, held to the blocks and the contexts of the workload."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from plant.kv.spec import KvSpec, TierSpec
from scenarios.build.conversations import prepared
from scenarios.build.kv_presets import with_preset
from scenarios.errors import UserError
from scenarios.schema.kv import KvPart, ServedTier, Tier
from scenarios.schema.plants import Rack
from scenarios.schema.scenario import Scenario
from scenarios.schema.trace_workloads import MixtureWorkload, Played, ReplayWorkload
from scenarios.schema.workloads import RequestsWorkload

GB_HOUR = 1e9 * 3600.0
NO_TRACE_BLOCK_TOKENS = 64


def kv_spec(part: KvPart, racks: Sequence[Rack], scenario: Scenario) -> KvSpec:
    """Return the tiers of a table, on these racks.

    Raises
    ------
    UserError
        Trace and engine count in blocks that do not divide; the shared tier is smaller than one context; no such
        hardware.
    """
    workers = sum(rack.count * rack.workers for rack in racks)
    part = with_preset(part, workers)
    if part.replicas > part.network.servers:
        raise UserError(
            f"plant.kv.replicas = {part.replicas}: as many copies need as many network servers; {part.hardware} on "
            f"these racks makes {part.network.servers} of them"
        )
    block, typical = _blocks_and_context(scenario)
    engine = part.engine_block_tokens
    if engine % block and block % engine:
        raise UserError(
            f"plant.kv.engine_block_tokens = {engine}: neither divides the trace's blocks of {block} tokens nor is "
            f"divided by them; {block} or a multiple of it would be right"
        )
    tiers = (("node", part.node, 1), ("network", part.network, part.replicas), ("ssd", part.ssd, 1))
    for name, tier, copies in tiers:
        capacity = None if tier is None else tier.capacity_bytes
        size = typical * part.bytes_per_token * copies
        if capacity is not None and capacity < size:
            raise UserError(
                f"plant.kv.{name}.capacity_bytes = {capacity:g}: holds not one context of this workload, whose median "
                f"prompt of {typical:,.0f} tokens is {size:.4g} bytes"
            )
    for candidate in scenario.candidates:
        tokens = getattr(candidate.retention, "capacity_tokens", None)
        if tokens is not None and tokens < typical:
            raise UserError(
                f"candidates.{candidate.name}.retention.capacity_tokens = {tokens}: holds not one context of this "
                f"workload, whose median prompt is {typical:,.0f} tokens"
            )
    settings = part.model_dump(
        exclude={
            *("hardware", "gpus_per_worker", "tiers", "node", "network", "ssd", "engine_block_tokens"),
            *("nics", "nic_bytes_per_s", "hbm_price_per_gb_hour"),
        }
    )
    try:
        return KvSpec(
            node=None if part.node is None else replace(_tier(part.node), servers=workers),
            network=_tier(part.network),
            ssd=None if part.ssd is None else _tier(part.ssd),
            block_tokens=block,
            reuse_tokens=engine,
            typical_tokens=typical,
            nics=part.nics or 1,
            nic_bytes_per_s=math.inf if part.nic_bytes_per_s is None else part.nic_bytes_per_s,
            hbm_price_per_byte_s=part.hbm_price_per_gb_hour / GB_HOUR,
            **settings,
        )
    except ValueError as error:
        raise UserError(f"plant.{error}") from error


def _blocks_and_context(scenario: Scenario) -> tuple[int, float]:
    """Return the workload's block and its median prompt, in tokens; 0: it has no contexts."""
    workload = scenario.workload
    if isinstance(workload, RequestsWorkload):
        return workload.block_tokens, 0.0
    parts = workload.parts.values() if isinstance(workload, MixtureWorkload) else [workload]
    played = [prepared(part.conversations) for part in parts if isinstance(part, Played | ReplayWorkload)]
    sizes = sorted({script.block_tokens for conversations in played for script in conversations.scripts})
    if len(sizes) > 1:
        raise UserError(f"plant.kv: the workload's traces count in blocks of {sizes} tokens; tiers need one size")
    medians = [conversations.median_prompt_tokens for conversations in played]
    return (sizes[0] if sizes else NO_TRACE_BLOCK_TOKENS), max(medians, default=0.0)


def _tier(part: Tier) -> TierSpec:
    return TierSpec(
        capacity_bytes=math.inf if part.capacity_bytes is None else part.capacity_bytes,
        bytes_per_s=math.inf if part.bytes_per_s is None else part.bytes_per_s,
        latency_s=part.latency_s,
        price_per_byte_s=part.price_per_gb_hour / GB_HOUR,
        servers=part.servers if isinstance(part, ServedTier) else 1,
    )
