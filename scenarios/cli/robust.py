"""`steadyflow robust FILE`: the laws of a scenario over draws of the uncertainty that it states."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from scenarios.cli.common import RUNS, kept_progress, print_json, quiet
from scenarios.cli.options import SingleFile, new_folder, unwritable
from scenarios.errors import UserError
from scenarios.report.terminal import terminal
from scenarios.schema.files import find


def robust(
    file: Annotated[str, typer.Argument(help="A scenario file, or a name from `steadyflow list`.")],
    draws: Annotated[int, typer.Option(help="How many plants are drawn.", min=2, max=10_000)] = 32,
    candidate: Annotated[list[str] | None, typer.Option(help="Only this candidate; repeatable.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of the draws and runs; else the scenario's.", min=0)] = None,
    jobs: Annotated[int | None, typer.Option(help="Processes; else one a core.", min=1)] = None,
    sets: Annotated[list[str] | None, typer.Option("--set", help="Override PATH=VALUE; repeatable.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for runs and page; an interrupted command resumes there.", callback=new_folder),
    ] = None,
    single_file: SingleFile = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON alone; nothing is kept without --out.")] = False,
) -> None:
    """Run the laws over draws of the stated uncertainty and say which survive.

    Example: steadyflow robust mild --draws 20 --set "uncertainty={ dead_time_ratio = [0.5, 2.0] }"
    """
    path = find(file)  # a mistyped name is answered before the schema and the plant are imported
    from scenarios.robust import robust as robust_laws
    from scenarios.schema.load import load

    scenario = load(path, sets or ())
    folder = out or (None if as_json else RUNS / f"robust-{path.stem}")
    if folder is not None and (wrong := unwritable(folder, file=False)):
        raise UserError(f"{wrong} with --out")
    kept = None if folder is None else folder / "runs.jsonl"
    with kept_progress(scenario.title, "robust", "run", kept, silent=quiet(as_json)) as show, scenario.blamed():
        robustness = robust_laws(
            scenario,
            count=draws,
            candidates=candidate or (),
            kept=kept,
            jobs=jobs or os.cpu_count() or 1,
            seed=seed,
            done=show,
        )
    if folder is not None:
        from scenarios.report.robust_page import write_robust

        page = write_robust(robustness, folder / "robust.html", single_file=single_file)
    if as_json:
        print_json(robustness.to_json())
        return
    from scenarios.report.robust_page import ordered, robust_table, sentence

    terminal().print(robust_table(robustness))
    for law in ordered(robustness):
        typer.echo(sentence(law))
    typer.echo(f"page: {page}")
