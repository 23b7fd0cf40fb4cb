"""Validate the layer model against public measurements: prediction and error of every row, and summaries."""

from __future__ import annotations

import functools
import statistics
from dataclasses import asdict, dataclass, replace

from plant.model.regimes import decode, fill, setting_of, stage_excess_ratio
from plant.presets.engines import ENGINES
from plant.presets.hardware import HARDWARE
from plant.presets.models import MODELS
from scenarios.plan.published import Row, measured_rows
from scenarios.plan.serving import Load, closed_loop


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """A row with the model's prediction, in the row's unit."""

    row: Row
    predicted: float

    @property
    def error_ratio(self) -> float:
        """Signed relative error."""
        return self.predicted / self.row.measured - 1.0

    def text(self, value: float) -> str:
        """Return `value` in the row's customary unit: tokens per second and GPU, or milliseconds."""
        return f"{value:,.0f}" if self.row.kind in ("decode", "prefill") else f"{value * 1e3:,.2f}"


def predict(row: Row, launch_ratio: float | None = None) -> float:
    """Return the model's value for one row, in the row's unit; `launch_ratio` overrides the engine's."""
    engine = ENGINES[row.engine]
    if launch_ratio is not None:
        engine = replace(engine, launch_ratio=launch_ratio)
    setting = setting_of(MODELS[row.model], HARDWARE[row.hardware], engine, row.place, row.precision)
    if row.kind in ("decode", "tpot"):
        point = decode(
            setting, row.batch, row.context, draft_tokens=row.draft_tokens, accepted_tokens=row.accepted_tokens
        )
        return float(point.tokens_per_s_per_gpu if row.kind == "decode" else point.tpot_s)
    if row.kind == "fill":
        return float(fill(setting, row.input_tokens, 0.0, row.batch).ttft_s)
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


# Launch ratios tried when one configuration is held out; the presets' own are 0.5, 1.0 and 1.3.
_RATIOS = (0.4, 0.5, 0.6, 0.8, 1.0, 1.15, 1.3, 1.5)


@functools.cache
def _tried(rows: tuple[Row, ...]) -> list[list[Prediction]]:
    return [[Prediction(row=row, predicted=predict(row, ratio)) for row in rows] for ratio in _RATIOS]


def leave_one_out(points: list[Prediction]) -> Summary:
    """Return the errors when each configuration is predicted with a launch ratio fitted to the others of its engine.

    The launch ratio is the one constant that measurements of whole systems set. For every configuration it is
    selected from a few values by the mean absolute error of the other configurations of the same engine; an engine with
    a single configuration keeps its value.
    """
    tried = _tried(tuple(p.row for p in points))
    held_out = []
    for i, point in enumerate(points):
        others = [
            j
            for j, p in enumerate(points)
            if p.row.engine == point.row.engine
            and p.row.configuration != point.row.configuration
            and p.row.kind != "served_ttft"
        ]
        if not others:
            held_out.append(point)
            continue
        best = min(tried, key=lambda run: statistics.fmean(abs(run[j].error_ratio) for j in others))
        held_out.append(best[i])
    return summarise(held_out)


def by_regime(points: list[Prediction]) -> dict[str, list[Prediction]]:
    """Return the rows of each kind, in the order in which kinds first appear."""
    kinds = dict.fromkeys(p.row.kind for p in points)
    return {kind: [p for p in points if p.row.kind == kind] for kind in kinds}


def without_first_tokens(points: list[Prediction]) -> list[Prediction]:
    """Return the rows that a launch ratio is set on."""
    return [p for p in points if p.row.kind != "served_ttft"]


def as_plain(points: list[Prediction]) -> dict[str, object]:
    """Return the summaries and all rows as plain values, in seconds and tokens per second."""
    all_rows, not_fitted = summarise(points), summarise([p for p in points if not p.row.sets])
    left_out = leave_one_out(without_first_tokens(points))
    return {
        "n": all_rows.rows,
        "median_abs_error": all_rows.median_abs_error,
        "mean_abs_error": all_rows.mean_abs_error,
        "bias": all_rows.bias,
        "worst_abs_error": all_rows.worst_abs_error,
        "without_rows_that_set_a_constant": {
            "n": not_fitted.rows,
            "median_abs_error": not_fitted.median_abs_error,
            "mean_abs_error": not_fitted.mean_abs_error,
        },
        "leave_one_configuration_out": {
            "median_abs_error": left_out.median_abs_error,
            "mean_abs_error": left_out.mean_abs_error,
        },
        "regimes": {kind: asdict(summarise(rows)) for kind, rows in by_regime(points).items()},
        "rows": [
            {
                "name": p.row.name,
                "kind": p.row.kind,
                "configuration": p.row.configuration,
                "measured": p.row.measured,
                "predicted": p.predicted,
                "error": p.error_ratio,
                "sets": p.row.sets,
                "assumed": p.row.assumed,
                "source": p.row.source,
            }
            for p in points
        ],
    }


_HEAD = """# The layer model against public measurements

Written by `steadyflow plan validate --markdown`; a test compares this page with what the command prints.

`decode` and `prefill` rows are tokens per second and GPU; the others are milliseconds. `served` rows pass through a
queue under the load generator's own concurrency and lengths, because their first-token times hold the wait behind
other prompts and their token times the passes that fill them; rows of first tokens count only that way, with the two
numbers of their engine. `fill` is a lone prompt through all stages. A star marks a row that was used to set a constant.
Constants come from kernel tables and data sheets; each serving engine adds one launch ratio and the two numbers of a
first token, set on the public rows outside this table (see `plant/presets/engines.py`). Over 1,791 rows of
that public file, which is not part of this project, the same constants and a one-line queue gave a median error of
11.6 % and a mean of 15.2 %; most of those rows helped to set the launch ratios. They are its aggregated rows of known
concurrency up to 256, prompts of a thousand tokens or more and consistent widths, without DeepSeek under TensorRT-LLM,
where equal configurations disagree by a factor of 1.6.

"""


def as_markdown(points: list[Prediction]) -> str:
    """Return the page docs/validation.md."""
    all_rows, not_fitted, left_out = (
        summarise(points),
        summarise([p for p in points if not p.row.sets]),
        leave_one_out(without_first_tokens(points)),
    )
    lines = [
        "| rows | n | median abs. error | mean abs. error | bias |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, s in (
        ("all", all_rows),
        ("without starred rows", not_fitted),
        ("without first tokens, each configuration left out when its launch ratio is set", left_out),
    ):
        numbers = f"{s.median_abs_error:.1%} | {s.mean_abs_error:.1%} | {s.bias:+.1%}"
        lines.append(f"| {name} | {s.rows} | {numbers} |")
    for kind, rows in by_regime(points).items():
        s = summarise(rows)
        lines.append(f"| {kind} | {s.rows} | {s.median_abs_error:.1%} | {s.mean_abs_error:.1%} | {s.bias:+.1%} |")
    lines += ["", "| measurement | kind | measured | model | error | source |", "|---|---|---:|---:|---:|---|"]
    sources = list(dict.fromkeys(p.row.source for p in points))
    for p in points:
        star = " *" if p.row.sets else ""
        assumed = f" ({p.row.assumed})" if p.row.assumed else ""
        cells = (
            f"{p.row.name}{assumed}{star}",
            p.row.kind,
            p.text(p.row.measured),
            p.text(p.predicted),
            f"{p.error_ratio:+.1%}",
            f"[{sources.index(p.row.source) + 1}]",
        )
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", *(f"{i}. {source}" for i, source in enumerate(sources, 1)), ""]
    return _HEAD + "\n".join(lines)
