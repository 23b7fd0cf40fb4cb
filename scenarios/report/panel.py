"""Panels of the report: a finding as title, one figure with a fixed id, a note on how to read it; and their axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from plotly.subplots import make_subplots

from scenarios.report.numbers import plain, seconds
from scenarios.run.figures import Look, look
from scenarios.run.metrics import bins_inside
from scenarios.run.record import RunData

REPEATS = ("limit_cycle", "echo", "quasi_cycle", "driven", "ringing")


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One figure of the page.

    `div` is the id of its element in the page; `in_time` links its time axis to the others'; `group` is the heading it
    stands under.
    """

    div: str
    title: str
    note: str
    figure: Any  # plotly publishes no types
    in_time: bool = False
    group: str = "Flow over time"


@dataclass(frozen=True, slots=True)
class Shown:
    """One run with its look; `joined` is the summary over all seeds where the run is the first of several."""

    run: RunData
    look: Look
    joined: Mapping[str, Any] | None = None

    @property
    def name(self) -> str:
        """The label in every legend and title."""
        return self.look.label

    @property
    def summary(self) -> Mapping[str, Any]:
        """The numbers of all seeds where there are several, else the run's."""
        return self.run.summary if self.joined is None else self.joined


def shown(runs: Sequence[RunData], joined: Sequence[Mapping[str, Any]] | None = None) -> list[Shown]:
    """Give every run its look, and its summary over all seeds; runs of one name differ by seed, or number."""
    names = [run.candidate for run in runs]
    if len(set(names)) < len(names):
        names = [f"{run.candidate} (seed {run.summary.get('seed', '?')})" for run in runs]
    if len(set(names)) < len(names):
        names = [f"{run.candidate} ({number})" for number, run in enumerate(runs, 1)]
    every = joined if joined is not None else tuple(None for _ in runs)
    return [
        Shown(run, look(number, name), summaries)
        for number, (run, name, summaries) in enumerate(zip(runs, names, every))
    ]


def frame(rows: int = 1, cols: int = 1, *, height: int = 300, **options: Any) -> Any:  # plotly publishes no types
    """Return an empty figure in the style of the page; its style sheet colours text and grid."""
    figure = make_subplots(rows=rows, cols=cols, **options)
    figure.update_layout(
        template="none",
        height=height,
        margin={"l": 64, "r": 16, "t": 28 if "subplot_titles" in options else 10, "b": 44},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": "system-ui, sans-serif", "size": 12},
        hovermode="x",
        showlegend=False,
        modebar={"bgcolor": "rgba(0,0,0,0)", "color": "#8a8f98"},
    )
    figure.update_xaxes(showline=False, zeroline=False, gridwidth=1, ticks="")
    figure.update_yaxes(showline=False, zeroline=False, gridwidth=1, ticks="")
    figure.update_annotations(font_size=12)
    return figure


def time_axis(figure: Any, runs: Sequence[Shown], rows: int = 1) -> None:  # plotly publishes no types
    """Label the time axis and show the whole run, the warm-up shaded."""
    last = max(s.run.window_s[1] for s in runs)
    figure.update_xaxes(range=[0, last])
    figure.update_xaxes(title_text="time (s)", row=rows, col=1)
    warm = min(s.run.window_s[0] for s in runs)
    if warm > 0:
        figure.add_vrect(
            x0=0, x1=warm, fillcolor="#808080", opacity=0.13, line_width=0, layer="below", row="all", col="all"
        )


def has(runs: Sequence[Shown], column: str) -> bool:
    """Tell whether any run recorded this column with a number in it."""
    return any(column in s.run.signals and bool(np.isfinite(s.run.signals[column]).any()) for s in runs)


def reach(run: RunData, column: str) -> tuple[float, float] | None:
    """Return the range of the signal in the window: the 1st and 99th percentile of its bin means."""
    if column not in run.signals:
        return None
    inside, _ = bins_inside(run.signals, run.window_s)
    values = run.signals[column].to_numpy(dtype=float)[inside]
    values = values[np.isfinite(values)]
    if not len(values):
        return None
    low, high = np.quantile(values, [0.01, 0.99])
    return float(low), float(high)


def period_text(run: RunData, signal: str) -> str:
    """Return ' every 33.4 s' where the verdict found a repetition, else ''."""
    verdict = run.verdicts.get(signal)
    if verdict is None or verdict.period_s is None or verdict.verdict not in REPEATS:
        return ""
    return f" every {seconds(verdict.period_s)}"


def swing_title(
    runs: Sequence[Shown], subject: str, column: str, signal: str, *, scale: float = 1.0, unit: str = ""
) -> str:
    """Return a title with the range of the candidate that moves most, and of the one that moves least."""
    ranges = [(s, r) for s in runs if (r := reach(s.run, column)) is not None]
    if not ranges:
        return f"{subject}: nothing recorded in the window"
    ranges.sort(key=lambda pair: pair[1][0] - pair[1][1])

    def phrase(s: Shown, ends: tuple[float, float]) -> str:
        low, high = (plain(scale * end) for end in ends)
        if low == high:
            return f"{s.name} holds {low}{unit}"
        return f"{s.name} moves between {low} and {high}{unit}{period_text(s.run, signal)}"

    ends = {tuple(plain(scale * end) for end in r) for _, r in ranges}
    if len(ranges) > 1 and len(ends) == 1:
        low, high = ends.pop()
        return f"{subject}: every candidate " + (
            f"holds {low}{unit}" if low == high else f"moves between {low} and {high}{unit}"
        )
    widest = phrase(*ranges[0])
    return f"{subject}: {widest}" + (f"; {phrase(*ranges[-1])}" if len(ranges) > 1 else "")
