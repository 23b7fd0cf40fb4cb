"""Compute the planner's studies: intensity and expert sharing by regime, faster memory, value of memory."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from plant.model.expert_kernels import distinct_experts
from plant.model.hardware import Engine, Hardware
from plant.model.kernels import Array
from plant.model.layer import Operation, Setting
from plant.model.memory import largest_batch
from plant.model.moe import Model
from plant.model.placement import Placement
from plant.model.pricing import PriceCurve, value_per_gpu_hour
from plant.model.regimes import decode, fill, operations, setting_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Intensity:
    """Arithmetic intensity of the parts of one regime, in floating-point operations per byte of fast memory."""

    regime: str
    attention_core: float
    projections: float
    experts: float
    ridge: float


def intensities(setting: Setting, context: int, new: int, batch: int) -> list[Intensity]:
    """Return the four regimes' intensities (Figures 6 and 10): prefill, midfill, decode.

    Decode's attention and experts are its two regimes; `ridge` is the machine's fp8 balance point.
    """
    hardware = setting.machine.hardware
    ridge = hardware.flops_per_s[1] / hardware.hbm_bytes_per_s
    rows = []
    for regime, b, q, c, is_fill in (
        ("prefill", 1, new, 0, True),
        ("midfill", 1, new, context, True),
        ("decode", batch, 1, context, False),
    ):
        ops = operations(setting, b, q, c, fill=is_fill)
        rows.append(
            Intensity(
                regime=regime,
                attention_core=_intensity(ops, " core"),
                projections=_intensity(ops, " projections"),
                experts=_intensity(ops, "routed experts"),
                ridge=ridge,
            )
        )
    return rows


def _intensity(ops: list[Operation], ending: str) -> float:
    chosen = [op for op in ops if op.name.endswith(ending)]
    flops = sum(float(op.layers * op.cost.flops) for op in chosen)
    return flops / sum(float(op.layers * op.cost.hbm_bytes) for op in chosen)


def expert_intensity(model: Model, tokens: Array, weight_bytes: float, activation_bytes: float) -> Array:
    """Return the intensity of one expert with n tokens: 2 n W / (B_W + n (B_A + B_O)) (essay, section 15).

    The essay counts the output traffic once; it grows with n like the input traffic, and is computed so here.
    """
    weights = model.expert_parameters
    per_token = model.routed_width * (activation_bytes + 2.0)
    return 2.0 * tokens * weights / (weights * weight_bytes + tokens * per_token)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """Expert sharing at one batch of tokens (Figure 21)."""

    tokens: int
    distinct: float
    distinct_skewed: float
    tokens_per_expert: float
    touched_ratio: float


def sharing(model: Model, tokens: list[int], skew: float = 0.8) -> list[Sharing]:
    """Return the active experts of a layer and the tokens per active expert, against the tokens of a pass."""
    n = np.asarray(tokens, dtype=float)
    even = distinct_experts(model.experts, model.experts_per_token, n)
    uneven = distinct_experts(model.experts, model.experts_per_token, n, skew)
    return [
        Sharing(
            tokens=int(t),
            distinct=float(e),
            distinct_skewed=float(u),
            tokens_per_expert=float(t * model.experts_per_token / e),
            touched_ratio=float(e / model.experts),
        )
        for t, e, u in zip(n, even, uneven)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class FasterMemory:
    """Effect of a memory that is `ratio` times as fast (Figure 7)."""

    ratio: float
    midfill_s: float
    decode_tpot_s: float
    midfill_gain_ratio: float
    decode_gain_ratio: float


def faster_memory(
    model: Model, hardware: Hardware, engine: Engine, place: Placement, *, context: int, new: int, batch: int,
    ratios: tuple[float, ...] = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0),
) -> list[FasterMemory]:  # fmt: skip
    """Return midfill and decode seconds against the memory rate, everything else unchanged."""
    rows: list[FasterMemory] = []
    for ratio in ratios:
        faster = replace(hardware, hbm_bytes_per_s=hardware.hbm_bytes_per_s * ratio)
        setting = setting_of(model, faster, engine, place)
        mid = float(fill(setting, new, context).ttft_s)
        out = float(decode(setting, batch, context).tpot_s)
        first = rows[0] if rows else None
        rows.append(
            FasterMemory(
                ratio=ratio,
                midfill_s=mid,
                decode_tpot_s=out,
                midfill_gain_ratio=(first.midfill_s / mid) if first else 1.0,
                decode_gain_ratio=(first.decode_tpot_s / out) if first else 1.0,
            )
        )
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryValue:
    """Best value per accelerator-hour at one capacity and rate of fast memory (Figure 23)."""

    capacity_bytes: float
    hbm_bytes_per_s: float
    value_per_gpu_hour: float
    batch: int
    tpot_s: float


def memory_value(
    model: Model, hardware: Hardware, engine: Engine, place: Placement, *, context: int, curve: PriceCurve,
    capacities: Array, rates: tuple[float, ...] = (0.5, 1.0, 2.0),
) -> list[MemoryValue]:  # fmt: skip
    """Return value against capacity, one curve per memory rate: steep until the working set fits, then flat.

    Each capacity uses the feasible batch with the highest value; below the size of the weights the value is 0.
    """
    rows = []
    for rate in rates:
        for capacity in capacities.tolist():
            chip = replace(hardware, hbm_bytes=capacity, hbm_bytes_per_s=hardware.hbm_bytes_per_s * rate)
            setting = setting_of(model, chip, engine, place)
            most = min(largest_batch(setting, float(context), chunk_tokens=1024), 4096)
            batch, tpot, value = 0, float("nan"), 0.0
            if most:
                batches = np.arange(1.0, most + 1.0)
                at = decode(setting, batches, float(context))
                earned = value_per_gpu_hour(curve, at.tpot_s, at.tokens_per_s_per_gpu)
                best = int(earned.argmax())
                batch, tpot, value = int(batches[best]), float(at.tpot_s[best]), float(earned[best])
            rows.append(
                MemoryValue(
                    capacity_bytes=capacity,
                    hbm_bytes_per_s=chip.hbm_bytes_per_s,
                    value_per_gpu_hour=value,
                    batch=batch,
                    tpot_s=tpot,
                )
            )
    return rows
