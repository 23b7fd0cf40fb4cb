"""Accelerators, nodes and racks, the shares of their peaks that kernels reach, and the three network levels.

The levels are those of the essay, section 10.

Peaks are data-sheet values (dense, no sparsity). Achieved shares come from measured kernel tables and stand beside
the presets with their source. An `Engine` is the serving software: launch cost is as much its property as the chip's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from plant.model.precision import Format

LEVELS = ("scale_up", "backbone", "scale_out")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Shares of peak that kernels reach; triples run over bf16, fp8 and fp4 math.

    `gemm_stream` and `gemm_math`: dense products, memory- and compute-bound. `expert_stream`, `expert_math`: grouped
    products. `kv_stream`: reading KV. `decode_math`: latent attention in decode. `fill_math`: attention over a block
    of new tokens (of the bf16 peak). `state_stream`: recurrent state. `collective`: bus rate of a large all-reduce.
    `all_to_all`: rate of dispatch and combine inside the scale-up domain; `nic`: across it.
    """

    gemm_stream: tuple[float, float, float] = (0.78, 0.71, 0.58)
    gemm_math: tuple[float, float, float] = (0.70, 0.57, 0.37)
    expert_stream: float = 0.97
    expert_math: tuple[float, float, float] = (0.55, 0.44, 0.46)
    kv_stream: float = 0.75
    decode_math: float = 0.55
    fill_math: float = 0.52
    state_stream: float = 0.70
    collective: float = 0.40
    all_to_all: float = 0.66
    nic: float = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Seconds that a kernel costs beyond its roofline, alone in a CUDA graph: launch, ramp and tail."""

    gemm_s: float = 3.0e-6
    experts_s: float = 20e-6
    attention_s: float = 10e-6
    elementwise_s: float = 20e-6
    all_reduce_s: float = 4.5e-6
    dispatch_s: float = 14e-6
    combine_s: float = 15e-6
    hop_s: float = 2.5e-6
    # NCCL's small all-reduce between trays or nodes takes 15-25 us (aiconfigurator 0.12.0 tables); fabric-memory
    # kernels need about a third of that and are an engine's choice.
    cross_node_all_reduce_s: float = 20e-6
    # Each expert of a grouped product starts its own tiles: 0.16 us apiece on GB200 whatever the slice's size
    # (K3's experts unsplit and in eighths, same tables).
    expert_ramp_s: float = 0.16e-6
    # FlashKDA (87 ns) and its convolution (48 ns) per token and layer at 96 heads, GB200 and B300.
    linear_fill_s_per_token: float = 135e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """One accelerator and what surrounds it in its node and rack.

    Rates are per accelerator and direction, in bytes per second. `domain` accelerators share the scale-up fabric, a
    rack holds `rack`; between them lies the backbone, whose rate is that of the NIC unless a rack has its own.
    `host_dram_bytes` and `ssd_bytes` are those of a whole node, and so is `storage_bytes_per_s`. While a pass runs
    an accelerator draws `static_power_ratio` of its TDP and `dynamic_power_ratio` of the bottom-up dynamic power.
    """

    name: str
    hbm_bytes: float
    hbm_bytes_per_s: float
    flops_per_s: tuple[float, float, float]
    scale_up_bytes_per_s: float
    domain: int
    node: int
    rack: int
    nic_bytes_per_s: float
    host_link_bytes_per_s: float
    tdp_w: float
    all_in_w: float
    backbone_bytes_per_s: float = 0.0
    storage_bytes_per_s: float = 30e9
    host_dram_bytes: float = 2e12
    ssd_bytes: float = 30.7e12
    shares: Shares = field(default_factory=Shares)
    launch: Launch = field(default_factory=Launch)
    # ML.ENERGY v3, B200. With the pairs of H100 and B200 the held-out median error of 277 rows was 13.5 %; a share of
    # 0.35 and a ratio of 1 gave 0.49 of TDP where 0.74 was measured.
    static_power_ratio: float = 0.53
    dynamic_power_ratio: float = 1.8
    verified: bool = True
    source: str = ""

    def level(self, span: int) -> str:
        """Return the lowest network level that joins `span` accelerators: one of `LEVELS`."""
        if span <= self.domain:
            return "scale_up"
        return "backbone" if span <= self.rack else "scale_out"

    def bytes_per_s(self, span: int) -> float:
        """Return the rate of the level that joins `span` accelerators."""
        level = self.level(span)
        if level == "scale_up":
            return self.scale_up_bytes_per_s
        return (self.backbone_bytes_per_s or self.nic_bytes_per_s) if level == "backbone" else self.nic_bytes_per_s

    def peak(self, fmt: Format) -> int:
        """Return the index of the rate at which `fmt` multiplies: bf16, fp8, fp4.

        A chip without fp4 units widens 4-bit weights to bf16 (Marlin, W4A16), whatever they are called.
        """
        if fmt.bytes_per_value < 0.8 and self.flops_per_s[2] <= self.flops_per_s[1]:
            return 0
        return ("bf16", "fp8", "fp4").index(fmt.math)


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Serving software of a given date, by the overheads that it adds or hides.

    `launch_ratio` scales every launch term: 1 is the sum of kernels measured alone; programmatic dependent launch and
    fused kernels hide part of it, schedulers that stay on the critical path add. `step_s` is paid once a pass (sampler,
    scheduler, head). `fabric_all_reduce`: small collectives between trays go through fabric memory, not NCCL.
    `two_batch_overlap`: two half batches hide each other's transfers; `overlap_loss_ratio` of the shorter side remains
    exposed and transfers hold `1 - fill_math_ratio` of the cores while a block is filled. `shared_exposed_ratio`: part
    of the shared experts that is not hidden behind the routed path. `eager_layer_s`: floor of a fill layer launched
    from the host, outside a graph. `linear_fill_ratio`: cost of its linear-attention fill kernel over FlashKDA's.

    A first token under load takes `first_token_fixed_s` + `first_token_ratio` x (wait + fill of the layer model):
    tokenising, HTTP and scheduling. Intervals hold 95 of 100 resampled sets of configurations; None: not fitted.
    """

    name: str
    launch_ratio: float = 1.0
    step_s: float = 1.5e-3
    fabric_all_reduce: bool = True
    two_batch_overlap: bool = False
    overlap_loss_ratio: float = 0.25
    fill_math_ratio: float = 0.84
    shared_exposed_ratio: float = 0.6
    eager_layer_s: float = 400e-6
    linear_fill_ratio: float = 1.0
    first_token_fixed_s: float = 0.0
    first_token_ratio: float = 1.0
    first_token_fixed_interval_s: tuple[float, float] | None = None
    first_token_ratio_interval: tuple[float, float] | None = None
    source: str = ""


def all_to_all_copies(span: int, experts_per_token: int) -> float:
    """Return how many distinct remote ranks of `span` a token's experts lie on, on average."""
    if span <= 1:
        return 0.0
    return span * -math.expm1(experts_per_token * math.log1p(-1.0 / span)) * (1.0 - 1.0 / span)
