"""The report page: one HTML file with all its panels, which needs no network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from scenarios.pages.charts import chart
from scenarios.pages.document import write_page
from scenarios.pages.style import SCRIPT
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
    workers,
)
from scenarios.run.record import RunData

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
    workers.panel,
    pools.occupancy,
    pools.memory,
    timeline.panel,
    tiers.timeline,
    tiers.flows,
)


def contents(runs: Sequence[RunData], joined: Sequence[Mapping[str, Any]] | None = None) -> tuple[str, str, str]:
    """Return the title, the body and the script of the report on these runs."""
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
    body = f"{header.top(named)}{header.bar(named)}{''.join(sections)}{header.foot(named)}"
    return runs[0].title or runs[0].candidate, body, f"const WHOLE = {time_range};{SCRIPT}"


def _section(panel: Panel) -> str:
    return (
        f"<section{' data-time=1' if panel.in_time else ''}><h3>{escape(panel.title)}</h3>"
        f'<p class="note">{escape(panel.note)}</p>{chart(panel.figure, panel.div)}</section>'
    )


def write_report(
    runs: Sequence[RunData],
    path: Path,
    joined: Sequence[Mapping[str, Any]] | None = None,
    *,
    single_file: bool = False,
) -> Path:
    """Write the report and return its path; an older report there is replaced.

    `joined` holds each candidate's summary over all seeds, for the answer and the table; None: one run each. With
    `single_file` plotly.js stands in the page, else once in the page's folder.
    """
    title, body, script = contents(runs, joined)
    return write_page(path, title, body, script=script, single_file=single_file)
