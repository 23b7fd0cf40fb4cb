"""`times = {kind = "moe", ...}`: the seconds of a real model on real hardware, as a scenario file names them.

times = {kind = "moe", model = "kimi-k3", hardware = "gb200-nvl72", placement = {tp = 8, pp = 2, ep = 8}}
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from scenarios.schema.base import ScenarioTable

Width = Annotated[int, Field(ge=1, le=1024)]


class MoePlacement(ScenarioTable):
    """Widths of one worker: `pp` x `tp` x `dp` accelerators. Without `ep` experts are divided as widely as they go."""

    pp: Width = 1
    tp: Width = 1
    dp: Width = 1
    ep: Width | None = None
    context_parallel: Width = 1
    hot_ratio: Annotated[float, Field(ge=1.0, le=100.0)] = 1.1
    skew: Annotated[float, Field(ge=0.0, le=3.0)] = 0.0
    remote_experts: bool = False
    redundant_experts: Annotated[int, Field(ge=0, le=4096)] = 0
    balanced: bool = False


class MoePrecision(ScenarioTable):
    """Formats by class of weight, and bytes per value of KV cache and recurrent state."""

    dense: Literal["bf16", "fp8", "nvfp4", "mxfp4", "mxfp4_a16", "int4"]
    experts: Literal["bf16", "fp8", "nvfp4", "mxfp4", "mxfp4_a16", "int4"]
    attention: Literal["bf16", "fp8", "nvfp4", "mxfp4", "mxfp4_a16", "int4"] | None = None
    kv_bytes: Annotated[float, Field(gt=0.0, le=4.0)] = 2.0
    state_bytes: Annotated[float, Field(gt=0.0, le=4.0)] = 4.0


class MoeTimes(ScenarioTable):
    """Step and fill seconds from the layer model of `plant`, tabulated once and cached.

    `model` is a preset (`steadyflow plan models` lists them) unless `config` names a Hugging Face `config.json`.
    `engine` sets the launch costs. `fill` says what a fill chunk is charged: the `latency` of all pipeline stages, or
    the `occupancy` of one (a worker kept full); they differ only for pp > 1. `draft_tokens` and `accepted_tokens`
    describe speculation. `max_batch` bounds the table; without it, what fits in memory at 1,024 positions each.
    """

    kind: Literal["moe"]
    model: str | None = None
    config: Path | None = None
    hardware: str
    engine: str = "fused-2026h2"
    placement: MoePlacement = MoePlacement()
    precision: MoePrecision | None = None
    draft_tokens: Annotated[int, Field(ge=0, le=64)] = 0
    accepted_tokens: Annotated[float, Field(ge=1.0, le=65.0)] = 1.0
    max_batch: Annotated[int, Field(ge=1, le=65_536)] | None = None
    fill: Literal["latency", "occupancy"] = "latency"
