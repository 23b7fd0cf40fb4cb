"""`steadyflow compare FILE`: every candidate on paired seeds, held to the scenario's expectations."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scenarios.cli.common import (
    bar,
    free_folder,
    log_progress,
    only,
    print_checks,
    print_code,
    print_json,
    print_repairs,
    quiet,
)
from scenarios.cli.options import SingleFile, new_folder
from scenarios.cli.run import refuse_empty
from scenarios.report.terminal import terminal
from scenarios.schema.files import find

if TYPE_CHECKING:
    from scenarios.compare.compare import Comparison
    from scenarios.run.record import RunData
    from scenarios.schema.scenario import Scenario


def compare(
    file: Annotated[str, typer.Argument(help="A scenario file, or a name from `steadyflow list`.")],
    candidate: Annotated[list[str] | None, typer.Option(help="Only this candidate; repeatable.")] = None,
    seeds: Annotated[int, typer.Option(help="How many paired seeds.", min=1)] = 1,
    jobs: Annotated[int | None, typer.Option(help="Processes; else one a core.", min=1)] = None,
    sets: Annotated[
        list[str] | None, typer.Option("--set", help="Override PATH=VALUE, as plant.dead_time_s=4; repeatable.")
    ] = None,
    policy_file: Annotated[
        str | None, typer.Option("--policy-file", help="Add a law of your own: path/to/law.py:Class(name=value, ...).")
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
    out: Annotated[
        Path | None,
        typer.Option(help="A new folder for records and report; else one under runs/.", callback=new_folder),
    ] = None,
    single_file: SingleFile = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the comparison as JSON; no record without --out.")
    ] = False,
) -> None:
    """Compare a scenario's candidates; exit 1 when an expectation of the scenario fails.

    Example: steadyflow compare full_empty_reference --seeds 10
    """
    path = find(file)  # a mistyped name is answered before the schema and the plant are imported
    from scenarios.schema.load import load

    scenario = only(load(path, sets or (), allow_code=allow_code), candidate or ())
    print_code(scenario)
    if policy_file is not None:
        from scenarios.build.laws.file import with_policy_file

        scenario, _ = with_policy_file(scenario, policy_file)
    if trace is not None:
        from scenarios.build.conversations import with_trace

        scenario = with_trace(scenario, trace, columns)
        print_repairs(scenario)
    if out is None and not as_json:
        out = free_folder(path.stem)
    comparison = compared(scenario, seeds=seeds, jobs=jobs, out=out, silent=quiet(as_json))
    if as_json:
        print_json(comparison.to_json())
    else:
        show(comparison, out, single_file=single_file)
    for summaries in comparison.summaries.values():
        refuse_empty(summaries[0])
    if not comparison.ok:
        raise typer.Exit(1)


def compared(scenario: Scenario, *, seeds: int, jobs: int | None, out: Path | None, silent: bool) -> Comparison:
    """Compare under a progress bar, on all cores by default; theory's prediction goes into each summary."""
    from scenarios.analyze.analysis import expected_of_run
    from scenarios.compare.compare import compare as compare_candidates

    runs = seeds * len(scenario.candidates)
    with bar("of", total=runs, quiet=silent) as (progress, task):
        progress.update(task, description=scenario.title)

        def done(count: int, total: int) -> None:
            log_progress(count, total, "compare: run")
            progress.update(task, completed=count, of=f"{count} of {total} runs")

        comparison = compare_candidates(
            scenario,
            seeds=seeds,
            jobs=jobs or os.cpu_count() or 1,
            out=out,
            done=done,
        )
    for name, summaries in comparison.summaries.items():
        for summary in summaries:
            summary["theory"] = expected_of_run(scenario, name, summary)
    return comparison


def with_theory(run: RunData, theory: Mapping[str, Any] | None) -> RunData:
    """Return a run with what theory expects of it in its summary, for the page's table."""
    return replace(run, summary={**run.summary, "theory": theory})


def show(comparison: Comparison, out: Path | None, *, single_file: bool = False) -> Path | None:
    """Print the answer, the tables and the expectations; write the page; return its path."""
    from scenarios.report.answer import answer
    from scenarios.report.differences import differences_table
    from scenarios.report.page import write_report
    from scenarios.report.table import verdict_table
    from scenarios.run.load import load as load_run

    count = len(comparison.seeds)
    title = comparison.scenario.title + (f", mean of {count} seeds, ± 95 % interval of the mean" if count > 1 else "")
    summaries = comparison.by_candidate()
    terminal().print(verdict_table(list(summaries.values()), title=title))
    if count > 1 and len(summaries) > 1:
        terminal().print(differences_table(comparison.summaries))
    terminal().print(answer(list(summaries.values())), soft_wrap=True, highlight=False, markup=False)
    if comparison.scenario.uncertainty is not None:
        typer.echo(
            "This is the plant as stated. Where it may differ, as [uncertainty] says, `steadyflow robust` ranks them."
        )
    print_checks(comparison.checks)
    if out is None:
        return None
    runs = [
        with_theory(load_run(folder), comparison.summaries[name][0]["theory"])
        for name, folder in comparison.folders.items()
    ]
    joined = [summaries[name] for name in comparison.folders]
    page = write_report(runs, out / "report.html", joined, single_file=single_file)
    typer.echo(f"report: {page}")
    return page
