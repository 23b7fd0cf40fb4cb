"""Seconds, products and bytes of the kernels of a layer, on one accelerator, over arrays of points.

    time = launch + (compute^p + memory^p)^(1/p)

a soft roofline: p = 4 for dense products, where one side wins cleanly; p = 2 for attention and grouped products, whose
warps wait on both. All functions take and return float64 arrays and never allocate more than their result needs.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plant.model.hardware import Engine, Hardware
from plant.model.moe import Format, Grouped, Indexer, Latent, Linear

Array = npt.NDArray[np.float64]

# A tensor-core tile spans at most 128 rows; small groups use the smallest one that covers them, 8 rows at least.
_TILE_ROWS = (8.0, 128.0)


class Cost(NamedTuple):
    """What one call costs one accelerator: seconds, floating-point products x 2, bytes of fast memory moved."""

    seconds: Array
    flops: Array
    hbm_bytes: Array

    def __add__(self, other: Cost) -> Cost:  # type: ignore[override]  # sums costs, where a plain tuple would chain
        return Cost(
            self.seconds + other.seconds,
            self.flops + other.flops,
            self.hbm_bytes + other.hbm_bytes,
        )

    def scaled(self, seconds_ratio: float) -> Cost:
        """Return the same work with only part of its seconds exposed."""
        return Cost(self.seconds * seconds_ratio, self.flops, self.hbm_bytes)


class Machine(NamedTuple):
    """Hardware under an engine, with the rates that kernels need worked out once."""

    hardware: Hardware
    engine: Engine
    launch_ratio: float

    @classmethod
    def of(cls, hardware: Hardware, engine: Engine) -> Machine:
        """Join the two."""
        return cls(hardware, engine, engine.launch_ratio)


def soft2(a: Array, b: Array) -> Array:
    """Return sqrt(a^2 + b^2)."""
    return np.sqrt(a * a + b * b)


def soft4(a: Array, b: Array) -> Array:
    """Return (a^4 + b^4)^(1/4)."""
    a2, b2 = a * a, b * b
    return np.sqrt(np.sqrt(a2 * a2 + b2 * b2))


def constant(seconds: float, like: Array) -> Cost:
    """Return a cost of time alone."""
    zero = np.zeros_like(like)
    return Cost(zero + seconds, zero, zero)


def gemm(machine: Machine, tokens: Array, rows: float, columns: float, fmt: Format) -> Cost:
    """Return the cost of a dense product of `tokens` activations with a `rows` x `columns` weight."""
    hardware = machine.hardware
    index = hardware.peak(fmt)
    flops = (2.0 * rows * columns) * tokens
    moved = rows * columns * fmt.bytes_per_value + (2.0 * (rows + columns)) * tokens
    compute = flops / (hardware.flops_per_s[index] * hardware.shares.gemm_math[index])
    stream = hardware.shares.gemm_stream[_stream_index(fmt)]
    memory = moved / (hardware.hbm_bytes_per_s * stream)
    return Cost(machine.launch_ratio * hardware.launch.gemm_s + soft4(compute, memory), flops, moved)


def _stream_index(fmt: Format) -> int:
    """Row of the streaming share: narrower weights stream at a lower share of the memory's rate."""
    return 0 if fmt.bytes_per_value > 1.5 else 1 if fmt.bytes_per_value > 0.8 else 2


def feed_forward(machine: Machine, tokens: Array, width: int, inner: float, fmt: Format) -> Cost:
    """Return the cost of a gated feed-forward block: gate and up together, then down."""
    return gemm(machine, tokens, width, 2.0 * inner, fmt) + gemm(machine, tokens, inner, width, fmt)


def elementwise(machine: Machine, tokens: Array, width: int, streams: float) -> Cost:
    """Return norms, rotations, quantisation and residual sums: `streams` bytes per value of the hidden width."""
    hardware = machine.hardware
    moved = (width * streams) * tokens
    seconds = machine.launch_ratio * hardware.launch.elementwise_s + moved / (hardware.hbm_bytes_per_s * 0.7)
    return Cost(seconds, np.zeros_like(moved), moved)


