"""Numbers of turns over time, one panel each: the ready buffer and the backlog at the door."""

from __future__ import annotations

from collections.abc import Sequence

from scenarios.report.panel import Panel, Shown, frame, has, swing_title, time_axis
from scenarios.run.figures import level, line_and_band


def _level(runs: Sequence[Shown], signal: str, div: str, subject: str, axis: str, note: str) -> Panel | None:
    if not has(runs, f"{signal}_mean"):
        return None
    figure = frame()
    for s in runs:
        if f"{signal}_mean" in s.run.signals:
            figure.add_traces(line_and_band(s.look, *level(s.run.signals, signal), unit="turns"))
    figure.update_yaxes(title_text=axis, rangemode="tozero")
    time_axis(figure, runs)
    title = swing_title(runs, subject, f"{signal}_mean", signal, unit=" turns")
    return Panel(div=div, title=title, note=note, figure=figure, in_time=True)


def ready(runs: Sequence[Shown]) -> Panel | None:
    """Return the ready buffer over time."""
    return _level(
        runs,
        "ready_turns",
        "panel-ready",
        "Ready buffer",
        "filled, waiting for a slot (turns)",
        "Empty: decode starves. Overfull: memory held and first answers late.",
    )


def backlog(runs: Sequence[Shown]) -> Panel | None:
    """Return the line at the front door over time."""
    return _level(
        runs,
        "backlog_turns",
        "panel-backlog",
        "Backlog",
        "waiting at the door (turns)",
        "Turns that arrived and are not yet admitted. A line that only grows is overload, whatever the law.",
    )
