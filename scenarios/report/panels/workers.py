"""The workers of every scaled pool: ready and asked for over time; GPU-hours, changes and flaps in the title."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from scenarios.report.numbers import plain
from scenarios.report.panel import Panel, Shown, frame, time_axis
from scenarios.run.figures import level, line_and_band
from scenarios.run.record import RunData


def panel(runs: Sequence[Shown]) -> Panel | None:
    """Return the pools that any candidate's capacity law commands; None where no law commands one."""
    names = list(dict.fromkeys(name for s in runs for name in asked(s.run)))
    if not names:
        return None
    figure = frame(
        len(names),
        height=60 + 190 * len(names),
        shared_xaxes=True,
        vertical_spacing=min(0.1, 0.3 / len(names)),
        subplot_titles=names,
    )
    for row, name in enumerate(names, 1):
        for s in runs:
            for trace in _traces(s, name):
                figure.add_trace(trace, row=row, col=1)
    figure.update_yaxes(title_text="workers", rangemode="tozero")
    figure.update_annotations(x=0, xanchor="left")
    time_axis(figure, runs, rows=len(names))
    return Panel(
        div="panel-workers",
        title=f"Workers: {'; '.join(_costs_text(s) for s in runs)}",
        note="Solid: workers that are ready. Dotted: workers asked for; between the two, pending or draining.",
        figure=figure,
        in_time=True,
        group="The cluster",
    )


def asked(run: RunData) -> dict[str, list[tuple[float, float]]]:
    """Return the targets that the capacity law set, by configuration: instants in seconds, and workers."""
    targets: dict[str, list[tuple[float, float]]] = {}
    for event in run.events:
        if event.get("kind") == "command" and event.get("slot") == "capacity":
            command: Mapping[str, Any] = event.get("command") or {}  # Any: JSON
            for name, workers in (command.get("target_workers") or {}).items():
                targets.setdefault(name, []).append((float(event["at_s"]), float(workers)))
    return targets


def _traces(s: Shown, name: str) -> list[Any]:  # plotly publishes no types
    traces: list[Any] = []
    signal = f"pool.{name}.active_workers"
    if f"{signal}_mean" in s.run.signals:
        traces += line_and_band(s.look, *level(s.run.signals, signal), unit="ready")
    points = asked(s.run).get(name, [])
    if points:
        at_s, workers = zip(*points)
        traces.append(
            go.Scatter(
                x=np.append(at_s, s.run.window_s[1]).astype(np.float32),
                y=np.append(workers, workers[-1]).astype(np.float32),
                mode="lines",
                line={"color": s.look.color, "width": 1.2, "dash": "dot", "shape": "hv"},
                hovertemplate=f"%{{y:.4g}} asked<extra>{s.look.label}</extra>",
                legendgroup=s.look.label,
                name=s.look.label,
                showlegend=False,
            )
        )
    return traces


def _costs_text(s: Shown) -> str:
    parts = []
    hours, changes = s.run.summary.get("gpu_hours"), s.run.summary.get("reconfigurations") or {}
    if hours is not None:
        parts.append(f"{plain(hours)} GPU-hours")
    if changes.get("count"):
        parts.append(f"{changes['count']:,} changes, {changes.get('flaps', 0):,} of them flaps")
    return f"{s.name} {', '.join(parts) or 'no changes'}"
