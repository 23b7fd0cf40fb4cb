"""Work in flight, stacked by stage, one strip a candidate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import plotly.graph_objects as go

from scenarios.report.numbers import listed, plain
from scenarios.report.panel import Panel, Shown, frame, has, reach, time_axis
from scenarios.run.figures import level
from scenarios.run.metrics import bins_inside

# Light to dark along a turn's way, of one hue that no candidate has.
STAGES = {"filling": "#C9B8E8", "ready": "#8E73C9", "decoding": "#4B2E8F"}
POINTS = 600


def panel(runs: Sequence[Shown]) -> Panel | None:
    """Return turns filling, ready and decoding over time for every candidate."""
    if not has(runs, "filling_turns_mean"):
        return None
    highest = 0.0
    figure = frame(
        len(runs),
        height=60 + 150 * len(runs),
        shared_xaxes=True,
        vertical_spacing=min(0.08, 0.3 / len(runs)),
        subplot_titles=[s.name for s in runs],
    )
    for row, s in enumerate(runs, 1):
        curves = {stage: level(s.run.signals, f"{stage}_turns", POINTS) for stage in STAGES}
        highest = max(highest, float(np.nansum([mean for _, mean, _, _ in curves.values()], axis=0).max()))
        for stage, color in STAGES.items():
            t, mean, _, _ = curves[stage]
            figure.add_trace(
                go.Scatter(
                    x=np.float32(t),
                    y=np.float32(np.nan_to_num(mean)),
                    mode="lines",
                    line={"width": 0},
                    fillcolor=color,
                    stackgroup=f"s{row}",
                    legendgroup=s.name,
                    name=stage,
                    showlegend=row == 1,
                    hovertemplate=f"{stage} %{{y:.4g}}<extra>{s.name}</extra>",
                ),
                row=row,
                col=1,
            )
        figure.update_yaxes(title_text="turns", row=row, col=1)
    figure.update_yaxes(range=[0, 1.05 * highest or 1.0])
    figure.update_layout(
        showlegend=True,
        legend={"orientation": "h", "x": 1, "xanchor": "right", "y": 1.0, "yanchor": "bottom", "traceorder": "normal"},
    )
    figure.update_layout(legend_itemclick=False, legend_itemdoubleclick=False)
    figure.update_annotations(x=0, xanchor="left")
    time_axis(figure, runs, rows=len(runs))
    return Panel(
        div="panel-stages",
        title="In flight by stage, on average: " + "; ".join(_phrases(runs)),
        note="What has been admitted and not retired. Filling is the dead time that a gate on occupancy cannot see.",
        figure=figure,
        in_time=True,
    )


def _apart(runs: Sequence[Shown]) -> Sequence[Shown]:
    # The widest and the calmest tell the story; the strips show all.
    def swing(s: Shown) -> float:
        ends = reach(s.run, "in_flight_turns_mean")
        return ends[1] - ends[0] if ends is not None else 0.0

    return runs if len(runs) < 3 else [max(runs, key=swing), min(runs, key=swing)]


def _phrases(runs: Sequence[Shown]) -> Iterator[str]:
    holdings = {s.name: _holdings(s) for s in runs}
    for text in dict.fromkeys(holdings[s.name] for s in _apart(runs)):
        equal = [name for name, other_text in holdings.items() if other_text == text]
        if not text:
            yield f"{listed(equal)} recorded nothing in the window"
        else:
            yield f"{listed(equal)} {'hold' if len(equal) > 1 else 'holds'} {text}"


def _holdings(s: Shown) -> str:
    inside, widths = bins_inside(s.run.signals, s.run.window_s)
    if not inside.any():
        return ""
    means = [
        float(np.average(s.run.signals[f"{stage}_turns_mean"].to_numpy(dtype=float)[inside], weights=widths[inside]))
        for stage in STAGES
    ]
    return ", ".join(f"{plain(mean)} {stage}" for stage, mean in zip(STAGES, means))
