"""Chosen workers and the turns on them: a Gantt chart of the first stretch of the judged window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go

from scenarios.report.numbers import plain
from scenarios.report.panel import Panel, Shown, frame
from scenarios.report.panels.pools import GROUP
from scenarios.report.perfetto import lanes
from scenarios.run.figures import Floats
from scenarios.run.record import RunData

ROLES = {"fill": ("fill_worker", "fill_started_s", "filled_s"), "decode": ("decode_worker", "joined_s", "ended_s")}
COLORS = {"fill": "#A48BD6", "decode": "#4B2E8F"}
# Of a worker with hundreds of slots a dozen lanes show the pattern; five stays show the hand-over from turn to turn.
LANES, STAYS = 12, 5


class Strip(NamedTuple):
    """One worker's turns in the stretch: bars on lanes, and how many lanes there were."""

    role: str
    worker: int
    begins: Floats
    ends: Floats
    lane: np.ndarray
    depth: int


def worker_strips(run: RunData) -> tuple[list[Strip], tuple[float, float]]:
    """Return the busiest and the idlest worker of each role, and the stretch of time shown."""
    first, last = run.window_s
    stays = (run.turns["ended_s"] - run.turns["joined_s"]).dropna()
    until = min(last, first + STAYS * float(stays.median())) if len(stays) else last
    strips = []
    for role, (column, begins, ends) in ROLES.items():
        active = run.turns[(run.turns[column] >= 0) & run.turns[begins].notna()]
        active = active[(active[begins] < until) & ~(active[ends] < first)].sort_values(
            [begins, "turn_id"], kind="stable"
        )
        begin = active[begins].to_numpy(dtype=float).clip(first)
        end = active[ends].fillna(last).to_numpy(dtype=float).clip(max=until)
        workers = active[column].to_numpy()
        loads = [(float((end - begin)[workers == w].sum()), int(w)) for w in np.unique(workers)]
        for _, worker in sorted({max(loads), min(loads)}, reverse=True) if loads else ():
            mine = workers == worker
            lane = lanes(begin[mine], end[mine])
            depth = int(lane.max()) + 1
            kept = lane < LANES
            strips.append(Strip(role, worker, begin[mine][kept], end[mine][kept], lane[kept], depth))
    return strips, (first, until)


def panel(runs: Sequence[Shown]) -> Panel | None:
    """Return the timeline; None where the plant has a single worker of each kind."""
    several = [s for s in runs if any(s.run.turns[column].nunique() > 2 for column, _, _ in ROLES.values())]
    if not several:
        return None
    drawn = [(s, *worker_strips(s.run)) for s in several]
    heights = [sum(_height(strip) for strip in strips) for _, strips, _ in drawn]
    figure = frame(
        len(drawn),
        height=70 + sum(30 + 7 * height for height in heights),
        row_heights=[float(height) for height in heights],
        subplot_titles=[s.name for s in several],
        vertical_spacing=min(0.06, 0.3 / len(drawn)),
    )
    for row, (s, strips, stretch) in enumerate(drawn, 1):
        _draw(figure, s, strips, row)
        figure.update_xaxes(range=list(stretch), row=row, col=1)
    figure.update_layout(hovermode="closest", margin_l=130)
    figure.update_annotations(x=0, xanchor="left")
    figure.update_xaxes(title_text="time (s)", row=len(drawn), col=1)
    return Panel(
        div="panel-timeline",
        title="Worker timeline: " + "; ".join(_phrase(s, strips) for s, strips, _ in drawn[:2]),
        note="The busiest and the idlest worker of each kind at the start of the judged window; a bar is a turn, a gap "
        f"an idle slot. Up to {LANES} turns at once are drawn; the label counts all.",
        figure=figure,
        group=GROUP,
    )


def _height(strip: Strip) -> int:
    # Its lanes and a gap, and never less than its two lines of label.
    return max(min(strip.depth, LANES) + 2, 6)


def _draw(figure: Any, s: Shown, strips: Sequence[Strip], row: int) -> None:  # plotly publishes no types
    base, ticks, texts = 0, [], []
    for strip in strips:
        gap = np.full(len(strip.begins), np.nan)
        figure.add_trace(
            go.Scatter(
                x=np.column_stack([strip.begins, strip.ends, gap]).ravel(),
                y=np.float32(np.repeat(base + strip.lane, 3)),
                mode="lines",
                line={"color": COLORS[strip.role], "width": 5},
                legendgroup=s.name,
                name=s.name,
                showlegend=False,
                hovertemplate=f"{strip.role} {strip.worker}, %{{x:.4g}} s<extra>{s.name}</extra>",
            ),
            row=row,
            col=1,
        )
        ticks.append(base + (min(strip.depth, LANES) - 1) / 2)
        texts.append(f"{strip.role} {strip.worker}<br>{strip.depth} at once")
        base += _height(strip)
    figure.update_yaxes(tickvals=ticks, ticktext=texts, range=[base - 1, -1], showgrid=False, row=row, col=1)


def _phrase(s: Shown, strips: Sequence[Strip]) -> str:
    depths = [strip.depth for strip in strips if strip.role == "decode"] or [strip.depth for strip in strips]
    if not depths:
        return f"{s.name} has no turn in this stretch"
    if min(depths) == max(depths):
        return f"{s.name} holds {plain(max(depths))} turns at once on its decode workers"
    return f"{s.name}'s busiest decode worker holds {plain(max(depths))} turns at once, its idlest {plain(min(depths))}"
