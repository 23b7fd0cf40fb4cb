"""How long a turn takes: the distribution of TTFT, TPOT and the whole, over the window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from scenarios.report.numbers import seconds
from scenarios.report.panel import Panel, Shown, frame
from scenarios.run.figures import Floats
from scenarios.run.metrics import turn_latencies
from scenarios.run.record import RunData

KINDS = {"ttft_s": "first token, from arrival (s)", "tpot_s": "per further token (s)", "e2e_s": "whole turn (s)"}
POINTS = 300


def in_window(run: RunData, kind: str) -> Floats:
    """Return the latencies of one kind that count: first tokens, or retirements, inside the window."""
    at = run.turns["filled_s" if kind == "ttft_s" else "ended_s"].to_numpy(dtype=float)
    values = turn_latencies(run.turns)[kind]
    return values[(at >= run.window_s[0]) & (at <= run.window_s[1]) & ~np.isnan(values)]


def ecdf(values: Floats) -> tuple[Floats, Floats]:
    """Return the distribution at `POINTS` shares, denser towards the tail; its ends are the true ends."""
    tail = 1.0 - np.geomspace(0.1, 1e-4, POINTS // 3)
    share = np.concatenate([np.linspace(0.0, 0.9, POINTS - POINTS // 3, endpoint=False), tail, [1.0]])
    return np.quantile(values, share), share


def panel(runs: Sequence[Shown]) -> Panel | None:
    """Return three cumulative distributions with p50 and p99 marked."""
    kinds = [k for k in KINDS if any(len(s.run.turns) and len(in_window(s.run, k)) for s in runs)]
    if not kinds:
        return None
    figure = frame(1, len(kinds), height=330, horizontal_spacing=0.05, shared_yaxes=True)
    for col, kind in enumerate(kinds, 1):
        ends = []
        for s in runs:
            values = in_window(s.run, kind) if len(s.run.turns) else np.empty(0)
            if len(values):
                _draw(figure, s, values, col)
                ends += [np.quantile(values, 0.005), values.max()]
        # The fastest two hundredth may reach down to nothing, which would squeeze the rest of a log axis.
        span = np.log10([max(min(ends), 1e-9) / 1.1, max(max(ends), 1e-9) * 1.1])
        if span[1] - span[0] < 0.4:
            span += [-0.2, 0.2]
        figure.update_xaxes(type="log", title_text=KINDS[kind], exponentformat="SI", range=span, row=1, col=col)
    figure.update_layout(hovermode="closest")
    figure.update_yaxes(title_text="share of turns (%)", row=1, col=1)
    figure.update_yaxes(range=[0, 102], tickvals=[0, 25, 50, 75, 90, 99], row=1)
    return Panel(
        div="panel-latency",
        title=_title(runs),
        note="Curves further left are faster; the dots are p50 and p99. Times in seconds on a log axis.",
        figure=figure,
        group="What a turn feels",
    )


def _draw(figure: Any, s: Shown, values: Floats, col: int) -> None:  # plotly publishes no types
    group = {"legendgroup": s.name, "name": s.name, "showlegend": False}
    x, share = ecdf(values)
    hover = f"%{{x:.3g}} s: %{{y:.1f}} %<extra>{s.name}</extra>"
    figure.add_trace(
        go.Scatter(
            x=np.float32(x),
            y=np.float32(100 * share),
            mode="lines",
            line={"color": s.look.color, "width": 1.8, "dash": s.look.dash},
            hovertemplate=hover,
            **group,
        ),
        row=1,
        col=col,
    )
    figure.add_trace(
        go.Scatter(
            x=np.quantile(values, [0.5, 0.99]),
            y=[50, 99],
            mode="markers",
            marker={"color": s.look.color, "size": 8},
            hovertemplate=hover,
            **group,
        ),
        row=1,
        col=col,
    )


def _title(runs: Sequence[Shown]) -> str:
    tails = [(float(np.quantile(v, 0.99)), s) for s in runs if len(s.run.turns) and len(v := in_window(s.run, "e2e_s"))]
    if not tails:
        return "Latency: no turn was retired in the window"
    tails.sort(key=lambda pair: pair[0])
    best, worst = tails[0], tails[-1]
    if len(tails) == 1:
        return f"Latency: 99 of 100 turns of {best[1].name} end within {seconds(best[0])}"
    ends = (f"{seconds(tail)} under {s.name}" for tail, s in (best, worst))
    return f"Latency: p99 of a whole turn is {', '.join(ends)}"
