"""`steadyflow judge FILE`: the verdict on series from a real cluster or another simulator."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer
from rich.table import Table

from scenarios.cli.options import new_file
from scenarios.errors import UserError
from scenarios.report.terminal import terminal

if TYPE_CHECKING:
    from scenarios.judge import Judged
    from scenarios.judge.query import Range


def judge(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE...",
            help="Tables (.csv, .tsv, .parquet, `kubectl get hpa -w`), JSON of Prometheus, Grafana or Datadog; - reads "
            "standard input.",
        ),
    ] = None,
    prometheus: Annotated[str | None, typer.Option(help="Ask the Prometheus server at this address.")] = None,
    query: Annotated[str | None, typer.Option(help="What to ask it for; each series is judged by itself.")] = None,
    since: Annotated[str, typer.Option(help="Over which span before now.")] = "6h",
    step: Annotated[str, typer.Option(help="At which interval: that of its scrapes.")] = "15s",
    token_file: Annotated[Path | None, typer.Option(help="A file with the bearer token that it asks for.")] = None,
    time: Annotated[str | None, typer.Option(help="Column of the instants: seconds, an epoch, dates, a clock.")] = None,
    column: Annotated[list[str] | None, typer.Option(help="Judge this series only; may be repeated.")] = None,
    by: Annotated[
        list[str] | None, typer.Option(help="Column that tells the series of a long table apart; may be repeated.")
    ] = None,
    load: Annotated[
        str | None, typer.Option(help="Series of the load from outside, to recognise a driven swing.")
    ] = None,
    scale: Annotated[float | None, typer.Option(help="What a swing is measured against; else the mean size.")] = None,
    dead_time_s: Annotated[float | None, typer.Option(help="The loop's dead time, for the likely mechanism.")] = None,
    steps: Annotated[
        bool | None,
        typer.Option("--steps/--samples", help="One row a change, held until the next / samples; else found out."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON alone.")] = False,
    html: Annotated[Path | None, typer.Option(help="Also write a page with pictures.", callback=new_file)] = None,
) -> None:
    """Say of each series whether it oscillates, how, and what probably makes it.

    Example: steadyflow judge replicas.csv --time t_s --html verdict.html
    """
    from scenarios.judge import judge_file, judge_range

    for name, value in (("--scale", scale), ("--dead-time-s", dead_time_s)):
        if value is not None and not 0 < value < float("inf"):
            raise UserError(f"{name}: {value} must be positive and finite")
    common: Options = {"load": load, "scale": scale, "dead_time_s": dead_time_s}
    if prometheus is not None:
        if files or time is not None or column:
            raise UserError("--prometheus takes the place of FILE, --time and --column: give one or the other")
        asked, title = _range(prometheus, query, since, step, token_file), query or ""
        judged = judge_range(asked, **common)
    elif not files:
        raise UserError("judge: give a FILE, or --prometheus with --query")
    else:
        title = ", ".join("standard input" if str(file) == "-" else file.name for file in files)
        judged = judge_file(*files, time=time, columns=column or (), by=by or (), steps=steps, **common)
    if html is not None:
        from scenarios.report.judged_page import write_judged

        write_judged(judged, title, html)
    if as_json:
        typer.echo(
            json.dumps({"file": title, "series": {series.name: series.to_json() for series in judged}}, indent=1)
        )
        return
    terminal().print(_table(judged, title))
    for series in judged:
        cause = [] if series.likely.startswith("none") else [f"likely: {series.likely}"]
        typer.echo(
            f"{series.name}: {'; '.join([series.verdict.reason, series.cost, *cause, *series.notes, *_steps(series)])}"
        )
    if html is not None:
        typer.echo(f"page: {html}")


class Options(TypedDict):
    """What a file's series and a server's are judged with alike."""

    load: str | None
    scale: float | None
    dead_time_s: float | None


def _range(url: str, query: str | None, since: str, step: str, token_file: Path | None) -> Range:
    from scenarios.judge.query import Range, seconds

    if not query:
        raise UserError("--prometheus: give --query too, such as --query 'sum(vllm:num_requests_running)'")
    try:
        token = None if token_file is None else token_file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise UserError(f"--token-file {token_file}: cannot be read as text") from None
    return Range(
        url=url, query=query, since_s=seconds(since, "--since"), step_s=seconds(step, "--step"), token=token or None
    )


def _table(judged: Sequence[Judged], title: str) -> Table:
    table = Table(title=f"{title}: {len(judged)} series", title_justify="left")
    for heading in ("series", "verdict", "period", "swing", "reversals/h", "flaps/h"):
        table.add_column(heading, overflow="fold", justify="right" if heading in NUMBERS else "left")
    for series in judged:
        period = series.verdict.period_s
        table.add_row(
            series.name,
            series.verdict.verdict.replace("_", " "),
            "-"
            if period is None
            else ", ".join(f"{one_s:.4g} s" for one_s in (period, *series.verdict.other_periods_s)),
            f"{series.verdict.amplitude_ratio:.1%}",
            f"{series.reversals_per_hour:.3g}",
            f"{series.flaps_per_hour:.3g}",
        )
    return table


NUMBERS = ("period", "swing", "reversals/h", "flaps/h")


def _steps(series: Judged) -> list[str]:
    return [
        f"step at {step.at_s:.4g} s from {step.before:.4g} to {step.after:.4g}: overshoot {step.overshoot_ratio:.0%}, "
        + ("never settled" if step.settling_s is None else f"settled in {step.settling_s:.4g} s")
        for step in series.steps
    ]
