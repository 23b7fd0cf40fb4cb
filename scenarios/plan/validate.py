"""The layer model against public measurements: every row's prediction and error, with the summaries that matter."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from plant.presets.engines import ENGINES
from plant.presets.hardware import HARDWARE
from plant.presets.models import MODELS
from plant.regimes import decode, fill, setting_of, stage_excess_ratio
from scenarios.plan.measured import Row, measured_rows
from scenarios.plan.serving import Load, closed_loop


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """A row with what the model says of it, in the row's unit."""

    row: Row
    predicted: float

    @property
    def error_ratio(self) -> float:
        """Signed relative error."""
        return self.predicted / self.row.measured - 1.0


def predict(row: Row) -> float:
    """Return the model's value for one row, in the row's unit."""
    setting = setting_of(MODELS[row.model], HARDWARE[row.hardware], ENGINES[row.engine], row.place, row.precision)
    if row.kind in ("decode", "tpot"):
        point = decode(
            setting, row.batch, row.context, draft_tokens=row.draft_tokens, accepted_tokens=row.accepted_tokens
        )
        return float(point.tokens_per_s_per_gpu if row.kind == "decode" else point.tpot_s)
    if row.kind == "prefill":
        point_fill = fill(setting, row.input_tokens, 0.0, row.batch)
        stage_s = float(point_fill.step.seconds) / row.place.pp * stage_excess_ratio(setting.model, row.place.pp)
        if row.concurrency > 1:
            return _closed_pipeline(row, stage_s)
        return float(point_fill.tokens_per_s_per_gpu)
    load = Load(
        concurrency=row.concurrency,
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        requests=row.requests_per_slot * row.concurrency,
        spread_ratio=row.spread_ratio,
    )
    served = closed_loop(setting, load, draft_tokens=row.draft_tokens, accepted_tokens=row.accepted_tokens)
    return served.tpot_s if row.kind == "served_tpot" else served.ttft_s


def _closed_pipeline(row: Row, stage_s: float) -> float:
    """Tokens per second and accelerator of `requests_per_slot x concurrency` prompts kept in flight over a pipeline.

    Fewer prompts than stages leave stages empty; a run that ends also drains: n prompts take n + pp - 1 stages.
    """
    prompts = row.requests_per_slot * row.concurrency
    spacing = stage_s * max(1.0, row.place.pp / row.concurrency)
    total_s = spacing * prompts + stage_s * (row.place.pp - 1)
    return row.input_tokens * prompts / total_s / row.place.gpus


def predictions() -> list[Prediction]:
    """Return all rows with their predictions."""
    return [Prediction(row=row, predicted=predict(row)) for row in measured_rows()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Errors over a set of rows."""

    rows: int
    median_abs_error: float
    mean_abs_error: float
    bias: float
    worst_abs_error: float


def summarise(points: list[Prediction]) -> Summary:
    """Return the errors of `points`."""
    errors = [p.error_ratio for p in points]
    sizes = [abs(e) for e in errors]
    return Summary(
        rows=len(points),
        median_abs_error=statistics.median(sizes),
        mean_abs_error=statistics.fmean(sizes),
        bias=statistics.fmean(errors),
        worst_abs_error=max(sizes),
    )


def leave_one_out(points: list[Prediction]) -> Summary:
    """Return the errors when one common factor is set on all other configurations and tried on the one left out.

    The factor (the median of measured over predicted, apart for rates and for seconds) is the only thing left to fit
    once the constants stand; that it does not help is the point.
    """
    corrected = []
    for held in sorted({p.row.configuration for p in points}):
        for point in (p for p in points if p.row.configuration == held):
            rate = point.row.kind in ("decode", "prefill")
            others = [
                p.row.measured / p.predicted
                for p in points
                if p.row.configuration != held and (p.row.kind in ("decode", "prefill")) == rate
            ]
            corrected.append(Prediction(row=point.row, predicted=point.predicted * statistics.median(others)))
    return summarise(corrected)
