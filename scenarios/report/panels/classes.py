"""What each service class feels: TTFT and TPOT from p50 to p99, with the class's objective."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from scenarios.report.numbers import listed, percent, seconds
from scenarios.report.panel import Panel, Shown, frame

KINDS = {"ttft_s": "first token, from arrival (s)", "tpot_s": "per further token (s)"}


def panel(runs: Sequence[Shown]) -> Panel | None:
    """Return one bar from p50 to p99 for each class and candidate."""
    classes = list(dict.fromkeys(name for s in runs for name in _by_class(s)))
    if len(classes) < 2:
        return None
    figure = frame(
        1, len(KINDS), height=70 + len(classes) * (26 + 14 * len(runs)), shared_yaxes=True, horizontal_spacing=0.04
    )
    step = 0.7 / max(1, len(runs))
    for col, kind in enumerate(KINDS, 1):
        for number, s in enumerate(runs):
            _bars(figure, s, classes, kind, col, 0.35 - (number + 0.5) * step)
        _objectives(figure, runs, classes, kind, col)
        figure.update_xaxes(type="log", title_text=KINDS[kind], exponentformat="SI", row=1, col=col)
    figure.update_yaxes(tickvals=list(range(len(classes))), ticktext=classes, range=[len(classes) - 0.5, -0.5])
    figure.update_layout(hovermode="closest", margin_l=110)
    return Panel(
        div="panel-classes",
        title=_title(runs, classes),
        note="From p50 (dot) to p99 (bar) of every class; the upright stroke is the class's objective.",
        figure=figure,
        group="What a turn feels",
    )


def _by_class(s: Shown) -> Mapping[str, Any]:  # JSON
    by_class: Mapping[str, Any] = s.run.summary.get("by_class") or {}
    return by_class


def _bars(figure: Any, s: Shown, classes: Sequence[str], kind: str, col: int, shift: float) -> None:  # as plotly
    x: list[float | None] = []
    y: list[float | None] = []
    for row, name in enumerate(classes):
        percentiles = _by_class(s).get(name, {}).get("latency", {}).get(kind, {})
        if percentiles.get("p50") and percentiles.get("p99"):
            x += [percentiles["p50"], percentiles["p99"], None]
            y += [row - shift, row - shift, None]
    figure.add_trace(
        go.Scatter(
            x=x,
            y=y,
            mode="lines+markers",
            line={"color": s.look.color, "width": 4},
            marker={"symbol": ["circle", "line-ns", "circle"] * (len(x) // 3), "size": 10, "line": {"width": 3}},
            marker_color=s.look.color,
            marker_line_color=s.look.color,
            legendgroup=s.name,
            name=s.name,
            showlegend=False,
            hovertemplate=f"%{{x:.3g}} s<extra>{s.name}</extra>",
        ),
        row=1,
        col=col,
    )


def _objectives(figure: Any, runs: Sequence[Shown], classes: Sequence[str], kind: str, col: int) -> None:  # as plotly
    for row, name in enumerate(classes):
        promised = _by_class(runs[0]).get(name, {}).get("objectives", {}).get(kind)
        if promised:
            line = {"color": "#808080", "width": 2.5, "dash": "dot"}
            figure.add_shape(
                type="line", x0=promised, x1=promised, y0=row - 0.42, y1=row + 0.42, line=line, row=1, col=col
            )


def _title(runs: Sequence[Shown], classes: Sequence[str]) -> str:
    shares = [
        (share, name, s.name, seconds(_by_class(s)[name]["latency"]["ttft_s"]["p99"]))
        for name in classes
        for s in runs
        if name in _by_class(s) and (share := _by_class(s)[name]["goodput"]["ratio"]) is not None
    ]
    if not shares:
        return "By class: no turn ended in the window"
    share, name, _, tail = min(shares, key=lambda percentiles: percentiles[0])
    equal = [s for other, of, s, late in shares if (percent(other), of, late) == (percent(share), name, tail)]
    return (
        f"By class: {name} fares worst, under {listed(equal)}: "
        f"{percent(share)} of its turns meet their objectives, p99 of the first token is {tail}"
    )
