"""`steadyflow fuzz`: random worlds, invariants in each, failures made small."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from scenarios.cli.common import bar, print_json, quiet
from scenarios.cli.options import LARGEST_SEED, new_folder
from scenarios.errors import UserError
from scenarios.fuzz.search import replayed, search


def fuzz(
    law: Annotated[
        str | None, typer.Argument(help="A law of your own for every world: path/to/law.py:Class(name=value, ...).")
    ] = None,
    worlds: Annotated[int, typer.Option(help="How many worlds.", min=1)] = 20,
    seed: Annotated[int, typer.Option(help="Seed of the draws.", min=0, max=LARGEST_SEED)] = 1,
    first: Annotated[int, typer.Option(help="Number of the first world.", min=0)] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Folder for failing worlds; else runs/fuzz.", callback=new_folder)
    ] = None,
    replay: Annotated[Path | None, typer.Option(help="Check one world that an earlier search wrote.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run random worlds over plants, traffic, laws, faults and telemetry; exit 1 where a law of every run is broken.

    Each world runs twice. A failure is shrunk to a small scenario file; one command repeats it.

    Example: steadyflow fuzz --worlds 20 --seed 3
    """
    if replay is not None:
        _replay(replay, as_json)
        return
    failures = []
    folder = out or Path("runs") / "fuzz"
    with bar("world", total=float(worlds), quiet=quiet(as_json)) as (progress, task):

        def done(number: int) -> None:
            progress.update(task, completed=number - first + 1, world=f"world {number} of seed {seed}")

        for failure in search(seed, range(first, first + worlds), law, done):
            path = failure.write(folder)
            failures.append({"world": failure.world, "law": failure.broken.law, "seen": failure.broken.seen,
                          "file": str(path), "repeat": f"steadyflow fuzz --replay {path}"})  # fmt: skip
    if as_json:
        print_json({"worlds": worlds, "seed": seed, "failures": failures})
    else:
        for failed in failures:
            typer.echo(f"{failed['law']}: {failed['seen']}\n    repeat: {failed['repeat']}")
        typer.echo(f"{worlds} worlds of seed {seed}: {len(failures) or 'no'} failure{'s' if len(failures) > 1 else ''}")
    if failures:
        raise typer.Exit(1)


def _replay(path: Path, as_json: bool) -> None:
    if not path.is_file():
        raise UserError(f"{path}: no such file; --replay takes a scenario file that `steadyflow fuzz` has written")
    broken = replayed(path)
    if as_json:
        print_json({"file": str(path), "law": broken and broken.law, "seen": broken and broken.seen})
    else:
        typer.echo("every law holds" if broken is None else f"{broken.law}: {broken.seen}")
    if broken is not None:
        raise typer.Exit(1)
