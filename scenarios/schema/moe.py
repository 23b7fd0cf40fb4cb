"""`times = {kind = "moe", ...}`: the seconds of a real model on real hardware, as a scenario file names them.

times = {kind = "moe", model = "kimi-k3", hardware = "gb200-nvl72", placement = {tp = 8, pp = 2, ep = 8}}
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from plant.model.layer import Setting
from plant.model.memory import memory, require_fit
from plant.model.placement import Placement, PlacementError, check_placement
from plant.model.precision import FORMATS, Precision
from plant.model.regimes import setting_of
from plant.model.step_table import StepTable
from plant.model.tables import Speculation, step_times
from plant.model.weight_loading import kv_capacity_tokens, reconfigure_s
from scenarios.errors import UserError, nearest
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


@dataclass(frozen=True, slots=True, kw_only=True)
class MoeWorker:
    """A worker as its `times` make it: tables, accelerators, KV sizes, and seconds to load its weights.

    `kv_bytes_per_token` and `state_bytes_per_turn` are what moves with a turn, whatever the placement.
    """

    times: StepTable
    setting: Setting
    gpus: int
    kv_bytes_per_token: float
    state_bytes_per_turn: float
    load_s: float

    def kv_capacity_tokens(self, slots: int) -> int:
        """Return the positions that fit beside weights and the states of `slots` turns."""
        return kv_capacity_tokens(self.setting, slots)


def build_moe_times(times: MoeTimes) -> StepTable:
    """Return the tables that a scenario's `times` describe.

    Raises
    ------
    UserError
        In one line, for unknown names and for placements that the model or the hardware rules out.
    """
    return build_moe_worker(times).times


def build_moe_worker(times: MoeTimes) -> MoeWorker:
    """Return the tables together with what else the placement fixes; weights are loaded from the host's memory.

    Raises
    ------
    UserError
        As `build_moe_times` does.
    """
    from plant.model.huggingface import ConfigError, load_config
    from plant.presets.engines import ENGINES
    from plant.presets.hardware import HARDWARE
    from plant.presets.models import MODELS

    for field, known in (("model", MODELS), ("hardware", HARDWARE), ("engine", ENGINES)):
        word = getattr(times, field)
        if word is not None and word not in known:
            raise UserError(f"times.{field}: `{word}` is unknown{nearest(word, known)}; known: {', '.join(known)}")
    if (times.model is None) == (times.config is None):
        raise UserError("times: give `model` (a preset) or `config` (a path to a config.json), one of the two")
    if times.accepted_tokens > 1 + times.draft_tokens:
        raise UserError(f"times.accepted_tokens: at most 1 + draft_tokens = {1 + times.draft_tokens}")
    try:
        model = MODELS[times.model] if times.model is not None else load_config(times.config or Path())
        place = _placement(times.placement)
        setting = setting_of(model, HARDWARE[times.hardware], ENGINES[times.engine], place, _precision(times.precision))
        check_placement(model, setting.machine.hardware, place)
        require_fit(setting, memory(setting, 1.0, 1024.0))
        table = step_times(
            model=model,
            hardware=setting.machine.hardware,
            engine=setting.machine.engine,
            placement=place,
            precision=setting.precision,
            speculation=Speculation(draft_tokens=times.draft_tokens, accepted_tokens=times.accepted_tokens),
            max_batch=times.max_batch,
            occupancy=times.fill == "occupancy",
        )
    except PlacementError as problem:
        raise UserError(f"times.placement: {problem}") from problem
    except ConfigError as problem:
        raise UserError(f"times.config: {problem}") from problem
    return MoeWorker(
        times=table,
        setting=setting,
        gpus=place.gpus,
        kv_bytes_per_token=model.kv_bytes_per_token(setting.precision),
        state_bytes_per_turn=model.state_bytes_per_sequence(setting.precision),
        load_s=reconfigure_s(setting, "host"),
    )


def _placement(part: MoePlacement) -> Placement:
    return Placement(**{**part.model_dump(), "ep": part.ep or 0})


def _precision(part: MoePrecision | None) -> Precision | None:
    if part is None:
        return None
    # Activations travel in the format that the experts multiply in: bf16, fp8 with block scales, or NVFP4.
    travelling = {"bf16": 2.0, "fp8": 1.03125, "fp4": 0.5625}
    dispatch = travelling[FORMATS[part.experts].math]
    return Precision(**part.model_dump(), dispatch_bytes=dispatch)
