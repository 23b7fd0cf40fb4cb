"""The page of `analyze --html`: Bode, Nyquist and step response of each candidate's loop, with its margins."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from policies.design.loops import Floats, frequency_response, pade_error_deg
from scenarios.analyze.analysis import Analysis
from scenarios.analyze.prediction import LinearLoop
from scenarios.pages.charts import chart
from scenarios.pages.document import write_page
from scenarios.report.panel import frame
from scenarios.run.figures import look

NYQUIST_SPAN = 3.0
STEP_POINTS = 600
SHOWN_LAGS_DEG = 720.0


def loop_figure(loop: LinearLoop, colour: str) -> Any:  # Any: plotly publishes no types
    """Return four diagrams of a loop: gain, phase, Nyquist and, after a unit step of the set point, what comes back.

    The first three have the dead time exact; the step response takes it as a Pade approximation.
    """
    titles = ("Bode: loop gain", "Bode: phase", "Nyquist", "Step of the set point")
    figure = frame(2, 2, height=640, subplot_titles=titles, vertical_spacing=0.16)
    response = frequency_response(loop.response, loop.omega_rad_s)
    omega, gain = np.asarray(response.omega), np.asarray(response.magnitude).ravel()
    phase_deg = np.degrees(np.unwrap(np.asarray(response.phase).ravel()))
    shown = phase_deg > -SHOWN_LAGS_DEG  # dead time winds the phase without end
    line = {"color": colour, "width": 2}
    each = {"mode": "lines", "line": line, "showlegend": False}
    figure.add_scatter(x=omega[shown], y=gain[shown], row=1, col=1, **each)
    figure.add_scatter(x=omega[shown], y=phase_deg[shown], row=1, col=2, **each)
    curve = gain * np.exp(1j * np.radians(phase_deg))
    figure.add_scatter(x=curve.real, y=curve.imag, row=2, col=1, **each)
    critical = {"mode": "markers", "marker": {"symbol": "x", "size": 10, "color": "#b3261e"}, "showlegend": False}
    figure.add_scatter(x=[-1.0], y=[0.0], hovertemplate="-1<extra></extra>", row=2, col=1, **critical)
    time_s, output = step_response(loop)
    figure.add_scatter(x=time_s, y=output, row=2, col=2, **each)
    figure.add_hline(y=1.0, line_dash="dot", line_width=1, row=1, col=1)
    figure.add_hline(y=-180.0, line_dash="dot", line_width=1, row=1, col=2)
    for column in (1, 2):
        figure.update_xaxes(title_text="rad/s", type="log", dtick=1, row=1, col=column)
    figure.update_yaxes(title_text="|G|", type="log", dtick=1, row=1, col=1)
    figure.update_yaxes(title_text="degrees", dtick=90, row=1, col=2)
    figure.update_xaxes(title_text="real part", range=[-NYQUIST_SPAN, NYQUIST_SPAN / 2], row=2, col=1)
    figure.update_yaxes(title_text="imaginary part", range=[-NYQUIST_SPAN, NYQUIST_SPAN / 2], row=2, col=1)
    figure.update_xaxes(title_text="s", row=2, col=2)
    figure.update_yaxes(title_text="share of the step", row=2, col=2)
    return figure


def step_response(loop: LinearLoop) -> tuple[Floats, Floats]:
    """Return python-control's step response of the closed loop: instants in seconds, and the share of the step."""
    import control

    span_s = 6.0 * loop.slowest_s
    closed = control.feedback(loop.law.system(loop.model, loop.regime), 1)
    response = control.step_response(closed, np.linspace(0.0, span_s, STEP_POINTS))
    return np.asarray(response.time), np.asarray(response.outputs).ravel()


def _body(analyses: Sequence[Analysis], title: str, question: str) -> str:
    sections = [_section(analysis, look(i, analysis.candidate).color, i) for i, analysis in enumerate(analyses)]
    return (
        f'<h1>{escape(title)}: the loops</h1><p class="question">{escape(question)}</p>{_table(analyses)}'
        f"{''.join(sections)}"
    )


def _section(analysis: Analysis, colour: str, index: int) -> str:
    loop, mechanism = analysis.prediction.loop, escape(analysis.prediction.mechanism)
    top = f"<section><h3>{escape(analysis.candidate)}: {mechanism}</h3>"
    if loop is None:
        return f'{top}<p class="note">No linear loop to draw.</p></section>'
    error_deg = pade_error_deg(loop.response, loop.law.system(loop.model, loop.regime), loop.omega_rad_s)
    error = "under 0.01" if error_deg < 0.01 else f"{error_deg:.2g}"
    note = (
        f"{loop.law.note}; linearised with the pool {loop.regime}. Dead time exact in Bode and Nyquist; in the step "
        f"response a Pade approximation, whose phase error where |G| > 1 is {error} degrees."
    )
    body = chart(loop_figure(loop, colour), f"loop-{index}")
    return f'{top}<p class="note">{escape(note[0].upper() + note[1:])}</p>{body}</section>'


def _table(analyses: Sequence[Analysis]) -> str:
    columns = (
        ("gain margin", "gain_margin", " x"),
        ("phase margin", "phase_margin_deg", " deg"),
        ("delay margin of readings", "delay_margin_s", " s"),
        ("longer pipeline", "pipeline_margin_s", " s"),
        ("least distance to -1", "modulus_margin", ""),
    )
    head = "".join(f"<th>{text}</th>" for text in ("candidate", "verdict", "period", *(name for name, *_ in columns)))
    rows = []
    for analysis in analyses:
        margins, period_s = analysis.prediction.margins, analysis.prediction.period_s
        cells = [analysis.candidate, (analysis.prediction.verdict or "-").replace("_", " ")]
        cells.append("-" if period_s is None else f"{period_s:.4g} s")
        for _, key, unit in columns:
            value = margins.get(key)
            cells.append("-" if key not in margins else "no limit" if value is None else f"{value:.3g}{unit}")
        rows.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    return f'<div class="scroll"><table><tr>{head}</tr>{"".join(rows)}</table></div>'


def write_loops_page(analyses: Sequence[Analysis], title: str, question: str, path: Path) -> Path:
    """Write the page, one file with all it needs, and return its path."""
    return write_page(path, title, _body(analyses, title, question), single_file=True)
