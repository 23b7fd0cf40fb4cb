"""How full the decode pool is: the signal that a full-empty cycle shows first."""

from __future__ import annotations

from collections.abc import Sequence

from scenarios.report.panel import Panel, Shown, frame, has, swing_title, time_axis
from scenarios.run.figures import level, line_and_band

SIGNAL = "decode_occupancy_ratio"


def panel(runs: Sequence[Shown]) -> Panel | None:
    """Return occupancy over time."""
    if not has(runs, f"{SIGNAL}_mean"):
        return None
    figure = frame(height=340)
    for s in runs:
        figure.add_traces(line_and_band(s.look, *level(s.run.signals, SIGNAL), scale=100.0, unit="%"))
    figure.update_yaxes(title_text="decode slots in use (%)", range=[0, 104])
    time_axis(figure, runs)
    return Panel(
        div="panel-occupancy",
        title=swing_title(runs, "Decode occupancy", f"{SIGNAL}_mean", SIGNAL, scale=100.0, unit=" %"),
        note="An empty slot while work waits at the door is capacity thrown away.",
        figure=figure,
        in_time=True,
    )
