"""Cost of the routed experts on one rank, and how many different experts a number of tokens selects."""

from __future__ import annotations

import math

import numpy as np

from plant.model.balance import RankLoads, popularity
from plant.model.kernels import MATH_J_PER_FLOP, Array, Cost, Machine, soft2
from plant.model.precision import Format

# A tensor-core tile spans at most 128 rows; small groups use the smallest one that covers them, 8 rows at least.
_TILE_ROWS = (8.0, 128.0)


def distinct_experts(experts: int, per_token: int, tokens: Array, skew: float = 0.0) -> Array:
    """Return the expected number of different experts that `tokens` tokens select.

    Uniform routing: E (1 - (1 - k/E)^n). With a Zipf exponent `skew` expert e is selected with probability p_e
    (capped at 1, summing to k), and the sum of 1 - (1 - p_e)^n takes its place, tabulated over n.
    """
    if skew <= 0.0:
        miss: float = math.log1p(-per_token / experts)
        return -experts * np.expm1(tokens * miss)
    share = popularity(experts, per_token, skew)
    knots = np.geomspace(0.25, 65_536.0, 256)
    table = (-np.expm1(knots[:, None] * np.log1p(-share))).sum(axis=1)
    return np.asarray(np.interp(np.log(np.maximum(tokens, 0.25)), np.log(knots), table), dtype=float)


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
    loads: RankLoads | None = None,
    matrices: int = 3,
) -> Cost:
    """Return sort, permute and the grouped products of the experts that one of `groups` ranks holds.

    A rank's `assigned` rows fall on `distinct` experts; each expert's rows are padded to whole tiles, half a tile of
    waste on average, and the busiest rank has `hot_ratio` of the mean, or what `loads` makes it where that is more.
    """
    hardware = machine.hardware
    assigned = tokens * (per_token / groups)
    if loads is None:
        distinct = distinct_experts(experts, per_token, tokens) / groups
    else:
        distinct, hot_ratio = loads.distinct(tokens), max(hot_ratio, loads.load_ratio)
    distinct = np.maximum(distinct, np.minimum(assigned, 1.0))
    weights = float(matrices) * width * inner
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
    return Cost(seconds, flops, moved, flops * MATH_J_PER_FLOP[index])
