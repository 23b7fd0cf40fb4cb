"""The report page: one HTML file that holds all its panels and scripts and needs no network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from plotly.offline import get_plotlyjs

from scenarios.report import header
from scenarios.report.panel import Panel, Shown, shown
from scenarios.report.panels import (
    admission,
    classes,
    latency,
    latency_over_time,
    levels,
    occupancy,
    pools,
    repetition,
    stages,
    tiers,
    timeline,
)
from scenarios.report.style import CSS, SCRIPT
from scenarios.run.record import RunData
from scenarios.writing import atomic_write

PANELS: tuple[Callable[[Sequence[Shown]], Panel | None], ...] = (
    occupancy.panel,
    levels.ready,
    admission.panel,
    levels.backlog,
    stages.panel,
    latency.panel,
    latency_over_time.panel,
    classes.panel,
    repetition.autocorrelation,
    repetition.spectrum,
    pools.occupancy,
    pools.memory,
    timeline.panel,
    tiers.timeline,
    tiers.sankey,
)
_REMOVED = ["zoom2d", "pan2d", "select2d", "lasso2d", "zoomIn2d", "zoomOut2d", "autoScale2d"]
CONFIG = {"responsive": True, "displaylogo": False, "modeBarButtonsToRemove": _REMOVED}


def page(runs: Sequence[RunData], joined: Sequence[Mapping[str, Any]] | None = None) -> str:
    """Return the report on these runs as HTML; plotly.js is inlined once, and nothing is fetched."""
    named = shown(runs, joined)
    sections, group = [], ""
    for draw in PANELS:
        panel = draw(named)
        if panel is None:
            continue
        if panel.group != group:
            group = panel.group
            sections.append(f"<h2>{escape(group)}</h2>")
        sections.append(_section(panel))
    time_range = [0, max(run.window_s[1] for run in runs)]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(runs[0].title or runs[0].candidate)} · Steadyflow</title><style>{CSS}</style>"
        f"<script>{get_plotlyjs()}</script></head><body><main>"
        f"{header.top(named)}{header.bar(named)}{''.join(sections)}{header.foot(named)}"
        f"</main><script>const WHOLE = {time_range};{SCRIPT}</script></body></html>"
    )


def _section(panel: Panel) -> str:
    body = panel.figure.to_html(full_html=False, include_plotlyjs=False, div_id=panel.div, config=CONFIG)
    height = int(panel.figure.layout.height)
    return (
        f"<section{' data-time=1' if panel.in_time else ''}><h3>{escape(panel.title)}</h3>"
        f'<p class="note">{escape(panel.note)}</p><div style="height:{height}px">{body}</div></section>'
    )


def write_report(runs: Sequence[RunData], path: Path, joined: Sequence[Mapping[str, Any]] | None = None) -> Path:
    """Write the report and return its path; an older report there is replaced.

    `joined` holds each candidate's summary over all seeds, for the answer and the table; None: one run each.
    """
    html = page(runs, joined)
    with atomic_write(path) as part:
        part.write_text(html, encoding="utf-8")
    return path
