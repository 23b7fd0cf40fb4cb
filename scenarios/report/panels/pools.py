"""The pools of a cluster over time: how many slots are busy, and how full their KV memory is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from scenarios.report.numbers import listed, percent, plain
from scenarios.report.panel import Panel, Shown, frame, reach, time_axis
from scenarios.run.figures import level, level_column, line_and_band

GROUP = "The cluster"


def _pools(runs: Sequence[Shown], field: str) -> list[str]:
    pattern = re.compile(rf"^(pool\.(.+)\.{field})(_mean)?$")
    pool_names = [m.group(1) for s in runs for name in s.run.signals if (m := pattern.match(str(name)))]
    return [name for name in dict.fromkeys(pool_names) if any(_speaks(s, name) for s in runs)]


def _speaks(s: Shown, name: str) -> bool:
    column = level_column(s.run.signals, name)
    return column in s.run.signals and bool((s.run.signals[column] > 0).any())


def _strips(runs: Sequence[Shown], names: Sequence[str], axis: str, scale: float, unit: str) -> Any:  # as plotly
    titles = [name.split(".", 1)[1].rsplit(".", 1)[0] for name in names]
    figure = frame(
        len(names),
        height=60 + 150 * len(names),
        shared_xaxes=True,
        vertical_spacing=min(0.1, 0.3 / len(names)),
        subplot_titles=titles,
    )
    for row, name in enumerate(names, 1):
        for s in runs:
            if level_column(s.run.signals, name) in s.run.signals:
                for trace in line_and_band(s.look, *level(s.run.signals, name), scale=scale, unit=unit):
                    figure.add_trace(trace, row=row, col=1)
    figure.update_yaxes(title_text=axis, rangemode="tozero")
    figure.update_annotations(x=0, xanchor="left")
    time_axis(figure, runs, rows=len(names))
    return figure


def occupancy(runs: Sequence[Shown]) -> Panel | None:
    """Return busy slots of every pool."""
    names = _pools(runs, "busy_slots")
    if not names:
        return None
    return Panel(
        div="panel-pools",
        title=f"Pools: {_span(runs, names, 'busy slots', plain)}",
        note="Turns in fill or in decode batches, by prepared configuration.",
        figure=_strips(runs, names, "busy slots", 1.0, "turns"),
        in_time=True,
        group=GROUP,
    )


def memory(runs: Sequence[Shown]) -> Panel | None:
    """Return the share of KV memory in use in every pool."""
    names = _pools(runs, "kv_used_ratio")
    if not names:
        return None
    return Panel(
        div="panel-kv",
        title=f"KV memory: {_span(runs, names, 'in use', percent)}",
        note="At the top, growth preempts the youngest turns: their work is done twice.",
        figure=_strips(runs, names, "KV memory (%)", 100.0, "%"),
        in_time=True,
        group=GROUP,
    )


def _span(runs: Sequence[Shown], names: Sequence[str], what: str, text: Any) -> str:  # a function of a number
    # The pool and candidate with the widest swing are what a reader should look at first.
    swings = [
        (ends[1] - ends[0], s.name, name, f"{text(ends[0])} to {text(ends[1])}")
        for name in names
        for s in runs
        if (ends := reach(s.run, level_column(s.run.signals, name))) is not None
    ]
    if not swings:
        return "nothing recorded in the window"
    _, _, name, widest = max(swings, key=lambda swing: swing[0])
    pool = name.split(".", 1)[1].rsplit(".", 1)[0]
    equal = listed([candidate for _, candidate, of, ends in swings if (of, ends) == (name, widest)])
    return f"{pool} has {widest} {what} under {equal}"