def latent_decode(
    machine: Machine,
    group: Latent,
    *,
    width: int,
    tp: int,
    shards: int,
    kv_bytes: float,
    batch: Array,
    new: Array,
    cached: Array,
) -> Cost:
    """Return absorbed latent attention: KV read once for all heads and repeated on every tensor rank but the shards.

    Parameters
    ----------
    batch, new, cached : array
        Sequences per data-parallel rank, new tokens and cached positions of each.
    """
    hardware = machine.hardware
    launch = machine.launch_ratio * hardware.launch.attention_s
    seen = cached + 0.5 * new
    if group.indexer:
        seen = np.minimum(seen, group.indexer.top_tokens)
    moved = (batch * (seen + 0.5 * new)) * ((group.kv_rank + group.rope_dim) * kv_bytes / shards)
    flops = (batch * new * seen) * (2.0 * group.heads / tp * (2 * group.kv_rank + group.rope_dim))
    index = 1 if kv_bytes < 1.5 else 0
    compute = flops / (hardware.flops_per_s[index] * hardware.shares.decode_math)
    # A sparse gather reads scattered 576-value rows; half of the streaming share is what the DSA tables show.
    stream = hardware.shares.kv_stream * (0.5 if group.indexer else 1.0)
    memory = moved / (hardware.hbm_bytes_per_s * stream)
    core = Cost(launch + soft2(compute, memory), flops, moved)
    return core + indexer(machine, group, width, batch, new, cached) if group.indexer else core


def indexer(machine: Machine, group: Latent, width: int, batch: Array, new: Array, cached: Array) -> Cost:
    """Return the sparse indexer: its projections, the fp8 scores of every position, and the selection."""
    hardware, i = machine.hardware, _indexer_of(group)
    tokens = batch * new
    projections = gemm(machine, tokens, group.q_rank, i.heads * i.head_dim, _BF16)
    projections = projections + gemm(machine, tokens, width, i.head_dim + i.heads, _BF16)
    seen = cached + 0.5 * new
    moved = (batch * (cached + new)) * i.bytes_per_token
    flops = (tokens * seen) * (2.0 * i.heads * i.head_dim)
    score = soft2(flops / (hardware.flops_per_s[1] * 0.35), moved / (hardware.hbm_bytes_per_s * 0.6))
    # Scores are written in float32 and read twice by the radix selection.
    select = (tokens * seen) * 12.0
    launches = 3.0 * machine.launch_ratio * hardware.launch.attention_s
    seconds = launches + score + select / (hardware.hbm_bytes_per_s * 0.5)
    return projections + Cost(seconds, flops, moved + select)


def _indexer_of(group: Latent) -> Indexer:
    assert group.indexer is not None
    return group.indexer


_BF16 = Format(name="bf16", bytes_per_value=2.0, math="bf16")


def latent_fill(
    machine: Machine,
    group: Latent,
    *,
    width: int,
    tp: int,
    kv_bytes: float,
    batch: Array,
    new: Array,
    cached: Array,
) -> Cost:
    """Return latent attention over a block of new tokens: the cheaper of absorbed and expanded form.

    The expanded form pays to project the cached latents up to keys and values; that second term decides midfill.
    """
    hardware = machine.hardware
    launch = machine.launch_ratio * hardware.launch.attention_s
    tokens, seen = batch * new, cached + 0.5 * new
    heads = group.heads / tp
    moved = (batch * (cached + new)) * ((group.kv_rank + group.rope_dim) * kv_bytes)
    memory = moved / (hardware.hbm_bytes_per_s * hardware.shares.kv_stream)
    kept = np.minimum(seen, group.indexer.top_tokens) if group.indexer else seen
    absorbed = (tokens * kept) * (2.0 * heads * (2 * group.kv_rank + group.rope_dim))
    index = 1 if kv_bytes < 1.5 else 0
    t_absorbed = soft2(absorbed / (hardware.flops_per_s[index] * hardware.shares.decode_math), memory)
    if group.indexer:
        core = Cost(launch + t_absorbed, absorbed, moved)
        return core + indexer(machine, group, width, batch, new, cached)
    expanded = (tokens * seen) * (2.0 * heads * (group.nope_dim + group.rope_dim + group.value_dim))
    raised = (batch * cached) * (2.0 * group.kv_rank * heads * (group.nope_dim + group.value_dim))
    bf16 = hardware.flops_per_s[0]
    t_expanded = soft2(
        expanded / (bf16 * hardware.shares.fill_math) + raised / (bf16 * hardware.shares.gemm_math[0]), memory
    )
    cheaper = t_absorbed < t_expanded
    flops = np.where(cheaper, absorbed, expanded + raised)
    return Cost(launch + np.minimum(t_absorbed, t_expanded), flops, moved)


def grouped_core(
    machine: Machine, group: Grouped, tp: int, kv_bytes: float, fill: bool, batch: Array, new: Array, cached: Array
) -> Cost:
    """Return grouped-query attention, in decode or over a block of new tokens."""
    hardware = machine.hardware
    launch = machine.launch_ratio * hardware.launch.attention_s
    seen, held = cached + 0.5 * new, cached + new
    if group.window:
        seen, held = np.minimum(seen, group.window), np.minimum(held, group.window + new)
    kv_heads = max(group.kv_heads / tp, 1.0)
    moved = (batch * held) * (2.0 * group.head_dim * kv_heads * kv_bytes)
    flops = (batch * new * seen) * (4.0 * group.heads / tp * group.head_dim)
    if fill:
        rate = hardware.flops_per_s[0] * hardware.shares.fill_math
    else:
        rate = hardware.flops_per_s[1 if kv_bytes < 1.5 else 0] * hardware.shares.decode_math
    memory = moved / (hardware.hbm_bytes_per_s * hardware.shares.kv_stream)
    return Cost(launch + soft2(flops / rate, memory), flops, moved)


