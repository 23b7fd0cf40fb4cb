"""What the door admitted, and the commands of the law."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scenarios.report.panel import Panel, Shown, frame, has, swing_title, time_axis
from scenarios.run.figures import bin_middles, line_and_band, rate, thin

COMMANDS = {
    "release_per_s": "commanded<br>(turns/s)",
    "in_flight_cap_turns": "cap on work<br>in flight (turns)",
    "gate_open": "gate<br>(1 = open)",
}


def panel(runs: Sequence[Shown]) -> Panel | None:
    """Return the admission rate over time, and below it each field that any law commanded."""
    if not has(runs, "admitted_turns"):
        return None
    commanded = [name for name in COMMANDS if has(runs, f"command.admission.{name}")]
    heights = [2.0, *(1.0 for _ in commanded)]
    figure = frame(
        1 + len(commanded),
        height=280 + 110 * len(commanded),
        row_heights=heights,
        shared_xaxes=True,
        vertical_spacing=0.06,
    )
    for s in runs:
        for trace in line_and_band(s.look, *rate(s.run.signals, "admitted_turns"), unit="turns/s"):
            figure.add_trace(trace, row=1, col=1)
        for row, name in enumerate(commanded, 2):
            column = f"command.admission.{name}"
            if column in s.run.signals:
                commands = s.run.signals[column].to_numpy(dtype=float)
                commands = np.where(np.isfinite(commands), commands, np.nan)
                for trace in line_and_band(s.look, *thin(bin_middles(s.run.signals), commands, commands, commands)):
                    figure.add_trace(trace, row=row, col=1)
    figure.update_yaxes(title_text="admitted (turns/s)", rangemode="tozero", row=1, col=1)
    for row, name in enumerate(commanded, 2):
        figure.update_yaxes(title_text=COMMANDS[name], rangemode="tozero", nticks=4, row=row, col=1)
    time_axis(figure, runs, rows=1 + len(commanded))
    return Panel(
        div="panel-admission",
        title=_title(runs),
        note="Above, turns let in; below, what the law commanded (nothing drawn: left alone, or without limit).",
        figure=figure,
        in_time=True,
    )


def _title(runs: Sequence[Shown]) -> str:
    rates = []
    for s in runs:
        start = s.run.signals["t_s"].to_numpy(dtype=float)
        rates.append(1.0 / (start[1] - start[0]) if len(start) > 1 else 1.0)
    same = all(abs(r - rates[0]) < 1e-9 * rates[0] for r in rates)
    if not same:
        return "Admission: what the door let in, and the commands to it"
    signal = "admission_per_s"
    return swing_title(runs, "Admission", "admitted_turns", signal, scale=rates[0], unit=" turns/s")
