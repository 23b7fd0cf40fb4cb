"""`steadyflow recover RUN`: make the record of a server that was killed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def recover(
    run: Annotated[Path, typer.Argument(help="The record that `steadyflow serve` was to write.")],
) -> None:
    """Close the journal of a killed server into a record, and say what is missing.

    Example: steadyflow recover runs/serve-agentx_lanes-paced_wip
    """
    from scenarios.serve.journal import close_record

    run = run.with_name(run.name.removesuffix(".live"))
    data, missing = close_record(run)
    counts = data.summary["counts"]
    typer.echo(f"{counts['arrived']} requests, {counts['retired']} answered; {data.summary['headline']}")
    for line in missing:
        typer.echo(f"missing: {line}", err=True)
    typer.echo(f"record: {run}   (a page of it: steadyflow report {run})")
