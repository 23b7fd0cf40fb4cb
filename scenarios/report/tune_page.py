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


def candidate_toml(found: Tuned) -> str:
    """Return the tuned candidate as it would stand in a scenario file; empty where there is none."""
    if found.scenario is None:
        return ""
    candidate = found.scenario.candidate(found.candidate)
    stated = candidate.model_dump(mode="json", exclude_unset=True)
    return tomli_w.dumps({"candidates": [{**stated, "name": f"{found.candidate}_tuned"}]})


def answer(found: Tuned) -> str:
    """Say in sentences what was found and what to expect of it."""
    pruned = sum(one.pruned is not None for one in found.trials)
    searched = f"{len(found.trials)} trials, {pruned} of them pruned before any run"
    if found.best is None or found.held_out is None or found.objective is None:
        best = max((one.yield_ratio for one in found.trials if one.yield_ratio is not None), default=None)
        reached = "none was run" if best is None else f"the largest yield is {best:.2f}"
        return f"No trial reaches a yield of {found.goal.least_yield:g}: {reached} ({searched})."
    values = ", ".join(f"{one.label} = {found.best.values[one.path]:.4g}" for one in found.parameters)
    held = found.held_out
    low, high = held.interval
    text = (
        f"{found.candidate} with {values} ({searched}). On {len(held.outcomes)} plants and seeds that no trial met: "
        f"{found.goal.objective} {found.objective:.4g}, steady and fed on {held.holding} of them "
        f"(yield {held.yield_ratio:.2f}, 95 % interval {low:.2f} to {high:.2f})."
    )
    if held.yield_ratio < found.goal.least_yield:
        text += f" That is below the {found.goal.least_yield:g} asked for: the search met easier plants."
    return text


def margins_text(found: Tuned) -> str:
    """Return theory's margins at the stated plant in a line; empty where there are none."""
    known = [f"{name} {value:.3g}" for name, value in (found.margins or {}).items() if value is not None]
    return f"margins at the stated plant: {', '.join(known)}" if known else ""


def tune_figure(found: Tuned) -> Any:  # plotly publishes no types
    """Return the picture: the objective over one parameter, or the plane of the first two."""
    across = found.parameters[0]
    up = found.parameters[1] if len(found.parameters) > 1 else None
    figure = frame(1, 1, height=460)
    for name in KINDS:
        chosen = [one for one in found.trials if kind(one) == name]
        if chosen:
            figure.add_scatter(
                x=[one.values[across.path] for one in chosen],
                y=[_height(one, up) for one in chosen],
                mode="markers",
                name=name,
                marker={"size": 9, "color": COLOURS[name], "symbol": SYMBOLS[name], "line": {"width": 1}},
                text=[_text(one, found.parameters) for one in chosen],
                hovertemplate="%{text}<extra></extra>",
            )
    if found.best is not None:
        ring = {"size": 18, "symbol": "circle-open", "color": "#8a8f98", "line": {"width": 3}}
        x, y = [found.best.values[across.path]], [_height(found.best, up)]
        figure.add_scatter(x=x, y=y, mode="markers", name="best", marker=ring, hoverinfo="skip")
    figure.update_layout(showlegend=True, hovermode="closest", legend={"orientation": "h", "y": -0.18})
    figure.update_xaxes(title_text=across.label, type="log" if across.log else "linear")
    if up is None:
        figure.update_yaxes(title_text=f"{found.goal.objective} (no run: 0)", rangemode="tozero")
    else:
        figure.update_yaxes(title_text=up.label, type="log" if up.log else "linear")
    return figure


def _height(trial: Trial, up: Parameter | None) -> float:
    return trial.values[up.path] if up is not None else trial.objective or 0.0


def _text(trial: Trial, parameters: Sequence[Parameter]) -> str:
    values = ", ".join(f"{one.label} {trial.values[one.path]:.4g}" for one in parameters)
    if trial.pruned is not None:
        return f"{values}: {escape(trial.pruned)}"
    return f"{values}: yield {trial.yield_ratio:.2f}, objective {trial.objective:.4g}"


def write_tuned(found: Tuned, title: str, path: Path, *, single_file: bool = False) -> Path:
    """Write the page and return its path."""
    body = (
        f'<h1>{escape(title)}: tuned</h1><p id="answer">{escape(answer(found))}</p>'
        f'<p class="note">{escape(margins_text(found))}</p>'
        f'<pre id="candidate">{escape(candidate_toml(found))}</pre>'
        '<p class="note">Each mark is one trial on the same plants and seeds. Crosses cost no run: theory has the loop '
        "cycle there, or its margins are too small.</p>"
        f"{chart(tune_figure(found), 'tune-map')}"
    )
    return write_page(path, f"{title}: tuned", body, single_file=single_file)
