"""Does a signal repeat itself? Autocorrelation over the lag, and spectrum over the period, as the verdict saw them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from scenarios.catalogue.signals import JUDGED
from scenarios.catalogue.verdict import SignalVerdict
from scenarios.report.numbers import seconds, words
from scenarios.report.panel import REPEATS, Panel, Shown, frame
from scenarios.run.figures import Floats

SIGNALS = {row.name: row.label for row in JUDGED if row.label}
POINTS = 400
# Below a millionth of the highest peak lies rounding.
DECADES = 6


def _judged(runs: Sequence[Shown]) -> list[str]:
    return [name for name in SIGNALS if any(name in s.run.verdicts and len(s.run.verdicts[name].acf) for s in runs)]


def autocorrelation(runs: Sequence[Shown]) -> Panel | None:
    """Return the autocorrelation of each main signal, the verdict's period marked."""
    names = _judged(runs)
    if not names:
        return None
    figure = frame(1, len(names), subplot_titles=[SIGNALS[n] for n in names], horizontal_spacing=0.04)
    for col, name in enumerate(names, 1):
        for s in runs:
            verdict = s.run.verdicts.get(name)
            if verdict is not None and len(verdict.acf):
                lags, acf = np.asarray(verdict.acf_lags_s, dtype=float), np.asarray(verdict.acf, dtype=float)
                every = max(1, len(lags) // POINTS)
                _line(figure, s, lags[::every], acf[::every], col, "lag %{x:.4g} s: %{y:.2f}")
                _mark(figure, s, verdict, col, lags, acf)
        figure.update_xaxes(title_text="lag (s)", range=_lags(runs, name), row=1, col=col)
    figure.update_yaxes(range=[-1.05, 1.05])
    figure.update_yaxes(title_text="autocorrelation", row=1, col=1)
    figure.update_layout(hovermode="closest")
    return Panel(
        div="panel-autocorrelation",
        title=_title(runs),
        note="Waves that stay high from lag to lag: the signal repeats itself. The ring marks the verdict's period.",
        figure=figure,
        group="Does it repeat itself?",
    )


def _lags(runs: Sequence[Shown], name: str) -> list[float]:
    # Eight of the slowest cycle show the decay; without a cycle all of it is of interest.
    judged = [s.run.verdicts[name] for s in runs if name in s.run.verdicts and len(s.run.verdicts[name].acf)]
    longest = max(float(v.acf_lags_s[-1]) for v in judged)
    periods = [v.period_s for v in judged if v.period_s is not None and v.verdict in REPEATS]
    return [0.0, min(longest, 8 * max(periods)) if periods else longest]


def spectrum(runs: Sequence[Shown]) -> Panel | None:
    """Return the spectrum of each main signal over the period, the verdict's period marked."""
    names = _judged(runs)
    if not names:
        return None
    figure = frame(1, len(names), subplot_titles=[SIGNALS[n] for n in names], horizontal_spacing=0.04)
    for col, name in enumerate(names, 1):
        highest = 0.0
        for s in runs:
            verdict = s.run.verdicts.get(name)
            if verdict is None or len(verdict.spectrum) < 2:
                continue
            periods, power = by_period(verdict)
            highest = max(highest, float(power.max(initial=0.0)))
            _line(figure, s, periods, power, col, "period %{x:.4g} s: %{y:.3g}")
            _mark(figure, s, verdict, col, periods, power)
        figure.update_xaxes(type="log", title_text="period (s)", exponentformat="SI", row=1, col=col)
        if highest > 0:
            top = np.log10(highest)
            figure.update_yaxes(range=[top - DECADES, top + 0.5], row=1, col=col)
    figure.update_yaxes(type="log", exponentformat="power", showexponent="all", dtick=2)
    figure.update_yaxes(title_text="power", row=1, col=1)
    figure.update_layout(hovermode="closest")
    return Panel(
        div="panel-spectrum",
        title="Spectrum: " + ("; ".join(_peaks(runs)) or "no candidate has a peak that the verdict believes"),
        note="Power over the period, both on log axes. A hill is noise; a spike with a ring is a repetition.",
        figure=figure,
        group="Does it repeat itself?",
    )


def by_period(verdict: SignalVerdict) -> tuple[Floats, Floats]:
    """Return (period in s, power) thinned on a log axis, the greatest power of each step kept."""
    hz, power = np.asarray(verdict.spectrum_hz, dtype=float), np.asarray(verdict.spectrum, dtype=float)
    known = (hz > 0) & (power > 0)
    hz, power = hz[known], power[known]
    if len(hz) <= POINTS:
        return 1.0 / hz[::-1], power[::-1]
    step = np.floor(np.log(hz / hz[0]) / np.log(hz[-1] / hz[0]) * (POINTS - 1)).astype(int)
    order = np.lexsort((-power, step))
    first = np.unique(step[order], return_index=True)[1]
    kept = order[first]
    return 1.0 / hz[kept][::-1], power[kept][::-1]


def _line(figure: Any, s: Shown, x: Floats, y: Floats, col: int, hover: str) -> None:  # plotly publishes no types
    figure.add_trace(
        go.Scatter(
            x=np.float32(x),
            y=np.float32(y),
            mode="lines",
            line={"color": s.look.color, "width": 1.5, "dash": s.look.dash},
            legendgroup=s.name,
            name=s.name,
            showlegend=False,
            hovertemplate=f"{hover}<extra>{s.name}</extra>",
        ),
        row=1,
        col=col,
    )


def _mark(figure: Any, s: Shown, verdict: SignalVerdict, col: int, x: Floats, y: Floats) -> None:  # as above
    if verdict.period_s is None or verdict.verdict not in REPEATS or not len(x):
        return
    figure.add_trace(
        go.Scatter(
            x=[verdict.period_s],
            y=[float(np.interp(verdict.period_s, x, y))],
            mode="markers",
            marker={"symbol": "circle-open", "size": 13, "color": s.look.color, "line": {"width": 3}},
            legendgroup=s.name,
            name=s.name,
            showlegend=False,
            hovertemplate=f"{words(verdict.verdict)}, period {seconds(verdict.period_s)}<extra>{s.name}</extra>",
        ),
        row=1,
        col=col,
    )


def _title(runs: Sequence[Shown]) -> str:
    repeats = []
    for s in runs:
        verdict = s.run.verdicts.get("decode_occupancy_ratio")
        if verdict is not None and len(verdict.acf) and verdict.period_s and verdict.verdict in REPEATS:
            height = float(np.interp(verdict.period_s, verdict.acf_lags_s, verdict.acf))
            repeats.append(f"after {seconds(verdict.period_s)} {s.name} looks like itself again ({height:.2f})")
    return "Autocorrelation: " + ("; ".join(repeats[:2]) or "no candidate's occupancy repeats itself")


def _peaks(runs: Sequence[Shown]) -> list[str]:
    judged = [(s.name, s.run.verdicts.get("decode_occupancy_ratio")) for s in runs]
    return [
        f"{name} peaks at {seconds(v.period_s)}"
        for name, v in judged
        if v is not None and v.period_s and v.verdict in REPEATS
    ][:3]
