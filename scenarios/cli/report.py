"""`steadyflow report RUN ...`: the page of one run, or of several side by side."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scenarios.cli.options import SingleFile, new_file, unwritable
from scenarios.errors import UserError

if TYPE_CHECKING:
    from scenarios.run.record import RunData


def report(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs, or a folder that holds some.")],
    perfetto: Annotated[bool, typer.Option(help="Also write a trace for ui.perfetto.dev beside each run.")] = False,
    perfetto_turns: Annotated[int, typer.Option(help="Most turns in a trace for Perfetto.", min=1)] = 100_000,
    single_file: SingleFile = False,
    out: Annotated[
        Path | None, typer.Option(help="Where the page goes; else report.html beside the run.", callback=new_file)
    ] = None,
) -> None:
    """Write report.html on recorded runs; candidates are overlaid.

    Example: steadyflow report runs/full_empty_reference --out page.html
    """
    # Drawing needs plotly, which other commands need not wait for.
    from scenarios.report.page import write_report
    from scenarios.report.perfetto import bounded, write_trace
    from scenarios.run.load import load, runs_in

    folders = [folder for path in runs for folder in runs_in(path)]
    place = out or runs[0] / "report.html"
    if wrong := unwritable(place, file=True):
        raise UserError(f"{wrong} with --out")
    loaded = {folder: load(folder) for folder in dict.fromkeys(folders)}
    _refuse_other_scenarios(loaded)
    with_theory = [_with_theory(data, folder) for folder, data in loaded.items()]
    page = write_report(sorted(with_theory, key=_place), place, single_file=single_file)
    typer.echo(f"report: {page}")
    if perfetto:
        for folder, data in loaded.items():
            kept = bounded(data, perfetto_turns)
            part = f"{len(kept.turns):,} of {len(data.turns):,} turns (--perfetto-turns)"
            typer.echo(f"trace:  {part if len(kept.turns) < len(data.turns) else f'{len(data.turns):,} turns'} ...")
            typer.echo(f"trace:  {write_trace(kept, folder / 'trace.perfetto.json.gz')}")


def _refuse_other_scenarios(loaded: Mapping[Path, RunData]) -> None:
    """Raise where runs are not of one scenario: their curves could not be compared."""
    (first, run), *others = loaded.items()
    for folder, other in others:
        if other.title != run.title:
            raise UserError(
                f"{folder}: of another scenario ({other.title!r}) than {first} ({run.title!r}); "
                "a page overlays runs of one scenario: name those, or report each alone"
            )


def _with_theory(run: RunData, folder: Path) -> RunData:
    """Put theory's prediction into the summary, if the scenario still loads (a law's file may have moved)."""
    from scenarios.analyze.analysis import expected_of_run
    from scenarios.schema.load import validate

    try:
        scenario = validate(tomllib.loads(run.scenario_toml), folder.name)
        theory = expected_of_run(scenario, run.candidate, run.summary)
    except UserError:
        return run
    return replace(run, summary={**run.summary, "theory": theory})


def _place(run: RunData) -> int:
    """Return the candidate's place in its scenario: a page reads in that order, whatever the folders are called."""
    names = [table.get("name") for table in tomllib.loads(run.scenario_toml).get("candidates", [])]
    return names.index(run.candidate) if run.candidate in names else len(names)
