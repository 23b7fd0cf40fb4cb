"""HTML pages of the planner: one self-contained file with Plotly charts that opens without a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import plotly.graph_objects as go

from scenarios.pages import document
from scenarios.pages.charts import chart

COLOURS = ("#3b76d6", "#d9772b", "#2c9a68", "#a04fc0", "#c43d4f", "#77808d")
_PARTS = {"attention": "#3b76d6", "experts": "#d9772b", "network": "#c43d4f", "dense": "#2c9a68"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One figure with its heading, an explanatory sentence, and a stable name."""

    name: str
    title: str
    note: str
    figure: go.Figure


def layout(
    figure: go.Figure,
    x: str,
    y: str,
    *,
    height: int = 460,
    log_x: bool = False,
    log_y: bool = False,
    named: str = "",
) -> go.Figure:
    """Apply the common layout: transparent background, thin grid, legend below; `named` is a categorical axis."""
    axis = {"gridcolor": "rgba(128,128,128,.25)", "zeroline": False, "title_standoff": 12}
    figure.update_layout(
        height=height,
        margin={"l": 70, "r": 20, "t": 16, "b": 60},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        legend={"orientation": "h", "y": -0.2},
        hovermode="closest",
        modebar={"bgcolor": "rgba(0,0,0,0)"},
    )
    figure.update_xaxes(title=x, type="category" if named == "x" else "log" if log_x else "linear", **axis)
    figure.update_yaxes(title=y, type="category" if named == "y" else "log" if log_y else "linear", **axis)
    for update, log in ((figure.update_xaxes, log_x), (figure.update_yaxes, log_y)):
        if log:
            update(dtick=1, minor={"ticks": "outside", "dtick": "D1"}, exponentformat="SI")
    return figure


def lines(
    series: Sequence[tuple[str, Sequence[float], Sequence[float], Sequence[str]]],
    *,
    pairs: int = 0,
    mode: str = "lines+markers",
) -> go.Figure:
    """Draw one line with markers per (name, x, y, hover text).

    Series after the first `pairs` repeat their colours, dotted.
    """
    figure = go.Figure()
    for i, (name, xs, ys, texts) in enumerate(series):
        figure.add_trace(
            go.Scatter(
                x=list(xs),
                y=list(ys),
                name=name,
                mode=mode,
                text=list(texts),
                hovertemplate="%{text}<br>%{x:.4g}, %{y:.4g}<extra></extra>" if texts else None,
                line={
                    "color": COLOURS[(i % pairs if pairs else i) % len(COLOURS)],
                    "width": 2,
                    "dash": "dot" if pairs and i >= pairs else "solid",
                },
                marker={
                    "size": 6,
                    "color": COLOURS[(i % pairs if pairs else i) % len(COLOURS)],
                    "symbol": "circle-open" if pairs and i >= pairs else "circle",
                },
            )
        )
    return figure


def gantt(rows: Sequence[tuple[str, Sequence[tuple[str, str, float, float]]]]) -> go.Figure:
    """Draw rows of (operation, part, start_s, seconds) on a microsecond axis; colours are the parts."""
    figure = go.Figure()
    seen: set[str] = set()
    for label, bars in rows:
        for name, part, start, seconds in bars:
            figure.add_trace(
                go.Bar(
                    y=[label],
                    x=[seconds * 1e6],
                    base=[start * 1e6],
                    orientation="h",
                    name=part,
                    legendgroup=part,
                    showlegend=part not in seen,
                    marker={"color": _PARTS[part], "line": {"color": "rgba(255,255,255,.8)", "width": 1}},
                    text=name,
                    textposition="inside",
                    insidetextanchor="middle",
                    constraintext="inside",
                    hovertemplate=f"{name}: %{{x:.2f}} us<extra></extra>",
                )
            )
            seen.add(part)
    figure.update_layout(barmode="overlay", bargap=0.35)
    return layout(figure, "microseconds from the layer's start", "", height=170 + 70 * len(rows), named="y")


def _body(title: str, lead: str, charts: Sequence[Chart]) -> str:
    sections = "".join(
        f'<section><h3>{escape(plotted.title)}</h3><p class="note">{escape(plotted.note)}</p>'
        f"{chart(plotted.figure, f'plan-{plotted.name}')}</section>"
        for plotted in charts
    )
    return f'<h1>{escape(title)}</h1><p class="question">{escape(lead)}</p>{sections}'


def write_page(path: Path, title: str, lead: str, charts: Sequence[Chart]) -> Path:
    """Write the page, one file with all it needs, and return its path."""
    return document.write_page(path, title, _body(title, lead, charts), single_file=True)
