"""Does the wait swing too? Median and 99th percentile of whole turns over time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import plotly.graph_objects as go

from scenarios.report.numbers import listed, seconds
from scenarios.report.panel import Panel, Shown, frame, time_axis
from scenarios.run.figures import Floats
from scenarios.run.metrics import turn_latencies
from scenarios.run.record import RunData

# A p99 of fewer turns than this is one unlucky turn.
STRETCHES, FEWEST = 140, 20


def over_time(run: RunData) -> tuple[Floats, Floats, Floats]:
    """Return (middle of the stretch in s, p50, p99) of whole turns by when they ended; NaN with too few turns."""
    latency_s, at = turn_latencies(run.turns)["e2e_s"], run.turns["ended_s"].to_numpy(dtype=float)
    known = ~np.isnan(latency_s) & ~np.isnan(at)
    edges = np.linspace(0.0, run.window_s[1], STRETCHES + 1)
    order = np.argsort(at[known], kind="stable")
    cuts = np.searchsorted(at[known][order], edges)
    percentiles_s = np.full((STRETCHES, 2), np.nan)
    for i, (begin, end) in enumerate(pairwise(cuts.tolist())):
        if end - begin >= FEWEST:
            percentiles_s[i] = np.quantile(latency_s[known][order][begin:end], [0.5, 0.99])
    return (edges[:-1] + edges[1:]) / 2, percentiles_s[:, 0], percentiles_s[:, 1]


def panel(runs: Sequence[Shown]) -> Panel | None:
    """Return p50 (thin) and p99 (thick) of whole turns over time."""
    drawn = [(s, over_time(s.run)) for s in runs if len(s.run.turns)]
    drawn = [(s, curves) for s, curves in drawn if np.isfinite(curves[2]).any()]
    if not drawn:
        return None
    figure = frame(height=280)
    for s, (t, half, tail) in drawn:
        _draw(figure, s, t, half, 1.0, "p50")
        _draw(figure, s, t, tail, 2.2, "p99")
    figure.update_yaxes(title_text="whole turn (s)", rangemode="tozero")
    time_axis(figure, runs)
    return Panel(
        div="panel-latency-time",
        title="Latency over time: " + _title([(s, tail, t) for s, (t, _, tail) in drawn]),
        note="Of the turns that ended in each stretch, the median (thin) and the 99th percentile (thick).",
        figure=figure,
        in_time=True,
        group="What a turn feels",
    )


def _draw(figure: Any, s: Shown, t: Floats, values: Floats, width: float, name: str) -> None:  # as plotly
    figure.add_trace(
        go.Scatter(
            x=t.astype(np.float32),
            y=values.astype(np.float32),
            mode="lines",
            line={"color": s.look.color, "width": width, "dash": s.look.dash},
            legendgroup=s.name,
            name=s.name,
            showlegend=False,
            hovertemplate=f"{name} %{{y:.3g}} s<extra>{s.name}</extra>",
        )
    )


def _title(tails: Sequence[tuple[Shown, Floats, Floats]]) -> str:
    spans = []
    for s, tail, t in tails:
        known = tail[np.isfinite(tail) & (t >= s.run.window_s[0])]
        if len(known):
            moves = f"moves between {seconds(float(known.min()))} and {seconds(float(known.max()))}"
            spans.append((float(known.max() - known.min()), s.name, moves))
    if not spans:
        return "too few turns ended in the window"
    _, _, widest = max(spans, key=lambda span: span[0])
    equal = listed([name for _, name, moves in spans if moves == widest])
    return f"under {equal} the p99 of a whole turn {widest}"
