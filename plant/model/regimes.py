"""Seconds of a pass in the four regimes: prefill, midfill, decode attention, decode experts (essay, section 3).

All functions take arrays of points.

A pass through a worker takes

    T = sum over layers + hand-offs + once-a-pass costs

With pp stages a token meets all of them; a full pipeline holds pp micro-batches, and its pace is that of the stage
with the most layers: one token per sequence every pp x T_stage. Data-parallel ranks of one expert group walk in
lock-step (essay, section 3.4), so `batch` is the busiest rank's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plant.model.hardware import Engine, Hardware
from plant.model.kernels import Array, Machine, gemm
from plant.model.layer import BF16, Operation, Setting, walk
from plant.model.moe import Model
from plant.model.network import hand_off
from plant.model.placement import Placement
from plant.model.precision import Precision

ArrayLike = npt.ArrayLike


class Pass(NamedTuple):
    """One pass: seconds, products with their joules, bytes of fast memory on one accelerator of every stage together.

    `link_bytes` by network level, likewise. `attention_s`, `experts_s`, `network_s` are the parts before overlap.
    """

    seconds: Array
    flops: Array
    hbm_bytes: Array
    math_j: Array
    link_bytes: dict[str, Array]
    attention_s: Array
    experts_s: Array
    network_s: Array


def setting_of(
    model: Model, hardware: Hardware, engine: Engine, place: Placement, precision: Precision | None = None
) -> Setting:
    """Return the setting of a grid of points; the precision of the model unless another is given."""
    return Setting(
        model=model, precision=precision or model.precision, machine=Machine.of(hardware, engine), place=place
    )


def _points(*values: ArrayLike) -> tuple[Array, ...]:
    arrays = tuple(np.asarray(v, dtype=float) for v in values)
    return arrays if len({a.shape for a in arrays}) == 1 else tuple(np.broadcast_arrays(*arrays))


def run_pass(setting: Setting, batch: ArrayLike, new: ArrayLike, cached: ArrayLike, *, fill: bool) -> Pass:
    """Return one pass of `batch` sequences per data-parallel rank, `new` tokens each after `cached` positions."""
    b, q, c = _points(batch, new, cached)
    engine = setting.machine.engine
    split = 2.0 if engine.two_batch_overlap and setting.place.dp > 1 else 1.0
    operations = list(walk(setting, fill, b / split, q, c))
    zero = np.zeros_like(b)
    compute, hidden, flops, moved, math_j = (zero.copy() for _ in range(5))
    parts = {"attention": zero.copy(), "experts": zero.copy(), "network": zero.copy(), "dense": zero.copy()}
    links: dict[str, Array] = {}
    for op in operations:
        total = op.layers * op.cost.seconds
        parts[op.part] += total
        if op.hidden:
            hidden += total
        else:
            compute += total
        flops += op.layers * op.cost.flops
        moved += op.layers * op.cost.hbm_bytes
        math_j += op.layers * op.cost.math_j
        if op.link_bytes is not None:
            links[op.level] = links.get(op.level, zero) + split * op.layers * op.link_bytes
    if split > 1.0:
        seconds = _overlapped(engine, fill, compute, hidden)
    else:
        seconds = compute + hidden
    if fill:
        seconds = np.maximum(seconds, engine.eager_layer_s * setting.model.layers)
    around = _around(setting, fill, b, q, links)
    seconds, handed = seconds + around[0], around[1]
    return Pass(
        seconds,
        split * flops,
        split * moved,
        split * math_j,
        links,
        split * parts["attention"],
        split * parts["experts"],
        split * parts["network"] + handed,
    )


def _overlapped(engine: Engine, fill: bool, compute: Array, hidden: Array) -> Array:
    """Two half batches: the transfers of one under the products of the other."""
    if fill:
        compute = compute / engine.fill_math_ratio
    loss = engine.overlap_loss_ratio * np.minimum(compute, hidden)
    return 2.0 * (np.maximum(compute, hidden) + loss)


def _around(setting: Setting, fill: bool, b: Array, q: Array, links: dict[str, Array]) -> tuple[Array, Array]:
    """Return the seconds of head, once-a-pass cost and hand-offs, and the hand-offs alone; their bytes join `links`."""
    model, place, machine = setting.model, setting.place, setting.machine
    rows = b if fill else b * q
    head = gemm(machine, rows, model.width, model.vocabulary / place.tp, BF16)
    handed = np.zeros_like(b)
    if place.pp > 1:
        passed = hand_off(machine, place, model.width, b * q)
        handed = (place.pp - 1) * passed.seconds
        links[passed.level] = links.get(passed.level, np.zeros_like(b)) + (place.pp - 1) * passed.link_bytes
    return head.seconds + machine.engine.step_s + handed, handed


def stage_excess_ratio(model: Model, pp: int) -> float:
    """Return the fullest stage's layers over the mean: 93 layers on 4 stages leave one with 24, 3 % more."""
    return math.ceil(model.layers / pp) * pp / model.layers


