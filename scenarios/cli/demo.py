"""`steadyflow demo`: the answer to "show me"."""

from __future__ import annotations

from typing import Annotated

import typer

from scenarios.cli.common import free_folder, quiet
from scenarios.cli.compare import compared, show

SHOWN = ("full_empty_reference", "agentx_slow_fill")


def demo(
    jobs: Annotated[int | None, typer.Option(help="Processes; else one a core.", min=1)] = None,
) -> None:
    """Compare policies on the shipped demonstrations and write a page on each.

    Example: steadyflow demo
    """
    from scenarios.schema.load import load

    for name in SHOWN:
        scenario = load(name)
        typer.echo(f"\n{scenario.question}")
        out = free_folder(f"demo-{name}")
        show(compared(scenario, seeds=1, jobs=jobs, out=out, silent=quiet(False)), out)
