"""Seconds, FLOPs and bytes of dense kernels on one accelerator, over arrays of points; the cost type of all kernels.

    time = launch + (compute^p + memory^p)^(1/p)

This is a soft roofline. p = 4 for dense products, where one side dominates cleanly; p = 2 for attention and grouped
products, whose warps wait on both. All functions take and return float64 arrays and allocate no more than their result.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plant.model.hardware import Engine, Hardware
from plant.model.precision import Format

Array = npt.NDArray[np.float64]
# Joules per floating-point operation of a tensor core at bf16, fp8 and fp4: engineering assumptions, not measurements.
MATH_J_PER_FLOP = (0.55e-12, 0.30e-12, 0.17e-12)


class Cost(NamedTuple):
    """What one call costs one accelerator: seconds, products x 2 and their joules, bytes of fast memory moved."""

    seconds: Array
    flops: Array
    hbm_bytes: Array
    math_j: Array

    def __add__(self, other: Cost) -> Cost:  # type: ignore[override]  # sums costs, where a plain tuple would chain
        return Cost(
            self.seconds + other.seconds,
            self.flops + other.flops,
            self.hbm_bytes + other.hbm_bytes,
            self.math_j + other.math_j,
        )

    def scaled(self, seconds_ratio: float) -> Cost:
        """Return the same work with only part of its seconds exposed."""
        return Cost(self.seconds * seconds_ratio, self.flops, self.hbm_bytes, self.math_j)


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


def gemm(machine: Machine, tokens: Array, rows: float, columns: float, fmt: Format) -> Cost:
    """Return the cost of a dense product of `tokens` activations with a `rows` x `columns` weight."""
    hardware = machine.hardware
    index = hardware.peak(fmt)
    flops = (2.0 * rows * columns) * tokens
    moved = rows * columns * fmt.bytes_per_value + (2.0 * (rows + columns)) * tokens
    compute = flops / (hardware.flops_per_s[index] * hardware.shares.gemm_math[index])
    stream = hardware.shares.gemm_stream[_stream_index(fmt)]
    memory = moved / (hardware.hbm_bytes_per_s * stream)
    seconds = machine.launch_ratio * hardware.launch.gemm_s + soft4(compute, memory)
    return Cost(seconds, flops, moved, flops * MATH_J_PER_FLOP[index])


def _stream_index(fmt: Format) -> int:
    """Row of the streaming share: narrower weights stream at a lower share of the memory's rate."""
    return 0 if fmt.bytes_per_value > 1.5 else 1 if fmt.bytes_per_value > 0.8 else 2


def feed_forward(machine: Machine, tokens: Array, width: int, inner: float, fmt: Format, matrices: int = 3) -> Cost:
    """Return the cost of a feed-forward block: up, with the gate where it has one (`matrices` 3), then down."""
    return gemm(machine, tokens, width, (matrices - 1.0) * inner, fmt) + gemm(machine, tokens, inner, width, fmt)


def elementwise(machine: Machine, tokens: Array, width: int, streams: float) -> Cost:
    """Return norms, rotations, quantisation and residual sums: `streams` bytes per value of the hidden width."""
    hardware = machine.hardware
    moved = (width * streams) * tokens
    seconds = machine.launch_ratio * hardware.launch.elementwise_s + moved / (hardware.hbm_bytes_per_s * 0.7)
    return Cost(seconds, np.zeros_like(moved), moved, np.zeros_like(moved))