class Decode(NamedTuple):
    """Decode at steady state: seconds per output token of a sequence, output tokens per second and accelerator."""

    tpot_s: Array
    tokens_per_s_per_gpu: Array
    step: Pass


def decode(
    setting: Setting, batch: ArrayLike, context: ArrayLike, *, draft_tokens: int = 0, accepted_tokens: float = 1.0
) -> Decode:
    """Return decode with `batch` sequences per data-parallel rank and micro-batch, each over `context` positions.

    Speculation verifies 1 + `draft_tokens` positions a pass, of which `accepted_tokens` become output on average.
    """
    place = setting.place
    b, c = _points(batch, context)
    step = run_pass(setting, b, np.full_like(b, 1.0 + draft_tokens), c, fill=False)
    beat = step.seconds * stage_excess_ratio(setting.model, place.pp)
    tpot = beat / accepted_tokens
    return Decode(tpot, b * place.dp * place.pp / tpot / place.gpus, step)


class Fill(NamedTuple):
    """Prefill or midfill: seconds to the first token, new tokens per second and accelerator at a full pipe."""

    ttft_s: Array
    tokens_per_s_per_gpu: Array
    step: Pass


def fill(setting: Setting, new: ArrayLike, cached: ArrayLike = 0.0, batch: ArrayLike = 1.0, chunks: int = 1) -> Fill:
    """Return the filling of `new` tokens after `cached` positions, by `batch` sequences per data-parallel rank.

    With `chunks` the block enters the pipeline in that many pieces, each attending to those before it. The first piece
    passes all stages, and each further one comes out a fullest stage later. Throughput is that of a pipe kept full.
    """
    place = setting.place
    b, n, c = _points(batch, new, cached)
    piece = n / chunks
    if chunks == 1:
        total = run_pass(setting, b, n, c, fill=True)
    else:
        starts = c[..., None] + np.arange(chunks) * piece[..., None]
        total = _summed(run_pass(setting, b[..., None], piece[..., None], starts, fill=True))
    stage = total.seconds / chunks / place.pp * stage_excess_ratio(setting.model, place.pp)
    ttft = total.seconds / chunks + stage * (chunks - 1) if place.pp > 1 else total.seconds
    return Fill(ttft, b * n * place.dp / (stage * chunks) / place.gpus, total)


def _summed(step: Pass) -> Pass:
    """Sum passes over their last axis."""
    return Pass(
        step.seconds.sum(axis=-1),
        step.flops.sum(axis=-1),
        step.hbm_bytes.sum(axis=-1),
        step.math_j.sum(axis=-1),
        {level: sent.sum(axis=-1) for level, sent in step.link_bytes.items()},
        step.attention_s.sum(axis=-1),
        step.experts_s.sum(axis=-1),
        step.network_s.sum(axis=-1),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Intrusion:
    """What a midfill does to a live decode pipeline (essay, section 6): delay, idle stage time, and the share lost.

    `stall_s` is the delay that every decoding sequence sees; `lost_ratio` the part of the pipeline's stage time
    between two such midfills that nobody uses, when they come every `period_s`.
    """

    stall_s: float
    stage_fill_s: float
    stage_decode_s: float
    lost_ratio: float


def midfill_intrusion(fill_s: float, step_s: float, pp: int, period_s: float) -> Intrusion:
    """Return the bubble that one midfill opens in a decode pipeline of `pp` stages.

    The block holds a stage for F = fill/pp while a decode micro-batch holds it for D = step/pp. Stages ahead of it run
    dry and those behind it wait: each of the pp micro-batches is late by F - D once, and every stage idles for
    (pp - 1) (F - D) / pp of the time that the block needs to pass.
    """
    stage_fill, stage_decode = fill_s / pp, step_s / pp
    late = max(stage_fill - stage_decode, 0.0)
    idle = late * (pp - 1)
    return Intrusion(
        stall_s=stage_fill,
        stage_fill_s=stage_fill,
        stage_decode_s=stage_decode,
        lost_ratio=min(idle / max(period_s, 1e-12), 1.0),
    )


def operations(setting: Setting, batch: float, new: float, cached: float, *, fill: bool) -> list[Operation]:
    """Return the operations of one pass at one point, for explanation."""
    return list(walk(setting, fill, np.asarray(batch), np.asarray(new), np.asarray(cached)))
