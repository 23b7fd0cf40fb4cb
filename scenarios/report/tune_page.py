"""The page of `tune`: the candidate it found, what to expect of it, and where in the searched range it is safe."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import tomli_w

from scenarios.pages.charts import chart
from scenarios.pages.document import write_page
from scenarios.report.panel import frame
from scenarios.tune import Parameter, Trial, Tuned

KINDS = ("safe", "yield too small", "pruned before any run")
COLOURS = dict(zip(KINDS, ("#2f9e6e", "#f6a860", "#a4243b")))
SYMBOLS = dict(zip(KINDS, ("circle", "square", "x")))


def kind(trial: Trial) -> str:
    """Name what came of a trial."""
    if trial.feasible:
        return KINDS[0]
    return KINDS[1] if trial.pruned is None else KINDS[2]


def candidate_toml(tuned: Tuned) -> str:
    """Return the tuned candidate as it would stand in a scenario file; empty where there is none."""
    if tuned.scenario is None:
        return ""
    candidate = tuned.scenario.candidate(tuned.candidate)
    stated = candidate.model_dump(mode="json", exclude_unset=True)
    return tomli_w.dumps({"candidates": [{**stated, "name": f"{tuned.candidate}_tuned"}]})


def answer(tuned: Tuned) -> str:
    """Say in sentences what was found and what to expect of it."""
    pruned = sum(item.pruned is not None for item in tuned.trials)
    searched = f"{len(tuned.trials)} trials, {pruned} of them pruned before any run"
    if tuned.best is None or tuned.held_out is None or tuned.objective is None:
        best = max((item.yield_ratio for item in tuned.trials if item.yield_ratio is not None), default=None)
        reached = "none was run" if best is None else f"the largest yield is {best:.2f}"
        return f"No trial reaches a yield of {tuned.goal.least_yield:g}: {reached} ({searched})."
    values = ", ".join(f"{item.label} = {tuned.best.values[item.path]:.4g}" for item in tuned.parameters)
    held = tuned.held_out
    low, high = held.interval
    text = (
        f"{tuned.candidate} with {values} ({searched}). On {len(held.outcomes)} plants and seeds that no trial met: "
        f"{tuned.goal.objective} {tuned.objective:.4g}, steady and fed on {held.holding} of them "
        f"(yield {held.yield_ratio:.2f}, 95 % interval {low:.2f} to {high:.2f})."
    )
    if held.yield_ratio < tuned.goal.least_yield:
        text += f" That is below the {tuned.goal.least_yield:g} asked for: the search met easier plants."
    return text


def margins_text(tuned: Tuned) -> str:
    """Return theory's margins at the stated plant in a line; empty where there are none."""
    known = [f"{name} {value:.3g}" for name, value in (tuned.margins or {}).items() if value is not None]
    return f"margins at the stated plant: {', '.join(known)}" if known else ""


def tune_figure(tuned: Tuned) -> Any:  # plotly publishes no types
    """Return the picture: the objective over one parameter, or the plane of the first two."""
    across = tuned.parameters[0]
    up = tuned.parameters[1] if len(tuned.parameters) > 1 else None
    figure = frame(1, 1, height=460)
    for name in KINDS:
        chosen = [trial for trial in tuned.trials if kind(trial) == name]
        if chosen:
            figure.add_scatter(
                x=[trial.values[across.path] for trial in chosen],
                y=[_height(trial, up) for trial in chosen],
                mode="markers",
                name=name,
                marker={"size": 9, "color": COLOURS[name], "symbol": SYMBOLS[name], "line": {"width": 1}},
                text=[_text(trial, tuned.parameters) for trial in chosen],
                hovertemplate="%{text}<extra></extra>",
            )
    if tuned.best is not None:
        ring = {"size": 18, "symbol": "circle-open", "color": "#8a8f98", "line": {"width": 3}}
        x, y = [tuned.best.values[across.path]], [_height(tuned.best, up)]
        figure.add_scatter(x=x, y=y, mode="markers", name="best", marker=ring, hoverinfo="skip")
    figure.update_layout(showlegend=True, hovermode="closest", legend={"orientation": "h", "y": -0.18})
    figure.update_xaxes(title_text=across.label, type="log" if across.log else "linear")
    if up is None:
        figure.update_yaxes(title_text=f"{tuned.goal.objective} (no run: 0)", rangemode="tozero")
    else:
        figure.update_yaxes(title_text=up.label, type="log" if up.log else "linear")
    return figure


def _height(trial: Trial, up: Parameter | None) -> float:
    return trial.values[up.path] if up is not None else trial.objective or 0.0


def _text(trial: Trial, parameters: Sequence[Parameter]) -> str:
    values = ", ".join(f"{parameter.label} {trial.values[parameter.path]:.4g}" for parameter in parameters)
    if trial.pruned is not None:
        return f"{values}: {escape(trial.pruned)}"
    return f"{values}: yield {trial.yield_ratio:.2f}, objective {trial.objective:.4g}"


def write_tuned(tuned: Tuned, title: str, path: Path, *, single_file: bool = False) -> Path:
    """Write the page and return its path."""
    body = (
        f'<h1>{escape(title)}: tuned</h1><p id="answer">{escape(answer(tuned))}</p>'
        f'<p class="note">{escape(margins_text(tuned))}</p>'
        f'<pre id="candidate">{escape(candidate_toml(tuned))}</pre>'
        '<p class="note">Each mark is one trial on the same plants and seeds. Crosses cost no run: theory has the loop '
        "cycle there, or its margins are too small.</p>"
        f"{chart(tune_figure(tuned), 'tune-map')}"
    )
    return write_page(path, f"{title}: tuned", body, single_file=single_file)
