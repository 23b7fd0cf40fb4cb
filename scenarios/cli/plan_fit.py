"""`steadyflow plan fit TRACE`: step times from a trace that has first tokens and ends."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scenarios.cli.common import print_json
from scenarios.cli.options import new_file
from scenarios.errors import UserError

if TYPE_CHECKING:
    from scenarios.plan.fit import Fitted, Interval

_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}


def fit(
    trace: Annotated[Path, typer.Argument(help="A table of requests (CSV, JSONL, Parquet), or the folder of a run.")],
    columns: Annotated[
        str, typer.Option(help="Names of its columns: arrived=ts,prompt=prompt_len,ttft=ttft_s,end=end_s,worker=pod.")
    ] = "",
    unit: Annotated[str, typer.Option(help="Unit of its times: s, ms or us.")] = "s",
    table: Annotated[
        Path | None, typer.Option(help="Write rows for `times` of kind table there.", callback=new_file)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON only.")] = False,
) -> None:
    """Fit the linear numbers of a worker's step times, with intervals, or a table of steps and fills.

    A column `worker` says which requests shared a worker; without it all did.

    Example: steadyflow plan fit runs/measured --table steps.csv
    """
    from scenarios.plan.fit import fit as fitted_to
    from scenarios.plan.fit import read_requests, write_table

    if unit not in _UNITS:
        raise UserError(f"--unit {unit}: is unknown; known: {', '.join(_UNITS)}")
    named = {}
    for pair in filter(None, columns.split(",")):
        key, equals, name = pair.partition("=")
        if not equals or not name:
            raise UserError(f"--columns {pair}: must be KEY=NAME, as ttft=first_token_latency")
        named[key.strip()] = name.strip()
    fitted = fitted_to(read_requests(trace, named, _UNITS[unit]))
    written = None if table is None else write_table(fitted, table)
    if as_json:
        print_json(asdict(fitted) | {"times": fitted.times()})
        return
    _print(fitted)
    if table is not None:
        typer.echo(f'table: {table} with {written} rows; times = {{ kind = "table", file = "{table.name}" }}')


def _print(fitted: Fitted) -> None:
    low, high = fitted.batch_range
    typer.echo(f"{fitted.rows} requests on {fitted.workers} workers, mean batch {low:.1f} to {high:.1f}")
    for name, number in fitted.numbers.items():
        typer.echo(f"  {name:16s} {_text(number)}")
    if fitted.first_fixed_s is not None and fitted.first_per_new_token_s is not None:
        typer.echo(f"  first token: {_text(fitted.first_fixed_s)} fixed")
        typer.echo(f"               {_text(fitted.first_per_new_token_s)} a new token")
    else:
        typer.echo("  first token: too few fills that nothing delayed")
    typer.echo(f"median error of a request's step {fitted.median_error_ratio:.1%}")
    typer.echo(fitted.times())


def _text(number: Interval) -> str:
    return f"{number.value:.3e} s (95 %: {number.low:.3e} to {number.high:.3e})"
