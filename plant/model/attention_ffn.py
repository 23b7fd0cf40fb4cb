"""Disaggregated attention and FFN: routed experts in the SRAM of other accelerators (essay, section 3.4).

Experts held in SRAM need no batch to form: each runs when input arrives. What remains is the way there and back
through a switch that many attention ranks share, and the number of chips that hold the bank.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from plant.model.kernels import MATH_J_PER_FLOP, Array, Cost, Machine
from plant.model.moe import Model
from plant.model.network import Transfer
from plant.model.precision import Precision

_FP8 = 1  # index of the rate at which the pool multiplies


@dataclass(frozen=True, slots=True, kw_only=True)
class SramPool:
    """Accelerators that hold their weights in SRAM: Groq's first LPU as the public example (230 MB, 80 TB/s, 750 TOPS).

    `usable_ratio` of the SRAM holds weights. `hop_s` is one crossing of the switch between the pools.
    """

    sram_bytes: float = 230e6
    sram_bytes_per_s: float = 80e12
    flops_per_s: float = 750e12
    usable_ratio: float = 0.9
    hop_s: float = 2.0e-6
    math_ratio: float = 0.5

    def chips(self, weight_bytes: float) -> int:
        """Return the accelerators that hold `weight_bytes`."""
        return math.ceil(weight_bytes / (self.sram_bytes * self.usable_ratio))


def remote_experts(
    machine: Machine, model: Model, precision: Precision, ranks: int, tokens: Array, pool: SramPool | None = None
) -> tuple[Transfer, Cost]:
    """Return the transfer to the pool and back for one layer, and the compute time of the experts there.

    Each of `ranks` attention ranks sends `tokens` tokens, one copy per selected expert, and fetches the results. An
    expert is spread over the chips that hold it, so its products take the SRAM's rate and no weight is read twice.
    """
    pool = pool or SramPool()
    hardware = machine.hardware
    copies = tokens * model.experts_per_token
    moved = copies * model.routed_width * (precision.dispatch_bytes + 2.0)
    rate = hardware.nic_bytes_per_s * hardware.shares.nic
    way = Transfer(2.0 * pool.hop_s + moved / rate, moved, "scale_out")
    expert_bytes = model.expert_parameters * precision.expert_format.bytes_per_value
    chips = max(expert_bytes / (pool.sram_bytes * pool.usable_ratio), 1.0)
    read = expert_bytes / (pool.sram_bytes_per_s * chips)
    queued = copies * ranks / model.experts
    flops = 2.0 * model.expert_parameters * queued
    seconds = read + flops / (pool.flops_per_s * pool.math_ratio * chips)
    return way, Cost(seconds, flops, 0.0 * flops, flops * MATH_J_PER_FLOP[_FP8])
