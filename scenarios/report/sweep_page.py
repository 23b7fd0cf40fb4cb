"""The page of a sweep: a map of measured verdicts with the boundary that theory predicts, as one HTML file."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from contourpy import contour_generator

from scenarios.catalogue.verdict import LOOP_CYCLES
from scenarios.pages.charts import chart
from scenarios.pages.document import write_page
from scenarios.report.panel import frame
from scenarios.sweep import Sweep
from scenarios.sweep.grid import Axis
from scenarios.sweep.safe import safe_text
from scenarios.sweep.sweep import WORDS

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

    words = table(lambda p: p.measured["verdict"])
    labels = table(
        lambda p: (
            ("no period" if p.measured["period_s"] is None else f"period {p.measured['period_s']:.4g} s")
            + f", utilisation {p.measured['decode_utilization_ratio']:.3f}"
        )
    )
    figure = frame(1, 1, height=520)
    x, y = np.meshgrid(across.values, up.values)
    for word, colour in zip(WORDS, COLOURS):
        of_word = words == word
        if of_word.any():
            name = word.replace("_", " ")
            figure.add_scatter(
                x=x[of_word],
                y=y[of_word],
                mode="markers",
                name=name,
                text=list(labels[of_word]),
                marker={"symbol": "square", "size": 22, "color": colour, "line": {"width": 1, "color": "#62666f"}},
                hovertemplate=f"{across.label} %{{x:.4g}}, {up.label} %{{y:.4g}}: {name}, %{{text}}<extra></extra>",
            )
    expected = table(lambda p: _beyond(p.expected))
    if not any(value is None for value in expected.ravel()):
        for number, line in enumerate(_boundary(across, up, expected.astype(float))):
            figure.add_scatter(
                x=line[:, 0],
                y=line[:, 1],
                mode="lines",
                name="theory: a cycle begins",
                line={"color": "#8a8f98", "width": 3, "dash": "dash"},
                showlegend=number == 0,
                hoverinfo="skip",
            )
    figure.update_layout(showlegend=True, hovermode="closest", legend={"orientation": "h", "y": -0.16})
    figure.update_xaxes(title_text=across.label, type="log" if across.log else "linear")
    figure.update_yaxes(title_text=up.label, type="log" if up.log else "linear")
    return figure


def _boundary(across: Axis, up: Axis, beyond: Any) -> list[Any]:  # arrays of floats, shape (points, 2)
    """Return the lines along which theory's distance to the boundary is 0, between the points of the grid."""
    if len(across.values) < 2 or len(up.values) < 2:
        return []
    scales = [np.log10 if axis.log else np.asarray for axis in (across, up)]
    x, y = (scale(np.asarray(axis.values, dtype=float)) for scale, axis in zip(scales, (across, up)))
    lines: Any = contour_generator(x=x, y=y, z=beyond).lines(0.0)
    return [
        np.column_stack([10.0 ** line[:, i] if axis.log else line[:, i] for i, axis in enumerate((across, up))])
        for line in lines
    ]


def write_sweep(sweep: Sweep, title: str, path: Path, *, single_file: bool = False) -> Path:
    """Write the page and return its path."""
    note = (
        f"Verdict of {sweep.signal} for candidate {sweep.candidate}, measured at {len(sweep.points)} points; "
        "between them nothing was measured. "
        "The dashed line is where theory expects a cycle to begin."
    )
    body = (
        f'<h1>{escape(title)}</h1><p id="answer">{escape(safe_text(sweep))}</p><p class="note">{escape(note)}</p>'
        f"{chart(sweep_figure(sweep), 'sweep-map')}"
    )
    return write_page(path, title, body, single_file=single_file)
