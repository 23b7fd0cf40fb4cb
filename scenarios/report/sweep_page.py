"""The page of a sweep: a map of measured verdicts with the boundary that theory predicts, as one HTML file."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from plotly.offline import get_plotlyjs

from scenarios.catalogue.verdict import LOOP_CYCLES
from scenarios.report.page import CONFIG
from scenarios.report.panel import frame
from scenarios.report.style import CSS
from scenarios.sweep import Sweep
from scenarios.writing import atomic_write

WORDS = (
    "constant",
    "steady",
    "undecided",
    "ringing",
    "quasi_cycle",
    "driven",
    "echo",
    "limit_cycle",
    "unbounded",
)
# From calm to unstable, different in brightness as well as in hue.
COLOURS = ("#d9dbe0", "#8fd3b0", "#bdbdbd", "#ffe08a", "#f6a860", "#9db7e8", "#c084c8", "#d1495b", "#4a1c2b")


def sweep_figure(sweep: Sweep) -> Any:  # plotly publishes no types
    """Return the picture: a line of utilisation and words for one axis, a map for two (further axes at their first).

    The boundary is where the verdict of theory changes between steady and a cycle; on a one-axis sweep it is a line.
    """
    return _map(sweep) if len(sweep.axes) > 1 else _line(sweep)


def _line(sweep: Sweep) -> Any:
    axis = sweep.axes[0]
    figure = frame(1, 1, height=380)
    x = list(axis.values)
    words = [point.measured["verdict"] for point in sweep.points]
    figure.add_scatter(
        x=x,
        y=[point.measured["amplitude_ratio"] for point in sweep.points],
        mode="lines+markers",
        line={"color": "#8a8f98", "width": 1},
        marker={"size": 11, "color": [COLOURS[WORDS.index(word)] for word in words], "line": {"width": 1}},
        text=[word.replace("_", " ") for word in words],
        hovertemplate="%{x:.4g}: %{text}, swing %{y:.3f}<extra></extra>",
    )
    cycles = [_cycles(point.expected) for point in sweep.points]
    for left, right, left_cycles, right_cycles in zip(x, x[1:], cycles, cycles[1:]):
        if None not in (left_cycles, right_cycles) and left_cycles != right_cycles:
            at = (left * right) ** 0.5 if axis.log else (left + right) / 2
            figure.add_vline(x=at, line_dash="dash", annotation_text="theory")
    figure.update_xaxes(title_text=axis.label, type="log" if axis.log else "linear")
    figure.update_yaxes(title_text="swing / scale", rangemode="tozero")
    return figure


def _cycles(expected: Any) -> bool | None:
    return None if expected is None or expected.get("verdict") is None else expected["verdict"] in LOOP_CYCLES


def _beyond(expected: Any) -> float | None:
    # How far beyond the boundary: in gain where theory has a Hopf gain, else only on which side.
    cycles = _cycles(expected)
    if cycles is None:
        return None
    ratio = expected["facts"].get("gain_over_hopf")
    return float(np.log(ratio)) if ratio else (1.0 if cycles else -1.0)


def _map(sweep: Sweep) -> Any:
    across, up = sweep.axes[0], sweep.axes[1]
    shape = tuple(len(axis.values) for axis in sweep.axes)

    def table(pick: Any) -> Any:
        grid = np.array([pick(point) for point in sweep.points], dtype=object).reshape(shape)
        return grid.reshape(shape[0], shape[1], -1)[:, :, 0].T

    code = table(lambda p: WORDS.index(p.measured["verdict"])).astype(float)
    labels = table(
        lambda p: (
            f"{p.measured['verdict'].replace('_', ' ')}, "
            + ("no period" if p.measured["period_s"] is None else f"period {p.measured['period_s']:.4g} s")
            + f", utilisation {p.measured['decode_utilization_ratio']:.3f}"
        )
    )
    figure = frame(1, 1, height=520)
    steps = [
        stop
        for i, colour in enumerate(COLOURS)
        for stop in ([i / len(COLOURS), colour], [(i + 1) / len(COLOURS), colour])
    ]
    figure.add_heatmap(
        x=list(across.values),
        y=list(up.values),
        z=code,
        text=labels,
        zmin=-0.5,
        zmax=len(WORDS) - 0.5,
        colorscale=steps,
        xgap=1,
        ygap=1,
        colorbar={"tickvals": list(range(len(WORDS))), "ticktext": [word.replace("_", " ") for word in WORDS]},
        hovertemplate=f"{across.label} %{{x:.4g}}, {up.label} %{{y:.4g}}: %{{text}}<extra></extra>",
    )
    expected = table(lambda p: _beyond(p.expected))
    if not any(value is None for value in expected.ravel()) and min(expected.ravel()) < 0 < max(expected.ravel()):
        figure.add_contour(
            x=list(across.values),
            y=list(up.values),
            z=expected.astype(float),
            contours={"start": 0.0, "end": 0.0, "size": 1, "coloring": "none"},
            line={"color": "#1d1f23", "width": 3, "dash": "dash", "smoothing": 0.6},
            showscale=False,
            hoverinfo="skip",
        )
    figure.update_xaxes(title_text=across.label, type="log" if across.log else "linear")
    figure.update_yaxes(title_text=up.label, type="log" if up.log else "linear")
    return figure


def write_sweep(sweep: Sweep, title: str, path: Path) -> Path:
    """Write the page and return its path."""
    figure = sweep_figure(sweep)
    body = figure.to_html(full_html=False, include_plotlyjs=False, div_id="sweep-map", config=CONFIG)
    note = (
        f"Verdict of {sweep.signal} for candidate {sweep.candidate}, measured at {len(sweep.points)} points. "
        "The dashed line is where theory expects a cycle to begin."
    )
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)} · Steadyflow</title><style>{CSS}</style><script>{get_plotlyjs()}</script></head>"
        f"<body><main><h1>{escape(title)}</h1><p class=note>{escape(note)}</p>{body}</main></body></html>"
    )
    with atomic_write(path) as part:
        part.write_text(page, encoding="utf-8")
    return path
