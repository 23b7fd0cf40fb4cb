"""Cost of the attention kernels: latent, grouped-query and linear attention, and the sparse indexer."""

from __future__ import annotations

import numpy as np

from plant.model.attention import CompressedAttention, GroupedAttention, Indexer, LatentAttention, LinearAttention
from plant.model.kernels import MATH_J_PER_FLOP, Array, Cost, Machine, gemm, soft2
from plant.model.precision import FORMATS

_BF16 = FORMATS["bf16"]


def latent_decode(
    machine: Machine,
    group: LatentAttention,
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
    core = Cost(launch + soft2(compute, memory), flops, moved, flops * MATH_J_PER_FLOP[index])
    return core + indexer(machine, group, width, batch, new, cached) if group.indexer else core


def indexer(machine: Machine, group: LatentAttention, width: int, batch: Array, new: Array, cached: Array) -> Cost:
    """Return the sparse indexer: its projections, the fp8 scores of every position, and the selection."""
    return _selection(machine, _indexer_of(group), width, group.q_rank, batch, new, cached, 1.0)


def _selection(
    machine: Machine, i: Indexer, width: int, query_width: int, batch: Array, new: Array, cached: Array, ratio: float
) -> Cost:
    """Return the scores of every `ratio`-th position and the selection; nothing where the layer before selected."""
    hardware, tokens = machine.hardware, batch * new
    if i.shared:
        nothing = 0.0 * tokens
        return Cost(nothing, nothing, nothing, nothing)
    projections = gemm(machine, tokens, query_width, i.heads * i.head_dim, _BF16)
    projections = projections + gemm(machine, tokens, width, i.head_dim + i.heads, _BF16)
    seen = (cached + 0.5 * new) / ratio
    moved = (batch * (cached + new)) * (i.bytes_per_token / ratio)
    flops = (tokens * seen) * (2.0 * i.heads * i.head_dim)
    score = soft2(flops / (hardware.flops_per_s[1] * 0.35), moved / (hardware.hbm_bytes_per_s * 0.6))
    # Scores are written in float32 and read twice by the radix selection.
    select = (tokens * seen) * 12.0
    launches = 3.0 * machine.launch_ratio * hardware.launch.attention_s
    seconds = launches + score + select / (hardware.hbm_bytes_per_s * 0.5)
    return projections + Cost(seconds, flops, moved + select, flops * MATH_J_PER_FLOP[1])


def _indexer_of(group: LatentAttention) -> Indexer:
    assert group.indexer is not None
    return group.indexer


def latent_fill(
    machine: Machine,
    group: LatentAttention,
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
        core = Cost(launch + t_absorbed, absorbed, moved, absorbed * MATH_J_PER_FLOP[index])
        return core + indexer(machine, group, width, batch, new, cached)
    expanded = (tokens * seen) * (2.0 * heads * (group.nope_dim + group.rope_dim + group.value_dim))
    raised = (batch * cached) * (2.0 * group.kv_rank * heads * (group.nope_dim + group.value_dim))
    # An fp8 cache lets keys and values multiply in fp8; projecting the cached latents up stays bf16. With the rate of
    # the format 128k prompts of DeepSeek-R1 on four stages take 15.2 and 18.6 s on GB300 and GB200 as published (LMSYS,
    # February 2026), and twice that without.
    t_expanded = soft2(
        expanded / (hardware.flops_per_s[index] * hardware.shares.fill_math)
        + raised / (hardware.flops_per_s[0] * hardware.shares.gemm_math[0]),
        memory,
    )
    cheaper = t_absorbed < t_expanded
    flops = np.where(cheaper, absorbed, expanded + raised)
    attended = np.where(cheaper, absorbed, expanded) * MATH_J_PER_FLOP[index]
    math_j = attended + np.where(cheaper, 0.0, raised) * MATH_J_PER_FLOP[0]
    return Cost(launch + np.minimum(t_absorbed, t_expanded), flops, moved, math_j)


def grouped_core(
    machine: Machine,
    group: GroupedAttention,
    width: int,
    tp: int,
    kv_bytes: float,
    fill: bool,
    batch: Array,
    new: Array,
    cached: Array,
) -> Cost:
    """Return grouped-query attention, in decode or over a block of new tokens."""
    hardware = machine.hardware
    launch = machine.launch_ratio * hardware.launch.attention_s
    seen, held = cached + 0.5 * new, cached + new
    if group.window:
        seen, held = np.minimum(seen, group.window), np.minimum(held, group.window + new)
    if group.indexer:  # a selected block of positions; its scores are in `_selection`
        seen = np.minimum(seen, group.indexer.top_tokens)
        held = held if fill else np.minimum(held, group.indexer.top_tokens)
    kv_heads = max(group.kv_heads / tp, 1.0)
    moved = (batch * held) * (group.pair_dim * kv_heads * kv_bytes)
    flops = (batch * new * seen) * (2.0 * group.heads / tp * group.pair_dim)
    index = 0 if fill or kv_bytes >= 1.5 else 1
    rate = hardware.flops_per_s[index] * (hardware.shares.fill_math if fill else hardware.shares.decode_math)
    memory = moved / (hardware.hbm_bytes_per_s * hardware.shares.kv_stream)
    core = Cost(launch + soft2(flops / rate, memory), flops, moved, flops * MATH_J_PER_FLOP[index])
    if not group.indexer:
        return core
    return core + _selection(machine, group.indexer, width, width, batch, new, cached, 1.0)


def compressed_core(
    machine: Machine,
    group: CompressedAttention,
    width: int,
    tp: int,
    kv_bytes: float,
    fill: bool,
    batch: Array,
    new: Array,
    cached: Array,
) -> Cost:
    """Return attention over compressed entries and the window: one key-value head, repeated on every tensor rank."""
    hardware = machine.hardware
    launch = machine.launch_ratio * hardware.launch.attention_s
    entries = (cached + 0.5 * new) / group.ratio if group.ratio else 0.0 * cached
    held = (cached + new) / group.ratio if group.ratio else 0.0 * cached
    if group.indexer:
        entries = np.minimum(entries, group.indexer.top_tokens)
        held = held if fill else np.minimum(held, group.indexer.top_tokens)
    seen = entries + np.minimum(cached + 0.5 * new, group.window)
    moved = (batch * (held + np.minimum(cached + new, group.window + new))) * (group.head_dim * kv_bytes)
    flops = (batch * new * seen) * (4.0 * group.heads / tp * group.head_dim)
    index = 1 if kv_bytes < 1.5 else 0
    rate = hardware.flops_per_s[index] * hardware.shares.decode_math
    stream = hardware.shares.kv_stream * (0.5 if group.indexer else 1.0)
    seconds = launch + soft2(flops / rate, moved / (hardware.hbm_bytes_per_s * stream))
    core = Cost(seconds, flops, moved, flops * MATH_J_PER_FLOP[index])
    if not group.indexer:
        return core
    return core + _selection(machine, group.indexer, width, group.q_rank, batch, new, cached, float(group.ratio))


def linear_core(
    machine: Machine, group: LinearAttention, tp: int, state_bytes: float, fill: bool, batch: Array, new: Array
) -> Cost:
    """Return linear attention: the state read and written per token in decode, chunks of the block in fill.

    The fill rate is FlashKDA's and its convolution's, scaled to the heads, times the ratio of the engine.
    """
    hardware = machine.hardware
    tokens = batch * new
    heads = group.heads / tp
    matrix = heads * group.key_dim * group.value_dim
    flops = tokens * (8.0 * matrix)
    if fill:
        chunk_s = hardware.launch.linear_fill_s_per_token * heads / 96.0 * machine.engine.linear_fill_ratio
        chunk_s *= group.key_dim * group.value_dim / 16_384.0
        moved = tokens * (heads * 2.0 * (2 * group.key_dim + 2 * group.value_dim)) + batch * (
            2.0 * matrix * state_bytes
        )
        seconds = machine.launch_ratio * 3.0 * hardware.launch.gemm_s + tokens * chunk_s
        return Cost(seconds, flops, moved, flops * MATH_J_PER_FLOP[0])
    moved = tokens * (2.0 * matrix * state_bytes)
    stream = moved / (hardware.hbm_bytes_per_s * hardware.shares.state_stream)
    seconds = machine.launch_ratio * 3.0 * hardware.launch.gemm_s + stream
    return Cost(seconds, flops, moved, flops * MATH_J_PER_FLOP[0])
