"""The page of `judge`: each series with its verdict, its course and its autocorrelation, as one HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np

from scenarios.judge import Judged
from scenarios.pages.charts import chart
from scenarios.pages.document import write_page
from scenarios.report.panel import frame

# More points than a screen has pixels make the page heavy and show nothing more.
MOST_POINTS = 4000


def _body(judged: Sequence[Judged], title: str) -> str:
    sections = "".join(_section(number, series) for number, series in enumerate(judged))
    return f"<h1>{escape(title)}: {_count(judged)}</h1>{sections}"


def _count(judged: Sequence[Judged]) -> str:
    moving = sum(series.verdict.oscillates for series in judged)
    return f"{moving} of {len(judged)} series oscillate by themselves"


def _section(number: int, series: Judged) -> str:
    verdict = series.verdict
    period = "" if verdict.period_s is None else f", period {verdict.period_s:.4g} s"
    figure = frame(1, 2, column_widths=[0.65, 0.35], horizontal_spacing=0.08)
    stride = max(len(series.mean) // MOST_POINTS, 1)
    at = series.start_s + (np.arange(len(series.mean)) + 0.5) * series.step_s
    figure.add_scatter(x=at[::stride], y=series.mean[::stride], mode="lines", line={"width": 1.2}, row=1, col=1)
    lags = max(len(verdict.acf), 1)
    if verdict.period_s is not None and len(verdict.acf):
        lags = int(np.searchsorted(verdict.acf_lags_s, 8 * verdict.period_s))
        figure.add_vline(x=verdict.period_s, line_dash="dot", line_width=1, row=1, col=2)
    figure.add_scatter(
        x=verdict.acf_lags_s[:lags], y=verdict.acf[:lags], mode="lines", line={"width": 1.5}, row=1, col=2
    )
    figure.update_xaxes(title_text="time (s)", row=1, col=1)
    figure.update_xaxes(title_text="lag (s)", row=1, col=2)
    figure.update_yaxes(title_text="autocorrelation", row=1, col=2)
    body = chart(figure, f"judged-{number}")
    facts = (
        f"swing {verdict.amplitude_ratio:.1%} of {series.scale:.4g}; {series.reversals_per_hour:.3g} reversals and "
        f"{series.flaps_per_hour:.3g} flaps an hour; likely mechanism: {series.likely}"
    )
    notes = "".join(f"<p class=note>{escape(note)}</p>" for note in series.notes)
    return (
        f"<section><h3>{escape(series.name)}: {verdict.verdict.replace('_', ' ')}{period}</h3>"
        f"<p>{escape(verdict.reason)}; {escape(facts)}.</p>{notes}{body}</section>"
    )


def write_judged(judged: Sequence[Judged], title: str, path: Path) -> Path:
    """Write the page, one file with all it needs, and return its path."""
    return write_page(path, title, _body(judged, title), single_file=True)
