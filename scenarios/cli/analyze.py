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
from scenarios.cli.common import bar, log_progress, print_json, quiet
from scenarios.cli.identify import KEPT
from scenarios.cli.options import new_file
from scenarios.errors import UserError, nearest
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

        found = analyze_candidates(
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
        print_json({one.candidate: one.to_json() for one in found})
    else:
        _show(found, scenario.title)
    if html is not None:
        from scenarios.report.loops_page import write_loops_page

        typer.echo(f"page: {write_loops_page(found, scenario.title, scenario.question, html)}", err=as_json)
    if any(one.agrees is False for one in found):
        raise typer.Exit(1)


def only(scenario: Scenario, names: Sequence[str]) -> Scenario:
    """Return the scenario with the candidates named, or with all where none is; raises UserError for a strange name."""
    known = [one.name for one in scenario.candidates]
    for name in names:
        if name not in known:
            raise UserError(
                f"--candidate {name}: no such candidate{nearest(name, known)}; there are {', '.join(known)}"
            )
    if not names:
        return scenario
    kept = tuple(one for one in scenario.candidates if one.name in names)
    expect = {name: checks for name, checks in scenario.expect.items() if name in names}
    return scenario.model_copy(update={"candidates": kept, "expect": expect})


def _identified(scenario: Scenario) -> Identified | None:
    # A plant that declares its model needs no experiment; any other is identified once and kept by its digest.
    if declared(scenario) is not None or not needs_plant(scenario):
        return None
    found, kept = cached(scenario, "prbs", KEPT, lambda: identify(scenario))
    typer.echo(f"plant identified by {found.source}{', kept from before' if kept else ''}", err=True)
    return found


def _started(scenario: Scenario, name: str) -> Startup:
    found, kept = cached_startup(scenario, name, "step", KEPT, lambda: identify_startup(scenario, name))
    source = f"identified by {found.source}"
    typer.echo(f"start-up of {name} {source}{', kept from before' if kept else ''}", err=True)
    return Startup(delay_s=found.delay_s, source=source)


def _show(found: list[Analysis], title: str) -> None:
    first = next((one for one in found if one.model is not None and one.source != MEASURED), None)
    if first is not None:
        typer.echo(_plant(first))
    terminal().print(both_table(found, title))
    for one in found:
        typer.echo(f"{one.candidate}: {one.prediction.mechanism}{_margins(one.prediction)}{_startup(one)}")
        if one.source == MEASURED:
            typer.echo(f"    {_plant(one)}")
        if one.worst is not None:
            typer.echo(f"    worst corner of the stated uncertainty: {one.worst}{_margins(one.worst.prediction)}")
        for slot, reason in one.others.items():
            typer.echo(f"    beside it, {slot}: {reason}")
        if one.agrees is not None:
            outcome = "; ".join(one.differences) if one.differences else "theory and run agree"
            typer.echo(f"    {outcome}")
        if one.not_compared is not None:
            typer.echo(f"    not compared: {one.not_compared}")


def both_table(found: Sequence[Analysis], title: str, width: int | None = None) -> Table:
    """Return theory's line of each candidate and, where it was run, the run's; a narrow table keeps names unbroken."""
    headings = ("candidate", "", "verdict", "period", "swing", "damping", "utilisation")
    lines = []
    for one in found:
        lines.append((one.candidate, "theory", *_row(one.prediction.numbers())))
        if one.measured is not None:
            lines.append(("", "run", *_row(one.measured)))
    wrap = {"": len("theory"), "verdict": len("quasi cycle")}
    return fitted(headings, lines, lambda *_: "", dropped=("damping", "swing"), words=wrap, title=title, width=width)


def _plant(one: Analysis) -> str:
    model = one.model
    assert model is not None
    return (
        f"plant ({one.source}): N = {model.slots:g} slots, T = {model.residence_s:.4g} s, residence "
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


def _startup(one: Analysis) -> str:
    delay_s = one.prediction.facts.get("startup_s")
    return "" if delay_s is None else f"; a start takes {delay_s:.4g} s ({one.source})"


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
