"""`steadyflow leaderboard`: admission laws on two axes, over a fixed field of scenarios and seeds."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from scenarios.cli.common import RUNS, bar, log_progress, print_json, quiet
from scenarios.cli.options import new_folder
from scenarios.errors import Interrupted
from scenarios.leaderboard.field import run_field
from scenarios.leaderboard.ranking import RankedPolicy, ranked
from scenarios.report.table import fitted
from scenarios.report.terminal import terminal
from scenarios.suite.members import LEADERBOARD

HEADINGS = ("law", "runs", "steadiness", "good turns\nper GPU-hour", "dominated by")


def leaderboard(
    only: Annotated[list[str] | None, typer.Argument(help="Scenarios; without any, the fixed field.")] = None,
    seeds: Annotated[int, typer.Option(help="How many paired seeds.", min=1)] = 5,
    policy_file: Annotated[
        str | None, typer.Option("--policy-file", help="Rank a law of your own too: path/to/law.py:Class(name=value).")
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Processes; else one a core.", min=1)] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for finished runs; an interrupted ranking goes on there.", callback=new_folder),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Rank the laws by steadiness and by good turns per GPU-hour; dominated ones are shown as such.

    Example: steadyflow leaderboard mild --seeds 3
    """
    chosen = list(only or LEADERBOARD)
    kept = (out or RUNS / "leaderboard") / "runs.jsonl"
    with bar("run", total=1.0, quiet=quiet(as_json)) as (progress, task):

        def done(count: int, total: int, name: str) -> None:
            log_progress(count, total, "leaderboard: run", last=name)
            progress.update(task, completed=count, total=total, run=f"{count} of {total}: {name}")

        try:
            rows = run_field(
                chosen,
                seeds=seeds,
                jobs=jobs or os.cpu_count() or 1,
                policy_file=policy_file,
                kept=kept,
                done=done,
            )
        except KeyboardInterrupt:
            raise Interrupted(f"finished runs are kept in {kept}; the same command goes on from them") from None
    places = ranked(rows)
    if as_json:
        print_json({"field": chosen, "seeds": seeds, "places": [place.to_json() for place in places]})
        return
    scenarios = f"{len(chosen)} scenario{'s' * (len(chosen) > 1)}, {seeds} seed{'s' * (seeds > 1)}"
    terminal().print(places_table(places, f"{scenarios}; axes from 0 to 1, with 95 % intervals over seeds"))


def places_table(places: Sequence[RankedPolicy], title: str, width: int | None = None) -> Table:
    """Return the ranking for the terminal; names are not cut, and an interval stands under its mean."""
    lines = [(p.law, str(p.runs), _cell(p, "steadiness"), _cell(p, "yield"), p.dominated_by) for p in places]
    return fitted(
        HEADINGS, lines, lambda *_: "", dropped=("runs",), words={"dominated by": 20}, title=title, width=width
    )


def _cell(place: RankedPolicy, axis: str) -> str:
    figure = place.to_json()[axis]
    spread = figure["ci95"]
    return f"{figure['mean']:.3f}" + ("" if spread is None else f"\n{spread[0]:.3f} .. {spread[1]:.3f}")
