"""A finished run for use in a notebook: its tables, its summary and one picture."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from scenarios.run.load import load
from scenarios.run.record import RunData


class Run:
    """One candidate's finished run.

    Attributes
    ----------
    data
        Everything that was recorded.
    """

    def __init__(self, data: RunData) -> None:
        self.data = data

    @classmethod
    def load(cls, path: str | Path) -> Run:
        """Read a run's folder; raises UserError where there is none."""
        return cls(load(Path(path)))

    @property
    def turns(self) -> pd.DataFrame:
        """One row for a turn that arrived; times in seconds from the start."""
        return self.data.turns

    @property
    def signals(self) -> pd.DataFrame:
        """One row a bin: means, minima, maxima and counts."""
        return self.data.signals

    @property
    def summary(self) -> Mapping[str, Any]:
        """The object that `run --json` prints."""
        return self.data.summary

    @property
    def headline(self) -> str:
        """The verdict in words, with its cost and whether decode was fed."""
        return str(self.summary.get("headline", ""))

    def plot(self) -> Any:  # plotly publishes no types
        """Return a Plotly figure: occupancy, ready buffer and admission over time, the warm-up shaded."""
        from plotly.subplots import make_subplots

        from scenarios.pages.charts import without_sharing
        from scenarios.run import figures

        figure = make_subplots(rows=3, cols=1, shared_xaxes=True, vertical_spacing=0.05)
        look = figures.look(0, self.data.candidate)
        panels = (
            (figures.level(self.signals, "decode_occupancy_ratio"), 100.0, "decode pool in use (%)", "%"),
            (figures.level(self.signals, "ready_turns"), 1.0, "ready buffer (turns)", "turns"),
            (figures.rate(self.signals, "admitted_turns"), 1.0, "admission (turns/s)", "turns/s"),
        )
        for number, (curves, scale, title, unit) in enumerate(panels, 1):
            for trace in figures.line_and_band(look, *curves, scale=scale, unit=unit):
                figure.add_trace(trace, row=number, col=1)
            figure.update_yaxes(title_text=title, rangemode="tozero", row=number, col=1)
        figures.shade_warm_up(figure, self.data)
        figure.update_xaxes(title_text="time (s)", row=3, col=1)
        figure.update_layout(
            title=f"{self.data.candidate}: {self.headline}", template="plotly_white", height=640, hovermode="x unified"
        )
        without_sharing(figure)
        return figure

    def __repr__(self) -> str:
        return f"Run({self.data.candidate!r}: {self.headline})"
