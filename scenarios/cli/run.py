"""`steadyflow run FILE`: one candidate on one seed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scenarios.cli.common import bar, free_folder, print_code, print_json, print_repairs, quiet
from scenarios.cli.options import LARGEST_SEED, new_folder
from scenarios.errors import UserError, nearest
from scenarios.report.terminal import terminal
from scenarios.schema.files import find

if TYPE_CHECKING:
    from scenarios.run.progress import Progress
    from scenarios.schema.scenario import Scenario


def run(
    file: Annotated[str, typer.Argument(help="A scenario file, or a name from `steadyflow list`.")],
    candidate: Annotated[str | None, typer.Option(help="Which candidate; without it, the first.")] = None,
    seed: Annotated[int | None, typer.Option(help="Another seed than the scenario's.", min=0, max=LARGEST_SEED)] = None,
    sets: Annotated[
        list[str] | None, typer.Option("--set", help="Override PATH=VALUE, as plant.dead_time_s=4; repeatable.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="A new folder for the record; else one under runs/.", callback=new_folder)
    ] = None,
    policy_file: Annotated[
        str | None, typer.Option("--policy-file", help="Run a law of your own: path/to/law.py:Class(name=value, ...).")
    ] = None,
    trace: Annotated[
        Path | None, typer.Option(help="Play the conversations of this trace instead of the scenario's own.")
    ] = None,
    allow_code: Annotated[
        bool, typer.Option("--allow-code", help="Run laws of the scenario from files that do not lie beside it.")
    ] = False,
    columns: Annotated[
        str | None, typer.Option(help="Read --trace as a table: arrived=COLUMN,input=COLUMN,output=COLUMN,...")
    ] = None,
    rate: Annotated[
        float | None, typer.Option(help="Run on the real clock, at this many seconds a second.", min=0.001, max=1e6)
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the summary as JSON; no record without --out.")
    ] = False,
) -> None:
    """Run one candidate of a scenario and say whether it oscillates, what that costs, and how it serves.

    Example: steadyflow run full_empty_reference --candidate predictive_buffer --set plant.dead_time_s=5
    """
    path = find(file)  # a mistyped name is answered before the schema and the plant are imported
    scenario = _loaded(path, sets or (), allow_code)
    scenario, candidate = _with_files(scenario, candidate, policy_file, trace, columns)
    names = [candidate.name for candidate in scenario.candidates]
    if candidate is not None and candidate not in names:
        raise UserError(
            f"{path.name}: no candidate {candidate}{nearest(candidate, names)}; there are {', '.join(names)}"
        )
    if candidate is None:
        candidate = scenario.candidates[0].name
        if len(scenario.candidates) > 1:
            others = ", ".join(c.name for c in scenario.candidates[1:])
            typer.echo(f"candidate {candidate}, the first; others: {others}", err=True)
    if out is None and not as_json:
        out = free_folder(f"{path.stem}-{candidate}")
    from scenarios.run import execute

    with bar("turns", "speed", total=scenario.horizon_s, quiet=quiet(as_json)) as (progress, task):

        def show(at: Progress) -> None:
            progress.update(
                task,
                completed=at.now_s,
                description=f"{at.now_s:,.0f} of {at.horizon_s:,.0f} s",
                turns=f"{at.retired:,} turns",
                speed=f"{at.turns_per_wall_s:,.0f} turns/s",
            )

        done = execute.run(scenario, candidate, seed=seed, out=out, rate=rate, progress=show)
    if as_json:
        print_json(done.summary)
    else:
        from scenarios.analyze.analysis import expected_of_run

        _show({**done.summary, "theory": expected_of_run(scenario, candidate, done.summary)}, scenario.title, out)
    refuse_empty(done.summary)


def _loaded(path: Path, sets: Iterable[str], allow_code: bool) -> Scenario:
    """Return the scenario of a file, and say which code of others it will run."""
    from scenarios.schema.load import load

    scenario = load(path, sets, allow_code=allow_code)
    print_code(scenario)
    return scenario


def _with_files(
    scenario: Scenario, candidate: str | None, policy_file: str | None, trace: Path | None, columns: str | None
) -> tuple[Scenario, str | None]:
    """Put the user's law and trace into the scenario, where there are any."""
    if policy_file is not None:
        from scenarios.build.laws.file import with_policy_file

        scenario, candidate = with_policy_file(scenario, policy_file)
    if trace is not None:
        from scenarios.build.conversations import with_trace

        scenario = with_trace(scenario, trace, columns)
        print_repairs(scenario)
    return scenario, candidate


def refuse_empty(summary: Any) -> None:
    """Exit with 1, and why, when a run has retired nothing, or none of its work lies in the judged window."""
    from scenarios.run.metrics import NO_WORK

    counts = summary["counts"]
    if counts["retired"] > 0 and summary["headline"] != NO_WORK:
        return
    where = ", ".join(f"{counts[key]} {key}" for key in ("in_flight", "rejected", "failed") if counts[key])
    what = "no turn was retired" if counts["retired"] == 0 else f"{NO_WORK}, so no verdict"
    typer.echo(
        f"steadyflow: {summary['candidate']}: {what}: {counts['arrived']} arrived "
        f"({where or 'none is left'}); the run ended: {summary['ended']}",
        err=True,
    )
    raise typer.Exit(1)


def _show(summary: Any, title: str, out: Path | None) -> None:
    from scenarios.report.table import verdict_table

    terminal().print(verdict_table([summary], title=title))
    for warning in summary["warnings"]:
        typer.echo(f"warning: {warning}", err=True)
    if out is not None:
        typer.echo(f"record: {out}   (a page of it: steadyflow report {out})")
