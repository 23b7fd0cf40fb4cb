"""Bytes of HBM by class on one accelerator, what overflows, and the pipeline's KV crossover.

The memory law is that of the essay, sections 8 and 14.

    M_stage = W / P + M_KV,stage + M_state + M_working + M_slack

At a full pipe P micro-batches are live and each stage keeps 1/P of their layers, so the KV of a stage does not shrink
with P while its weights do. The essay's law has no recurrent state; a hybrid model needs that term: one sequence of
K3 carries 449 MB whatever its length.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum

import numpy as np

from plant.model.attention import GroupedAttention, LatentAttention, LinearAttention
from plant.model.balance import slots_per_rank
from plant.model.kernels import Array
from plant.model.layer import Setting
from plant.model.moe import Model
from plant.model.placement import Placement, PlacementError
from plant.model.precision import FORMATS, Precision

# Runtime, graphs and collective buffers: aiconfigurator 0.12.0 systems/*.yaml, other_mem and nccl_mem.
RUNTIME_BYTES = 3.9e9
SLACK_RATIO = 0.05
# About a dozen hidden-width activations are alive at the widest point of a layer.
_LIVE_ACTIVATIONS = 12.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Bytes on the fullest accelerator, by class; arrays over points where `kv` and `state` are."""

    attention: float
    dense: float
    experts: float
    embedding: float
    kv: Array
    state: Array
    working: float
    slack: float

    @property
    def weights(self) -> float:
        """Weights of every kind."""
        return self.attention + self.dense + self.experts + self.embedding

    @property
    def resident(self) -> Array:
        """Bytes in HBM at the peak, without the slack."""
        return self.weights + self.kv + self.state + self.working

    @property
    def total(self) -> Array:
        """Everything, with the slack that a safe design keeps."""
        return self.resident + self.slack

    def classes(self) -> dict[str, float]:
        """Return bytes by class at one point, for tables and refusals."""
        values: dict[str, Array | float] = {
            "attention weights": self.attention,
            "dense weights": self.dense,
            "expert weights": self.experts,
            "embedding and head": self.embedding,
            "KV": self.kv,
            "recurrent state": self.state,
            "working": self.working,
            "slack": self.slack,
        }
        return {name: float(np.max(value)) for name, value in values.items()}


def kv_bytes_per_token(model: Model, precision: Precision, place: Placement) -> float:
    """Return KV bytes per position on one accelerator, all layers: sharded where the attention kind allows it.

    Latent attention repeats its KV on every tensor rank unless context parallelism shards it; grouped heads divide.
    """
    total = 0.0
    for group in model.attention:
        share = place.context_parallel if isinstance(group, LatentAttention) else 1
        if isinstance(group, GroupedAttention):
            share = min(place.tp, group.kv_heads)
        total += group.layers * group.kv_bytes_per_token(precision) / share
    return total


def state_bytes_per_sequence(model: Model, precision: Precision, place: Placement) -> float:
    """Return state bytes per sequence on one accelerator, all layers; heads divide over the tensor ranks."""
    total = 0.0
    for group in model.attention:
        share = 1
        if isinstance(group, LinearAttention | GroupedAttention):
            share = min(place.tp, group.kv_heads if isinstance(group, GroupedAttention) else group.heads)
        total += group.layers * group.state_bytes_per_sequence(precision) / share
    return total


def memory(
    setting: Setting, batch: Array | float, context: Array | float, *, chunk_tokens: int = 8192, buffers: float = 1.0
) -> Memory:
    """Return memory by class with `batch` sequences per rank and micro-batch, each of `context` positions.

    Parameters
    ----------
    chunk_tokens : int
        Tokens of a data-parallel rank's largest pass; sets the working activations.
    buffers : float
        Copies of the KV held: 2 doubles it, so that one set moves while another runs.
    """
    model, precision, place, hardware = setting.model, setting.precision, setting.place, setting.machine.hardware
    weights = model.weight_bytes(precision)
    stage = 1.0 / place.pp
    experts = 0.0 if place.remote_experts else weights["experts"] / place.stage * stage
    if model.experts:  # the fullest rank's slots over the mean: replicas, and what does not divide
        slots = slots_per_rank(model.experts, place.redundant_experts, place.expert_groups)
        experts *= slots * place.expert_groups / model.experts
    b, c = np.asarray(batch, dtype=float), np.asarray(context, dtype=float)
    rows = chunk_tokens * model.experts_per_token / place.expert_groups
    working = chunk_tokens * model.width * 2.0 * _LIVE_ACTIVATIONS / place.tp**0.5
    working += rows * 2.0 * (model.routed_width + model.expert_ffn / place.expert_tp)
    head_bytes = FORMATS[precision.head].bytes_per_value
    embedding = model.embedding_parameters * head_bytes / place.tp * (1.0 if place.pp > 1 or model.tied else 2.0)
    return Memory(
        attention=weights["attention"] / place.tp * stage,
        dense=weights["dense"] / place.tp * stage,
        experts=experts,
        embedding=embedding,
        kv=b * place.pp * c * kv_bytes_per_token(model, precision, place) * stage * buffers,
        state=b * place.pp * state_bytes_per_sequence(model, precision, place) * stage,
        working=working + RUNTIME_BYTES,
        slack=SLACK_RATIO * hardware.hbm_bytes,
    )


def require_fit(setting: Setting, need: Memory) -> None:
    """Refuse a placement whose memory overflows, naming the class at which it does.

    Raises
    ------
    PlacementError
        With the running sum at the class that crosses the capacity, and the accelerators that would hold the weights.
    """
    capacity = setting.machine.hardware.hbm_bytes
    running = 0.0
    for name, size in need.classes().items():
        running += size
        if running > capacity:
            raise PlacementError(
                f"memory: {name}",
                f"{setting.place.label()}: {name} overflow {setting.machine.hardware.name}'s {capacity / 1e9:.0f} GB "
                f"({running / 1e9:.0f} GB with {size / 1e9:.0f} GB of {name}); {_advice(setting, need, name)}",
            )


def _advice(setting: Setting, need: Memory, name: str) -> str:
    capacity = setting.machine.hardware.hbm_bytes
    if "weights" in name or name == "embedding and head":
        weights = fsum(setting.model.weight_bytes(setting.precision).values())
        fits = int(np.ceil(weights / (capacity * (1.0 - SLACK_RATIO) - need.working)))
        return f"the weights alone need {fits} accelerators or more when nothing is repeated"
    room = capacity - need.weights - need.working - need.slack
    return f"{max(room, 0.0) / 1e9:.0f} GB are left for KV and state"


def largest_batch(setting: Setting, context: float, *, chunk_tokens: int = 8192) -> int:
    """Return how many sequences of `context` positions per rank and micro-batch fit; 0 when the weights do not."""
    empty, single = (memory(setting, b, context, chunk_tokens=chunk_tokens) for b in (0.0, 1.0))
    room = setting.machine.hardware.hbm_bytes - float(empty.total)
    return max(int(room // max(float(single.total) - float(empty.total), 1.0)), 0)


def fits_stage(free_bytes: float, weight_bytes: float, stages: int, batch_bytes: float, working_bytes: float) -> bool:
    """Return the inequality of the essay, section 8: M_free > W / P + M_batch + M_working."""
    return free_bytes > weight_bytes / stages + batch_bytes + working_bytes


def crossover_stages(weight_bytes: float, live_kv_bytes: float) -> float:
    """Return the depth P* = W / M_KV beyond which a stage holds less weights than live KV (essay, section 14)."""
    return weight_bytes / live_kv_bytes
