"""Evaluate all feasible placements and return the Pareto frontier of latency and throughput (essay, section 23)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np

from plant.model.energy import pass_energy
from plant.model.hardware import Engine, Hardware
from plant.model.kernels import Array
from plant.model.layer import Setting
from plant.model.memory import Memory, largest_batch, memory, require_fit
from plant.model.moe import Model
from plant.model.placement import Placement, PlacementError, check_placement, placements
from plant.model.precision import Precision
from plant.model.pricing import PriceCurve, cost_per_mtoken, value_per_gpu_hour
from plant.model.regimes import Pass, decode, fill, setting_of

REGIMES = ("decode", "midfill", "prefill")
_CHUNKS = (1, 2, 4, 8, 16)
# Serving engines split prompts into chunks of a thousand tokens or more; a short append is not split.
_SMALLEST_CHUNK_TOKENS = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The planning problem: a regime, its lengths, and the range of accelerators.

    Decode attends to `context` cached positions and writes `output` tokens; midfill adds `new` tokens to `context`;
    prefill starts from nothing. `draft_tokens` and `accepted_tokens` describe speculation in decode.
    """

    regime: str
    context: int
    new: int
    output: int
    gpus: range
    draft_tokens: int = 0
    accepted_tokens: float = 1.0
    gpu_hour_price: float | None = None
    widest_tp: int | None = None
    deepest_pp: int = 32
    latency_limit_s: float | None = None
    hot_ratio: float = 1.1

    @property
    def tensor_limit(self) -> int:
        """Widest tensor group searched: eight in decode, four in fills, unless the user says otherwise.

        Those are the widths of the essay's frontiers; SGLang's K3 on GB200 is slower at sixteen than at eight with two
        stages (sgl-project/sglang pull request 32592), which a sum of kernel times does not reproduce.
        """
        return self.widest_tp or (8 if self.regime == "decode" else 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One placement at one batch. `batch` is per data-parallel rank and micro-batch; `chunks` split a fill."""

    placement: Placement
    batch: int
    chunks: int
    latency_s: float
    tokens_per_s_per_gpu: float
    energy_j_per_query: float
    energy_all_in_j_per_query: float
    hbm_bytes_per_gpu: float
    network_peak_bytes_per_s: float
    network_mean_bytes_per_s: float

    @property
    def gpus(self) -> int:
        """Accelerators of the placement."""
        return self.placement.gpus


@dataclass(slots=True, kw_only=True)
class Frontier:
    """The Pareto points by rising latency, how many points were evaluated, and why placements were refused."""

    question: Question
    model: Model
    hardware: Hardware
    points: list[Point]
    cloud: list[Point] = field(default_factory=list)
    evaluated: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    refusal_examples: dict[str, str] = field(default_factory=dict)


def plan_frontier(
    model: Model, hardware: Hardware, engine: Engine, question: Question, precision: Precision | None = None
) -> Frontier:
    """Evaluate every placement of `question.gpus` accelerators and keep the Pareto-optimal points.

    Raises
    ------
    PlacementError
        When the lengths exceed the model's limit.
    """
    longest = question.context + (question.output if question.regime == "decode" else question.new)
    if question.regime == "prefill":
        longest = question.new
    if longest > model.context_tokens:
        raise PlacementError(
            "context", f"{longest} positions exceed {model.name}'s limit of {model.context_tokens}; shorten the context"
        )
    result = Frontier(question=question, model=model, hardware=hardware, points=[])
    evaluated: list[Point] = []
    for plain in placements(model, question.gpus, widest_tp=question.tensor_limit, deepest_pp=question.deepest_pp):
        place = replace(plain, hot_ratio=question.hot_ratio)
        try:
            check_placement(model, hardware, place)
            setting = setting_of(model, hardware, engine, place, precision)
            points = _decode_points if question.regime == "decode" else _fill_points
            evaluated.extend(points(setting, question))
        except PlacementError as refusal:
            result.refused[refusal.reason] += 1
            result.refusal_examples.setdefault(refusal.reason, str(refusal))
    result.evaluated, result.cloud = len(evaluated), evaluated
    limit = question.latency_limit_s or float("inf")
    result.points = pareto([p for p in evaluated if p.latency_s <= limit])
    return result


def pareto(points: list[Point]) -> list[Point]:
    """Return the Pareto-optimal points of latency and throughput, by rising latency."""
    best, kept = 0.0, []
    for point in sorted(points, key=lambda p: (p.latency_s, -p.tokens_per_s_per_gpu, p.gpus)):
        if point.tokens_per_s_per_gpu > best:
            best = point.tokens_per_s_per_gpu
            kept.append(point)
    return kept


def _network(step: Pass) -> tuple[Array, Array]:
    """Return the rate while transfers run, and the rate averaged over the pass, in bytes per second."""
    moved = sum(step.link_bytes.values(), np.zeros_like(step.seconds))
    return np.asarray(moved / np.maximum(step.network_s, 1e-12)), np.asarray(moved / step.seconds)


def _points(
    setting: Setting,
    batches: Array,
    chunks: int,
    latency: Array,
    rate: Array,
    energy: tuple[Array, Array],
    need: Memory,
    step: Pass,
) -> list[Point]:
    peak, mean = _network(step)
    resident = np.broadcast_to(need.resident, batches.shape)
    columns = (batches, latency, rate, energy[0], energy[1], resident, peak, mean)
    return [
        Point(
            placement=setting.place,
            batch=int(b),
            chunks=chunks,
            latency_s=t,
            tokens_per_s_per_gpu=r,
            energy_j_per_query=dynamic,
            energy_all_in_j_per_query=all_in,
            hbm_bytes_per_gpu=hbm_bytes,
            network_peak_bytes_per_s=p,
            network_mean_bytes_per_s=m,
        )
        for b, t, r, dynamic, all_in, hbm_bytes, p, m in zip(*(c.tolist() for c in columns))
    ]


def _decode_points(setting: Setting, question: Question) -> list[Point]:
    longest = float(question.context + question.output)
    require_fit(setting, memory(setting, 1.0, longest, chunk_tokens=1024))
    most = largest_batch(setting, longest, chunk_tokens=1024)
    batches = np.unique(np.rint(np.geomspace(1.0, min(most, 4096), 40)))
    at = decode(
        setting,
        batches,
        question.context + 0.5 * question.output,
        draft_tokens=question.draft_tokens,
        accepted_tokens=question.accepted_tokens,
    )
    spent = pass_energy(setting, at.step, setting.place.pp)
    per_query = question.output / (batches * setting.place.dp * question.accepted_tokens)
    need = memory(setting, batches, longest, chunk_tokens=1024)
    energy = spent.dynamic_j * per_query, spent.all_in_j * per_query
    return _points(setting, batches, 1, at.tpot_s, at.tokens_per_s_per_gpu, energy, need, at.step)


def _fill_points(setting: Setting, question: Question) -> list[Point]:
    cached = float(question.context if question.regime == "midfill" else 0)
    longest = cached + question.new
    require_fit(setting, memory(setting, 1.0, longest, chunk_tokens=min(question.new, 8192)))
    most = largest_batch(setting, longest, chunk_tokens=min(question.new, 8192))
    batches = np.asarray([b for b in (1.0, 2.0, 4.0, 8.0) if b <= most])
    points: list[Point] = []
    for chunks in _CHUNKS:
        if chunks > 1 and (setting.place.pp == 1 or question.new / chunks < _SMALLEST_CHUNK_TOKENS):
            continue
        at = fill(setting, float(question.new), cached, batches, chunks)
        spent = pass_energy(setting, at.step, setting.place.pp)
        queries = batches * setting.place.dp
        need = memory(setting, batches, longest, chunk_tokens=int(min(question.new / chunks, 8192)))
        energy = spent.dynamic_j / queries, spent.all_in_j / queries
        points.extend(_points(setting, batches, chunks, at.ttft_s, at.tokens_per_s_per_gpu, energy, need, at.step))
    return points


def as_json(frontier: Frontier, curve: PriceCurve | None = None) -> dict[str, object]:
    """Return the plain form of a frontier: numbers in seconds, bytes and joules."""
    question = frontier.question
    name = "tpot_s" if question.regime == "decode" else "ttft_s"
    rows = []
    for p in frontier.points:
        row: dict[str, object] = {
            "placement": p.placement.label(),
            "gpus": p.gpus,
            "batch": p.batch,
            "chunks": p.chunks,
            name: p.latency_s,
            "tokens_per_s_per_gpu": p.tokens_per_s_per_gpu,
            "energy_j_per_query": p.energy_j_per_query,
            "energy_all_in_j_per_query": p.energy_all_in_j_per_query,
            "hbm_bytes_per_gpu": p.hbm_bytes_per_gpu,
            "network_peak_bytes_per_s": p.network_peak_bytes_per_s,
            "network_mean_bytes_per_s": p.network_mean_bytes_per_s,
        }
        if question.gpu_hour_price is not None:
            rate = np.asarray(p.tokens_per_s_per_gpu)
            tokens = question.output if question.regime == "decode" else question.new
            row["cost_per_mtoken"] = float(cost_per_mtoken(question.gpu_hour_price, rate))
            row["cost_per_turn"] = row["cost_per_mtoken"] * tokens / 1e6  # type: ignore[operator]  # a float by the line above
            if question.regime == "decode":
                value = value_per_gpu_hour(curve or PriceCurve(), np.asarray(p.latency_s), rate)
                row["value_per_gpu_hour"] = float(value)
        rows.append(row)
    return {
        "model": frontier.model.name,
        "hardware": frontier.hardware.name,
        "regime": question.regime,
        "frontier": rows,
        "evaluated": frontier.evaluated,
        "refused": dict(sorted(frontier.refused.items())),
    }
