"""The page of `judge`: each series with its verdict, its course and its autocorrelation, as one small HTML file.

The pictures are drawn here as SVG, so that a page of many series stays small and needs no script.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np

from scenarios.judge import Judged
from scenarios.pages.style import CSS
from scenarios.report.curves import Axis, Curve, chart
from scenarios.verdict.types import Floats
from scenarios.writing import atomic_write

# Columns of the picture; each shows the least and the greatest value in it, so that no swing is hidden.
MOST_COLUMNS = 700
ACF_PERIODS = 8
MORE_CSS = """
.pair { display: flex; flex-wrap: wrap; gap: 12px; } .pair svg { flex: 1 1 320px; max-width: 100%; height: auto; }
svg.chart text { fill: var(--fg); font: 12px system-ui, sans-serif; } svg.chart .grid { stroke: var(--grid); }
svg.chart .axis { stroke: var(--line); } svg.chart .curve { fill: none; stroke: #2f6fdb; stroke-width: 1.3; }
svg.chart .load { fill: none; stroke: #c2731c; stroke-width: 1; opacity: .8; }
svg.chart .mark { stroke: var(--soft); stroke-dasharray: 3 3; }
"""


def judged_page(judged: Sequence[Judged], title: str) -> str:
    """Return the page as one HTML text; nothing is fetched."""
    sections = "".join(_section(number, series) for number, series in enumerate(judged))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)} · Steadyflow</title><style>{CSS}{MORE_CSS}</style></head>"
        f"<body><main><h1>{escape(title)}: {_count(judged)}</h1>{sections}</main></body></html>"
    )


def _count(judged: Sequence[Judged]) -> str:
    moving = sum(series.verdict.oscillates for series in judged)
    return f"{moving} of {len(judged)} series oscillate by themselves"


def _section(number: int, series: Judged) -> str:
    verdict = series.verdict
    periods_s = [] if verdict.period_s is None else [verdict.period_s, *verdict.other_periods_s]
    periods = "".join(f", period {period_s:.4g} s" for period_s in periods_s)
    facts = (
        f"swing {verdict.amplitude_ratio:.1%} of {series.scale:.4g}; {series.reversals_per_hour:.3g} reversals and "
        f"{series.flaps_per_hour:.3g} flaps an hour; {series.cost}; likely mechanism: {series.likely}"
    )
    notes = "".join(f"<p class=note>{escape(note)}</p>" for note in series.notes)
    return (
        f'<section id="judged-{number}"><h3>{escape(series.name)}: {verdict.verdict.replace("_", " ")}{periods}</h3>'
        f"<p>{escape(verdict.reason)}; {escape(facts)}.</p>{notes}"
        f"<div class=pair>{_course(series)}{_autocorrelation(series)}</div></section>"
    )


def _course(series: Judged) -> str:
    start_s = series.start_s + (series.epoch_s or 0.0)
    curves = [_envelope(series.mean, start_s, series.step_s, series.held, "curve", series.name)]
    for name, values in series.loads.items():
        # A load has a scale of its own: it is drawn over the same height, and its legend says so.
        low, high = float(series.mean.min()), float(series.mean.max())
        span = float(np.ptp(values)) or 1.0
        drawn = low + (values - values.min()) / span * ((high - low) or 1.0)
        label = f"load {name} ({values.min():.3g} to {values.max():.3g})"
        curves.append(_envelope(drawn, start_s, series.step_s, False, "load", label))
    clock = "calendar" if series.epoch_s is not None else "seconds"
    return chart(curves, Axis(title="time (UTC)" if clock == "calendar" else "time (s)", kind=clock), Axis(title=""))


def _envelope(y: Floats, start_s: float, step_s: float, held: bool, style: str, label: str) -> Curve:
    per = max(int(np.ceil(len(y) / MOST_COLUMNS)), 1)
    at: Floats = start_s + np.arange(len(y), dtype=np.float64) * step_s
    if per == 1:
        return Curve(x=at, y=y, style=style, label=label, held=held)
    full = len(y) // per * per
    parts = y[:full].reshape(-1, per)
    both = np.stack([parts.min(axis=1), parts.max(axis=1)], axis=1)
    both[1::2] = both[1::2, ::-1]
    return Curve(x=np.repeat(at[:full:per], 2), y=both.ravel(), style=style, label=label, held=False)


def _autocorrelation(series: Judged) -> str:
    verdict = series.verdict
    lags = len(verdict.acf)
    if lags == 0:
        return ""
    if verdict.period_s is not None:
        lags = max(int(np.searchsorted(verdict.acf_lags_s, ACF_PERIODS * verdict.period_s)), 2)
    stride = max(lags // MOST_COLUMNS, 1)
    curve = Curve(x=verdict.acf_lags_s[:lags:stride], y=verdict.acf[:lags:stride], style="curve", label="")
    marks = () if verdict.period_s is None else (verdict.period_s,)
    return chart([curve], Axis(title="lag (s)"), Axis(title="autocorrelation"), width=420, marks=marks)


def write_judged(judged: Sequence[Judged], title: str, path: Path) -> Path:
    """Write the page and return its path."""
    html = judged_page(judged, title)
    with atomic_write(path) as part:
        part.write_text(html, encoding="utf-8")
    return path
