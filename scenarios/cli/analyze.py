"""`steadyflow analyze FILE`: predict each candidate's cycle and margins; with --verify, compare with runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from scenarios.analyze.analysis import MEASURED, Analysis, needs_plant
from scenarios.analyze.analysis import analyze as analyze_candidates
from scenarios.analyze.prediction import Prediction
from scenarios.analyze.scaling import Startup, undeclared
from scenarios.build.plants import declared
from scenarios.cli.common import bar, log_progress, only, print_json, quiet
from scenarios.cli.identify import KEPT
from scenarios.cli.options import new_file
from scenarios.errors import UserError
from scenarios.identify.cache import cached, cached_startup
from scenarios.identify.identify import Identified, identify
from scenarios.identify.startup import identify_startup
from scenarios.report.table import fitted
from scenarios.report.terminal import terminal
from scenarios.schema.load import load
from scenarios.schema.scenario import Scenario


def analyze(
    file: Annotated[str, typer.Argument(help="A scenario file, or a name from `steadyflow list`.")],
    candidate: Annotated[
        list[str] | None, typer.Option(help="Only this candidate; repeatable [default: every one].")
    ] = None,
    verify: Annotated[bool, typer.Option(help="Also run every candidate and compare; exit 1 if one differs.")] = False,
    seeds: Annotated[int, typer.Option(help="Seeds a candidate is run on.", min=1)] = 1,
    jobs: Annotated[int | None, typer.Option(help="Processes; else one a core.", min=1)] = None,
    sets: Annotated[
        list[str] | None, typer.Option("--set", help="Override PATH=VALUE, as plant.dead_time_s=4; repeatable.")
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(help="Also write a page: Bode, Nyquist and step response of each loop.", callback=new_file),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON alone.")] = False,
) -> None:
    """Predict each candidate's cycle, margins and utilisation before any closed-loop run.

    Where no experiment finds the plant (lanes of agents bring their own arrivals), --verify takes the plant that each
    run measured.

    Example: steadyflow analyze full_empty_reference --verify
    """
    scenario = only(load(file, sets or ()), candidate or ())
    known, unidentified = None, None
    try:
        known = _identified(scenario)
    except UserError as error:
        unidentified = str(error)
    startups = {name: _started(scenario, name) for name in undeclared(scenario)}
    with bar("of", total=len(scenario.candidates) * seeds, quiet=quiet(as_json) or not verify) as (progress, task):
        progress.update(task, description=scenario.title)

        def done(count: int, total: int) -> None:
            log_progress(count, total, "analyze: run")
            progress.update(task, completed=count, of=f"{count} of {total} runs")

        analyses = analyze_candidates(
            scenario,
            identified=None if known is None else known.model(),
            open_per_s=None if known is None else known.open_per_s,
            residences_s=() if known is None else known.residences_s(),
            startups=startups,
            unidentified=unidentified,
            verify=verify,
            seeds=seeds,
            jobs=jobs or os.cpu_count() or 1,
            done=done,
        )
    if as_json:
        print_json({analysis.candidate: analysis.to_json() for analysis in analyses})
    else:
        _show(analyses, scenario.title)
    if html is not None:
        from scenarios.report.loops_page import write_loops_page

        typer.echo(f"page: {write_loops_page(analyses, scenario.title, scenario.question, html)}", err=as_json)
    if any(analysis.agrees is False for analysis in analyses):
        raise typer.Exit(1)


def _identified(scenario: Scenario) -> Identified | None:
    # A plant that declares its model needs no experiment; any other is identified once and kept by its digest.
    if declared(scenario) is not None or not needs_plant(scenario):
        return None
    analyses, kept = cached(scenario, "prbs", KEPT, lambda: identify(scenario))
    typer.echo(f"plant identified by {analyses.source}{', kept from before' if kept else ''}", err=True)
    return analyses


def _started(scenario: Scenario, name: str) -> Startup:
    analyses, kept = cached_startup(scenario, name, "step", KEPT, lambda: identify_startup(scenario, name))
    source = f"identified by {analyses.source}"
    typer.echo(f"start-up of {name} {source}{', kept from before' if kept else ''}", err=True)
    return Startup(delay_s=analyses.delay_s, source=source)


def _show(analyses: list[Analysis], title: str) -> None:
    first = next(
        (analysis for analysis in analyses if analysis.model is not None and analysis.source != MEASURED), None
    )
    if first is not None:
        typer.echo(_plant(first))
    terminal().print(both_table(analyses, title))
    for analysis in analyses:
        typer.echo(
            f"{analysis.candidate}: {analysis.prediction.mechanism}{_margins(analysis.prediction)}{_startup(analysis)}"
        )
        if analysis.source == MEASURED:
            typer.echo(f"    {_plant(analysis)}")
        if analysis.worst is not None:
            typer.echo(
                f"    worst corner of the stated uncertainty: {analysis.worst}{_margins(analysis.worst.prediction)}"
            )
        for slot, reason in analysis.others.items():
            typer.echo(f"    beside it, {slot}: {reason}")
        if analysis.agrees is not None:
            outcome = "; ".join(analysis.differences) if analysis.differences else "theory and run agree"
            typer.echo(f"    {outcome}")
        if analysis.not_compared is not None:
            typer.echo(f"    not compared: {analysis.not_compared}")


def both_table(analyses: Sequence[Analysis], title: str, width: int | None = None) -> Table:
    """Return theory's line of each candidate and, where it was run, the run's; a narrow table keeps names unbroken."""
    headings = ("candidate", "", "verdict", "period", "swing", "damping", "utilisation")
    lines = []
    for analysis in analyses:
        lines.append((analysis.candidate, "theory", *_row(analysis.prediction.numbers())))
        if analysis.measured is not None:
            lines.append(("", "run", *_row(analysis.measured)))
    wrap = {"": len("theory"), "verdict": len("quasi cycle")}
    return fitted(headings, lines, lambda *_: "", dropped=("damping", "swing"), words=wrap, title=title, width=width)


def _plant(analysis: Analysis) -> str:
    model = analysis.model
    assert model is not None
    return (
        f"plant ({analysis.source}): N = {model.slots:g} slots, T = {model.residence_s:.4g} s, residence "
        f"{model.shape}; dead time {model.dead_time_s:.4g} s in the pipeline + {model.observation_s:.4g} s to see "
        "and act"
    )


def _row(numbers: Mapping[str, object]) -> list[str]:
    names = ("verdict", "period_s", "amplitude_ratio", "damping_ratio", "utilization_ratio")
    return [_text(numbers.get(name), " s" if name == "period_s" else "") for name in names]


def _text(value: object, unit: str) -> str:
    if isinstance(value, float):
        return f"{value:.4g}{unit}"
    return "-" if value is None else str(value).replace("_", " ")


def _startup(analysis: Analysis) -> str:
    delay_s = analysis.prediction.facts.get("startup_s")
    return "" if delay_s is None else f"; a start takes {delay_s:.4g} s ({analysis.source})"


def _margins(prediction: Prediction) -> str:
    margins = prediction.margins
    if not margins:
        return ""

    shown = (
        ("gain_margin", "gain", " x"),
        ("phase_margin_deg", "phase", " deg"),
        ("delay_margin_s", "delay of readings", " s"),
        ("pipeline_margin_s", "longer pipeline", " s"),
        ("disk_gain_high", "disk gain", " x"),
        ("disk_phase_deg", "disk phase", " deg"),
    )
    known = [
        f"{word} no limit" if margins[name] is None else f"{word} {margins[name]:.3g}{unit}"
        for name, word, unit in shown
        if name in margins
    ]
    return f"; margins: {', '.join(known)}"
