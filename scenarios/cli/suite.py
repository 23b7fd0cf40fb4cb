"""`steadyflow suite`: every shipped scenario and candidate, one table, one page, exit 1 where an expectation fails."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from scenarios.cli.common import bar, free_folder, log_progress, print_json, quiet
from scenarios.cli.options import new_file
from scenarios.report.terminal import terminal
from scenarios.suite.execute import Row, run_suite
from scenarios.suite.members import names


def suite(
    only: Annotated[list[str] | None, typer.Argument(help="Library names; without any, all of them.")] = None,
    jobs: Annotated[int | None, typer.Option(help="Processes; else one a core.", min=1)] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="The page to write; else suite.html in a folder under runs/.", callback=new_file),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object; no page without --out.")] = False,
) -> None:
    """Run the shipped scenarios on all cores and hold every candidate to what is expected of it.

    Example: steadyflow suite full_empty_reference herd
    """
    chosen = list(only or names())
    if out is None and not as_json:
        out = free_folder("suite") / "suite.html"
    with bar("run", total=1.0, quiet=quiet(as_json)) as (progress, task):

        def done(count: int, total: int, name: str) -> None:
            log_progress(count, total, "suite: run", last=name)
            progress.update(task, completed=count, total=total, run=f"{count} of {total}: {name}")

        rows = run_suite(chosen, jobs=jobs or os.cpu_count() or 1, done=done)
    if as_json:
        print_json({"rows": [row.to_json() for row in rows], "ok": all(row.ok for row in rows)})
    else:
        _show(rows)
    if out is not None:
        from scenarios.report.suite_page import write_suite_page

        typer.echo(f"page: {write_suite_page(rows, out)}", err=as_json)
    if not all(row.ok for row in rows):
        raise typer.Exit(1)


def _show(rows: list[Row]) -> None:
    from scenarios.report.suite_page import suite_table

    terminal().print(suite_table(rows))
    for row in rows:
        for check in row.checks:
            if not check["ok"]:
                typer.echo(
                    f"{row.scenario}/{row.candidate}: {check['key']} should be {check['want']}, is {check['got']}"
                )
    checks = [check for row in rows for check in row.checks]
    typer.echo(f"expectations: {sum(check['ok'] for check in checks)} of {len(checks)} hold")
