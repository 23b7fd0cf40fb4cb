"""`steadyflow list`: the shipped scenarios."""

from __future__ import annotations

from typing import Annotated

import orjson
import typer

from scenarios.report.terminal import terminal
from scenarios.schema.files import library, read_toml


def list_scenarios(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """List the shipped scenarios, each with its question and candidates.

    Example: steadyflow list
    """
    tables = {name: read_toml(path) for name, path in library().items()}  # tests check them against the schema
    if as_json:
        rows = {
            name: {"title": s["title"], "question": s["question"], "candidates": [c["name"] for c in s["candidates"]]}
            for name, s in tables.items()
        }
        typer.echo(orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode())
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    title = "steadyflow run NAME, or compare NAME"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1), collapse_padding=True, leading=1)
    for heading in ("name", "question", "candidates"):
        table.add_column(heading, no_wrap=heading != "question")  # names are there to be copied
    for name, scenario in tables.items():
        table.add_row(name, scenario["question"], "\n".join(c["name"] for c in scenario["candidates"]))
    terminal().print(table)
