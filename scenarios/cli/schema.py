"""`steadyflow schema`: every table and key of a scenario file, for people and for editors."""

from __future__ import annotations

from typing import Annotated

import typer

from scenarios.cli.common import print_json
from scenarios.schema.reference import reference
from scenarios.schema.scenario import Scenario


def schema(
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON Schema, as editors read it.")] = False,
) -> None:
    """Print the reference of the scenario file: every key with type, unit, default and meaning.

    Example: steadyflow schema --json
    """
    if as_json:
        print_json(Scenario.model_json_schema())
    else:
        typer.echo(reference(), nl=False)