def linear_core(
    machine: Machine, group: Linear, tp: int, state_bytes: float, fill: bool, batch: Array, new: Array
) -> Cost:
    """Return linear attention: the state read and written per token in decode, chunks of the block in fill.

    The fill rate is FlashKDA's and its convolution's, scaled to the heads, times the engine's own ratio.
    """
    hardware = machine.hardware
    tokens = batch * new
    heads = group.heads / tp
    matrix = heads * group.key_dim * group.value_dim
    flops = tokens * (8.0 * matrix)
    if fill:
        chunk_s = hardware.launch.linear_fill_s_per_token * heads / 96.0 * machine.engine.linear_fill_ratio
        moved = tokens * (heads * 2.0 * (2 * group.key_dim + 2 * group.value_dim)) + batch * (
            2.0 * matrix * state_bytes
        )
        return Cost(machine.launch_ratio * 3.0 * hardware.launch.gemm_s + tokens * chunk_s, flops, moved)
    moved = tokens * (2.0 * matrix * state_bytes)
    stream = moved / (hardware.hbm_bytes_per_s * hardware.shares.state_stream)
    return Cost(machine.launch_ratio * 3.0 * hardware.launch.gemm_s + stream, flops, moved)


def distinct_experts(experts: int, per_token: int, tokens: Array, skew: float = 0.0) -> Array:
    """Return the expected number of different experts that `tokens` tokens select.

    Uniform routing: E (1 - (1 - k/E)^n). With a Zipf exponent `skew` expert e is selected with probability p_e
    (capped at 1, summing to k), and the sum of 1 - (1 - p_e)^n takes its place, tabulated over n.
    """
    if skew <= 0.0:
        miss: float = math.log1p(-per_token / experts)
        return -experts * np.expm1(tokens * miss)
    ranks = np.arange(1, experts + 1, dtype=float) ** -skew
    share = np.minimum(per_token * ranks / ranks.sum(), 0.999999)
    for _ in range(20):
        free = share < 0.999999
        spare = per_token - share[~free].sum()
        share[free] = np.minimum(spare * ranks[free] / ranks[free].sum(), 0.999999)
    knots = np.geomspace(0.25, 65_536.0, 256)
    table = (-np.expm1(knots[:, None] * np.log1p(-share))).sum(axis=1)
    return np.asarray(np.interp(np.log(np.maximum(tokens, 0.25)), np.log(knots), table), dtype=float)


class Routed(NamedTuple):
    """Cost of the routed experts on one rank, with the numbers that explain it."""

    cost: Cost
    distinct: Array
    assigned: Array


def routed_experts(
    machine: Machine,
    *,
    experts: int,
    per_token: int,
    width: int,
    inner: float,
    groups: int,
    fmt: Format,
    tokens: Array,
    hot_ratio: float,
    skew: float,
) -> Routed:
    """Return sort, permute and the grouped products of the experts that one of `groups` ranks holds.

    A rank's `assigned` rows fall on `distinct` experts; each expert's rows are padded to whole tiles, half a tile of
    waste on average, and the busiest rank has `hot_ratio` of the mean.
    """
    hardware = machine.hardware
    assigned = tokens * (per_token / groups)
    distinct = distinct_experts(experts, per_token, tokens, skew) / groups
    distinct = np.maximum(distinct, np.minimum(assigned, 1.0))
    weights = 3.0 * width * inner
    per_expert = assigned / np.maximum(distinct, 1e-12)
    tile = np.clip(per_expert, *_TILE_ROWS)
    rows = hot_ratio * assigned + 0.5 * tile * distinct
    flops = (2.0 * weights) * assigned
    permuted = assigned * (6.0 * (width + inner))
    moved = distinct * (weights * fmt.bytes_per_value) + permuted
    index = hardware.peak(fmt)
    compute = (2.0 * weights) * rows / (hardware.flops_per_s[index] * hardware.shares.expert_math[index])
    memory = distinct * (weights * fmt.bytes_per_value) / (hardware.hbm_bytes_per_s * hardware.shares.expert_stream)
    memory = memory + distinct * hardware.launch.expert_ramp_s
    seconds = machine.launch_ratio * hardware.launch.experts_s + soft2(compute, memory)
    seconds = seconds + permuted / (hardware.hbm_bytes_per_s * 0.7)
    return Routed(Cost(seconds, flops, moved), distinct, assigned)
