"""`steadyflow tune FILE --vary PATH=from:to`: the parameters of a law that serve best over an uncertain plant."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from scenarios.cli.common import RUNS, kept_progress, print_json, quiet
from scenarios.cli.options import SingleFile, new_folder, unwritable
from scenarios.errors import UserError
from scenarios.schema.files import find


def tune(
    file: Annotated[str, typer.Argument(help="A scenario file, or a name from `steadyflow list`.")],
    vary: Annotated[list[str], typer.Option(help="candidates.NAME.PATH=from:to[:log]; once a parameter.")],
    candidate: Annotated[str | None, typer.Option(help="Which candidate; else the first.")] = None,
    objective: Annotated[
        Literal["goodput_per_gpu_hour", "decode_utilization_ratio", "ttft_p99_s"],
        typer.Option(help="What is made best; the last is made small."),
    ] = "goodput_per_gpu_hour",
    least_yield: Annotated[float, typer.Option(help="Share of plants it must hold.", min=0.0, max=1.0)] = 0.9,
    margin: Annotated[
        list[str] | None,
        typer.Option(help="NAME=LEAST of a margin as analyze prints it, as gain_margin=2; repeatable."),
    ] = None,
    trials: Annotated[int, typer.Option(help="Trials in all.", min=1, max=10_000)] = 40,
    draws: Annotated[int, typer.Option(help="Plants of each trial.", min=1, max=10_000)] = 8,
    held_out: Annotated[int, typer.Option(help="Plants for the best that no trial met.", min=1, max=10_000)] = 16,
    jobs: Annotated[int | None, typer.Option(help="Processes; else one a core.", min=1)] = None,
    sets: Annotated[list[str] | None, typer.Option("--set", help="Override PATH=VALUE; repeatable.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for study, runs and page; an interrupted search resumes there.", callback=new_folder),
    ] = None,
    single_file: SingleFile = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON alone; nothing is kept without --out.")] = False,
) -> None:
    """Search the parameters of a law that serve best over an uncertain plant; exit 1 when none is safe.

    Example: steadyflow tune pipeline_blind --candidate low_gain --vary candidates.low_gain.admission.k_per_s=0.01:1:log
    """
    path = find(file)  # a mistyped name is answered before the schema and the plant are imported
    from scenarios.schema.load import load
    from scenarios.tune import Goal, parse_parameter
    from scenarios.tune import tune as search

    title = load(path, sets or ()).title
    space = [parse_parameter(text) for text in vary]
    goal = Goal(objective=objective, least_yield=least_yield, least_margins=_margins(margin or []))
    folder = out or (None if as_json else RUNS / f"tune-{path.stem}")
    if folder is not None and (wrong := unwritable(folder, file=False)):
        raise UserError(f"{wrong} with --out")
    arguments: dict[str, Any] = {  # Any: options of different types
        "candidate": candidate,
        "sets": sets or (),
        "trials": trials,
        "count": draws,
        "held_out": held_out,
    }
    with kept_progress(title, "tune", "trial", folder, silent=quiet(as_json)) as show:
        tuned = search(file, space, goal, **arguments, folder=folder, jobs=jobs or os.cpu_count() or 1, done=show)
    from scenarios.report.tune_page import answer, candidate_toml, margins_text, write_tuned

    if folder is not None:
        page = write_tuned(tuned, title, folder / "tune.html", single_file=single_file)
    if as_json:
        print_json({**tuned.to_json(), "toml": candidate_toml(tuned)})
    else:
        typer.echo("\n".join(text for text in (answer(tuned), margins_text(tuned), candidate_toml(tuned)) if text))
        typer.echo(f"page: {page}")
    if tuned.best is None:
        raise typer.Exit(1)


def _margins(texts: list[str]) -> dict[str, float]:
    least = {}
    for text in texts:
        name, equals, value = text.partition("=")
        try:
            least[name.strip()] = float(value)
        except ValueError:
            equals = ""
        if not equals or not name.strip():
            raise UserError(f"--margin {text}: must be NAME=LEAST, as gain_margin=2")
    return least
