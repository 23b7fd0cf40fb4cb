"""`steadyflow sweep FILE --grid PATH=...`: a stability map, theory's boundary drawn over it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from scenarios.analyze import analyze
from scenarios.cli.common import RUNS, kept_progress, print_json, quiet
from scenarios.cli.options import SingleFile, new_folder, unwritable
from scenarios.errors import UserError
from scenarios.schema.files import find
from scenarios.schema.load import load
from scenarios.schema.scenario import Scenario
from scenarios.sweep import parse_axis
from scenarios.sweep import sweep as sweep_grid
from scenarios.sweep.safe import safe_text


def sweep(
    file: Annotated[str, typer.Argument(help="A scenario file, or a name from `steadyflow list`.")],
    grid: Annotated[list[str], typer.Option(help="PATH=a,b,c or PATH=from:to:count[:log]; once an axis.")],
    candidate: Annotated[str | None, typer.Option(help="Which candidate; else the first.")] = None,
    signal: Annotated[str, typer.Option(help="Whose verdict.")] = "decode_occupancy_ratio",
    seeds: Annotated[int, typer.Option(help="Seeds a point; the worst verdict counts.", min=1)] = 1,
    jobs: Annotated[int | None, typer.Option(help="Processes; else one a core.", min=1)] = None,
    sets: Annotated[
        list[str] | None, typer.Option("--set", help="Override PATH=VALUE at every point; repeatable.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for points and map; an interrupted sweep resumes there.", callback=new_folder),
    ] = None,
    single_file: SingleFile = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON alone; nothing is kept without --out.")] = False,
) -> None:
    """Measure the verdict over a grid of parameters and draw the map.

    Example: steadyflow sweep mild --grid plant.dead_time_s=0.5:8:6:log --grid admission.max_release_per_s=60,80,100
    """
    axes = [parse_axis(text) for text in grid]
    name = find(file).stem
    folder = out or (None if as_json else RUNS / f"sweep-{name}")
    if folder is not None and (wrong := unwritable(folder, file=False)):
        raise UserError(f"{wrong} with --out")
    kept = None if folder is None else folder / "points.jsonl"
    title = load(file, sets or ()).title
    with kept_progress(title, "sweep", "run", kept, silent=quiet(as_json)) as show:
        swept = sweep_grid(
            file,
            axes,
            candidate=candidate,
            signal=signal,
            sets=sets or (),
            kept=kept,
            jobs=jobs or os.cpu_count() or 1,
            seeds=seeds,
            expect=expected if signal == "decode_occupancy_ratio" else None,
            done=show,
        )
    if folder is not None:
        from scenarios.report.sweep_page import write_sweep

        against = " against ".join(axis.label for axis in axes)
        title = f"Where does {swept.candidate} of {name} oscillate? {against}"
        page = write_sweep(swept, title, folder / "map.html", single_file=single_file)
    if as_json:
        print_json(swept.to_json())
        return
    words = Counter(point.measured["verdict"] for point in swept.points)
    counts = ", ".join(f"{count} {word.replace('_', ' ')}" for word, count in words.most_common())
    typer.echo(f"{swept.candidate}, {len(swept.points)} points: {counts}\n{safe_text(swept)}\nmap: {page}")


def expected(scenario: Scenario, candidate: str) -> Mapping[str, Any] | None:
    """Return what theory expects of one candidate at one point; None where it has no analysis."""
    try:
        (analysis,) = [item for item in analyze(scenario) if item.candidate == candidate]
    except UserError:
        return None
    return analysis.prediction.numbers()
