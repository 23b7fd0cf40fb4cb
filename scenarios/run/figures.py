"""Drawing shared by a run's plot and the report: colours, thinning that keeps extremes, a line with its band.

Thinning keeps the extremes: bins are gathered in groups, the line is the group's mean and the band runs from the
group's least minimum to its greatest maximum, so a fast chatter stays visible at any width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray

from scenarios.run.record import RunData

Floats = NDArray[np.float64]

# Okabe and Ito's palette (Color Universal Design, 2008) with a brown and a grey for its yellow and its black, which
# vanish on white or on dark ground; after eight candidates the colours come again, dashed.
PALETTE = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#9C6B30", "#808080")
DASHES = ("solid", "dash", "dot", "dashdot")
POINTS = 1000


@dataclass(frozen=True, slots=True)
class Look:
    """How one candidate is drawn everywhere."""

    label: str
    color: str
    dash: str

    def tint(self, alpha: float) -> str:
        """Return the colour, transparent."""
        red, green, blue = (int(self.color[i : i + 2], 16) for i in (1, 3, 5))
        return f"rgba({red},{green},{blue},{alpha})"


def look(number: int, label: str) -> Look:
    """Return the look of the candidate with this number."""
    return Look(label, PALETTE[number % len(PALETTE)], DASHES[number // len(PALETTE) % len(DASHES)])


def thin(t: Floats, mean: Floats, low: Floats, high: Floats, points: int = POINTS) -> tuple[Floats, ...]:
    """Gather bins into at most `points` groups: (middle of the group, mean, least low, greatest high).

    NaN is no measurement and does not count; a group of nothing else is NaN.
    """
    size = max(1, -(-len(t) // points))
    pad = -len(t) % size

    def groups(values: Floats) -> Floats:
        padded: Floats = np.append(values, np.full(pad, np.nan))
        return padded.reshape(-1, size)

    def average(values: Floats) -> Floats:
        grouped = groups(values)
        known = np.isfinite(grouped)
        number = known.sum(axis=1)
        total = np.where(known, grouped, 0.0).sum(axis=1)
        means: Floats = np.divide(total, number, out=np.full(len(number), np.nan), where=number > 0)
        return means

    least, greatest = np.fmin.reduce(groups(low), axis=1), np.fmax.reduce(groups(high), axis=1)
    return average(t), average(mean), least, greatest


def bin_middles(signals: pd.DataFrame) -> Floats:
    """Return the middle of every bin in seconds."""
    start = signals["t_s"].to_numpy(dtype=float)
    return start + (start[1] - start[0]) / 2 if len(start) > 1 else start


def level_column(signals: pd.DataFrame, name: str) -> str:
    """Return the column of a level's mean, or the plain column where only that was recorded."""
    return f"{name}_mean" if f"{name}_mean" in signals else name


def level(signals: pd.DataFrame, name: str, points: int = POINTS) -> tuple[Floats, ...]:
    """Return a level signal thinned: (t, mean, low, high); a column without least and greatest is its own band."""
    parts = [f"{name}_{part}" for part in ("mean", "min", "max")]
    mean, low, high = (signals[p if p in signals else name].to_numpy(dtype=float) for p in parts)
    return thin(bin_middles(signals), mean, low, high, points)


def rate(signals: pd.DataFrame, count: str, points: int = POINTS) -> tuple[Floats, ...]:
    """Return a count per bin as turns a second, thinned; the band holds the groups' own extremes of a bin."""
    start = signals["t_s"].to_numpy(dtype=float)
    width = start[1] - start[0] if len(start) > 1 else 1.0
    per_s = signals[count].to_numpy(dtype=float) / width
    return thin(bin_middles(signals), per_s, per_s, per_s, points)


def line_and_band(
    of: Look, t: Floats, mean: Floats, low: Floats, high: Floats, *, scale: float = 1.0, unit: str = ""
) -> list[Any]:
    """Return the traces of one candidate: a light band from least to greatest below the line of the mean."""
    known = np.isfinite(mean) & np.isfinite(low) & np.isfinite(high)
    # Six figures are plenty for a picture, and half the bytes.
    x, y = t[known].astype(np.float32), (scale * mean[known]).astype(np.float32)
    least, greatest = (scale * low[known]).astype(np.float32), (scale * high[known]).astype(np.float32)
    group = {"legendgroup": of.label, "name": of.label, "showlegend": False}
    traces = []
    if np.any(greatest > least):
        traces.append(
            go.Scatter(
                x=np.append(x, x[::-1]),
                y=np.append(greatest, least[::-1]),
                mode="none",
                fill="toself",
                fillcolor=of.tint(0.18),
                hoverinfo="skip",
                **group,
            )
        )
    line = {"color": of.color, "width": 1.6, "dash": of.dash}
    hover = f"%{{y:.4g}} {unit}<extra>{of.label}</extra>"
    traces.append(go.Scatter(x=x, y=y, mode="lines", line=line, hovertemplate=hover, **group))
    return traces


def shade_warm_up(figure: Any, run: RunData) -> None:  # plotly publishes no types
    """Grey out the warm-up, which is not judged."""
    figure.add_vrect(
        x0=0, x1=run.window_s[0], fillcolor="#808080", opacity=0.14, line_width=0, layer="below", row="all", col="all"
    )
