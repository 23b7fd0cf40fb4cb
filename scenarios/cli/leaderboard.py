"""`steadyflow leaderboard`: admission laws on two axes, over a fixed field of scenarios and seeds."""

from __future__ import annotations

import os
from typing import Annotated

import typer
from rich.table import Table

from scenarios.cli.common import bar, print_json, quiet
from scenarios.errors import UserError
from scenarios.leaderboard.ranking import Place, ranked
from scenarios.report.terminal import terminal
from scenarios.suite.execute import run_suite
from scenarios.suite.members import LEADERBOARD


def leaderboard(
    only: Annotated[list[str] | None, typer.Argument(help="Scenarios; without any, the fixed field.")] = None,
    seeds: Annotated[int, typer.Option(help="How many paired seeds.", min=1)] = 3,
    jobs: Annotated[int | None, typer.Option(help="Processes; else one a core.", min=1)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Rank the laws by steadiness and by good turns per GPU-hour; dominated ones are shown as such.

    Example: steadyflow leaderboard --seeds 5
    """
    chosen = list(only or LEADERBOARD)
    with bar("run", total=float(seeds), quiet=quiet(as_json)) as (progress, task):
        rows = []
        for k in range(seeds):
            progress.update(task, run=f"seed {k + 1} of {seeds}")
            rows.append(run_suite(chosen, jobs=jobs or os.cpu_count() or 1, seed_offset=k))
            progress.update(task, completed=k + 1)
    for row in rows[0]:
        if row.skipped is not None:
            typer.echo(f"{row.scenario}/{row.candidate}: skipped, {row.skipped}", err=True)
    places = ranked(rows)
    if not places:
        raise UserError("no candidate is left to rank: each of them was skipped")
    if as_json:
        print_json({"field": chosen, "seeds": seeds, "places": [place.to_json() for place in places]})
        return
    table = Table(title=f"{len(chosen)} scenarios, {seeds} seeds; axes from 0 to 1, with 95 % intervals")
    for heading in ("law", "runs", "steadiness", "good turns per GPU-hour", "dominated by"):
        table.add_column(heading)
    for place in places:
        table.add_row(place.law, str(place.runs), _said(place, "steadiness"), _said(place, "yield"), place.dominated_by)
    terminal().print(table)


def _said(place: Place, axis: str) -> str:
    found = place.to_json()[axis]
    spread = found["ci95"]
    return f"{found['mean']:.3f}" + ("" if spread is None else f"  ({spread[0]:.3f} .. {spread[1]:.3f})")
