"""The operations of one pass through all layers, each with its seconds, bytes and FLOPs.

`walk` is the only list of operations; the four regimes, memory traffic, energy, arithmetic intensity and the Gantt
chart are sums over what it yields.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from plant.model.attention import (
    Attention,
    CompressedAttention,
    GroupedAttention,
    LatentAttention,
    LinearAttention,
)
from plant.model.attention_ffn import remote_experts
from plant.model.attention_kernels import compressed_core, grouped_core, latent_decode, latent_fill, linear_core
from plant.model.balance import rank_loads
from plant.model.expert_kernels import routed_experts
from plant.model.kernels import Array, Cost, Machine, elementwise, feed_forward, gemm
from plant.model.moe import Model
from plant.model.network import Transfer, all_reduce, dispatch_combine
from plant.model.placement import Placement
from plant.model.precision import FORMATS, Precision

BF16 = FORMATS["bf16"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What stays the same over all points of a grid: model, precision, machine, placement."""

    model: Model
    precision: Precision
    machine: Machine
    place: Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation of a layer on one accelerator: it runs in `layers` layers at `cost` each.

    `part` is attention, experts, dense or network; `link_bytes` are sent per layer at network `level`.
    """

    name: str
    part: str
    layers: int
    cost: Cost
    link_bytes: Array | None = None
    level: str = ""

    @property
    def hidden(self) -> bool:
        """Whether two-batch overlap may hide it."""
        return self.name in ("dispatch", "combine")


def attention_projections(setting: Setting, group: Attention, tokens: Array) -> Cost:
    """Return the dense products around attention: in, absorbed and out."""
    machine, model, tp = setting.machine, setting.model, setting.place.tp
    fmt, width = setting.precision.attention_format, setting.model.width
    if isinstance(group, LinearAttention):
        values, keys = group.heads * group.value_dim, group.key_heads * group.key_dim
        gate = values if not group.gate_rank else group.gate_rank
        inward = gemm(machine, tokens, width, (2 * keys + values + gate) / tp + group.decay_rank + group.heads, fmt)
        if group.decay_rank:
            inward = inward + gemm(machine, tokens, group.decay_rank, group.heads * group.key_dim / tp, fmt)
        return inward + gemm(machine, tokens, values / tp, width, fmt)
    if isinstance(group, GroupedAttention):
        inner, outer = group.heads * group.head_dim, group.heads * (group.pair_dim - group.head_dim)
        pair = group.head_dim if group.shared_kv else group.pair_dim
        columns = inner * (2 if group.gate else 1) + max(group.kv_heads, tp) * pair
        return gemm(machine, tokens, width, columns / tp, fmt) + gemm(machine, tokens, outer / tp, model.width, fmt)
    if isinstance(group, CompressedAttention):
        inner = group.heads * group.head_dim
        kept = group.head_dim * (1 if not group.ratio else 5 if group.indexer else 3)
        inward = gemm(machine, tokens, width, group.q_rank + kept, fmt)
        inward = inward + gemm(machine, tokens, group.q_rank, inner / tp, fmt)
        # Each group of heads has an output block of its own.
        middle = gemm(machine, tokens, inner / tp, group.out_rank, fmt)
        return inward + middle + gemm(machine, tokens, group.out_groups * group.out_rank / tp, width, fmt)
    heads = group.heads / tp
    query = heads * (group.nope_dim + group.rope_dim)
    inward = gemm(machine, tokens, width, (group.q_rank or query) + group.kv_rank + group.rope_dim, fmt)
    if group.q_rank:
        inward = inward + gemm(machine, tokens, group.q_rank, query, fmt)
    # The absorbed key and value products run as two batched bf16 products over the heads.
    absorbed = gemm(machine, tokens, group.kv_rank, heads * (group.nope_dim + group.value_dim), BF16)
    if group.gate:
        inward = inward + gemm(machine, tokens, width, heads * group.value_dim, fmt)
    return inward + absorbed + gemm(machine, tokens, heads * group.value_dim, width, fmt)


def attention_core(setting: Setting, group: Attention, fill: bool, batch: Array, new: Array, cached: Array) -> Cost:
    """Return the reading of context: KV scan, indexer, or recurrent state."""
    machine, place, precision = setting.machine, setting.place, setting.precision
    if isinstance(group, LinearAttention):
        return linear_core(machine, group, place.tp, precision.state_bytes, fill, batch, new)
    if isinstance(group, GroupedAttention):
        return grouped_core(machine, group, setting.model.width, place.tp, precision.kv_bytes, fill, batch, new, cached)
    if isinstance(group, CompressedAttention):
        kv = precision.kv_bytes
        return compressed_core(machine, group, setting.model.width, place.tp, kv, fill, batch, new, cached)
    width, kv = setting.model.width, precision.kv_bytes
    if fill:
        return latent_fill(machine, group, width=width, tp=place.tp, kv_bytes=kv, batch=batch, new=new, cached=cached)
    shards = place.context_parallel
    return latent_decode(
        machine, group, width=width, tp=place.tp, shards=shards, kv_bytes=kv, batch=batch, new=new, cached=cached
    )


def attention_operations(setting: Setting, fill: bool, batch: Array, new: Array, cached: Array) -> Iterator[Operation]:
    """Yield what reads context: the only operations that depend on it."""
    for group in setting.model.attention:
        cost = attention_core(setting, group, fill, batch, new, cached)
        yield Operation(name=f"{group.label} core", part="attention", layers=group.layers, cost=cost)


def _network(name: str, layers: int, transfer: Transfer) -> Operation:
    zero = np.zeros_like(transfer.seconds)
    cost = Cost(transfer.seconds, zero, zero, zero)
    return Operation(
        name=name, part="network", layers=layers, cost=cost, link_bytes=transfer.link_bytes, level=transfer.level
    )


def token_operations(setting: Setting, fill: bool, tokens: Array) -> Iterator[Operation]:
    """Yield what depends on the tokens of a pass alone, for `tokens` tokens on each data-parallel rank."""
    model, machine, place, precision = setting.model, setting.machine, setting.place, setting.precision
    for group in model.attention:
        cost = attention_projections(setting, group, tokens)
        yield Operation(name=f"{group.label} projections", part="attention", layers=group.layers, cost=cost)
    yield Operation(
        name="norms", part="dense", layers=model.layers, cost=elementwise(machine, tokens, model.width, 24.0)
    )
    if place.tp > 1:
        reduced = all_reduce(machine, tokens * (2.0 * model.width), place.tp)
        blocks = model.moe_layers + model.dense_layers if place.dp == 1 else 0
        yield _network("all-reduce", model.layers + blocks, reduced)
    if place.context_parallel > 1:
        gathered = all_reduce(machine, tokens * (2.0 * model.width), place.context_parallel)
        latent = sum(group.layers for group in model.attention if isinstance(group, LatentAttention))
        yield _network("context gather", 2 * latent, gathered)
    if model.dense_layers:
        cost = feed_forward(
            machine, tokens, model.width, model.dense_ffn / place.tp, precision.dense_format, model.ffn_matrices
        )
        yield Operation(name="dense FFN", part="dense", layers=model.dense_layers, cost=cost)
    if model.moe_layers:
        yield from expert_layer_operations(setting, fill, tokens)


def expert_layer_operations(setting: Setting, fill: bool, tokens: Array) -> Iterator[Operation]:
    """Yield the router, shared experts, latent projections and routed experts."""
    model, machine, place, precision = setting.model, setting.machine, setting.place, setting.precision
    layers = model.moe_layers
    yield Operation(
        name="router", part="experts", layers=layers, cost=gemm(machine, tokens, model.width, model.experts, BF16)
    )
    if model.shared_experts:
        inner = model.shared_experts * model.shared_ffn / place.tp
        cost = feed_forward(machine, tokens, model.width, inner, precision.dense_format, model.ffn_matrices)
        exposed = cost.scaled(machine.engine.shared_exposed_ratio)
        yield Operation(name="shared experts", part="dense", layers=layers, cost=exposed)
    if model.latent:
        down = gemm(machine, tokens, model.width, model.expert_width, precision.dense_format)
        up = gemm(machine, tokens, model.expert_width, model.width, precision.dense_format)
        yield Operation(name="latent projections", part="experts", layers=layers, cost=down + up)
    if place.remote_experts:
        way, cost = remote_experts(machine, model, precision, place.dp, tokens)
        yield _network("to remote experts and back", layers, way)
        yield Operation(name="remote experts", part="experts", layers=layers, cost=cost)
    else:
        yield from routed_operations(setting, fill, tokens)


def routed_operations(setting: Setting, fill: bool, tokens: Array) -> Iterator[Operation]:
    """Yield dispatch, the routed experts, and combine."""
    model, machine, place, precision = setting.model, setting.machine, setting.place, setting.precision
    loads = None
    if not place.even or model.experts % place.expert_groups:
        loads = rank_loads(
            model.experts,
            model.experts_per_token,
            place.expert_groups,
            place.redundant_experts,
            place.skew,
            place.balanced,
        )
    out, back = dispatch_combine(
        machine,
        place,
        copy_ratio=loads.copy_ratio if loads else 1.0,
        width=model.routed_width,
        per_token=model.experts_per_token,
        dispatch_bytes=precision.dispatch_bytes,
        fill=fill,
        tokens=tokens,
    )
    experts = routed_experts(
        machine,
        experts=model.experts,
        per_token=model.experts_per_token,
        width=model.routed_width,
        inner=model.expert_ffn / place.expert_tp,
        groups=place.expert_groups,
        fmt=precision.expert_format,
        tokens=tokens * place.dp,
        hot_ratio=place.hot_ratio,
        loads=loads,
        matrices=model.ffn_matrices,
    )
    if place.dp > 1:
        yield _network("dispatch", model.moe_layers, out)
    yield Operation(name="routed experts", part="experts", layers=model.moe_layers, cost=experts)
    if place.dp > 1:
        yield _network("combine", model.moe_layers, back)


def walk(setting: Setting, fill: bool, batch: Array, new: Array, cached: Array) -> Iterator[Operation]:
    """Yield every operation of one pass of `batch` sequences per rank with `new` tokens after `cached` positions."""
    yield from attention_operations(setting, fill, batch, new, cached)
    yield from token_operations(setting, fill, batch * new)
