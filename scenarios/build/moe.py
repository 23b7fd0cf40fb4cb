"""From `times = {kind = "moe", ...}` to tables of seconds and what else a model on its placement fixes of a worker."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from plant.model.huggingface import ConfigError, load_config
from plant.model.layer import Setting
from plant.model.memory import memory, require_fit
from plant.model.placement import Placement, PlacementError, check_placement
from plant.model.precision import FORMATS, Precision
from plant.model.regimes import setting_of
from plant.model.step_table import StepTable
from plant.model.tables import Speculation, step_times
from plant.model.weight_loading import kv_capacity_tokens, reconfigure_s
from plant.presets.engines import ENGINES
from plant.presets.hardware import HARDWARE
from plant.presets.models import MODELS
from scenarios.errors import UserError, nearest
from scenarios.schema.moe import MoePlacement, MoePrecision, MoeTimes


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
