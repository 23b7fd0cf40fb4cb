"""What commands share: where records go, progress bars, tables of results."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import typer

from scenarios import commentary
from scenarios.cli.options import unwritable
from scenarios.errors import Interrupted, UserError, nearest
from scenarios.report.terminal import terminal

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from scenarios.schema.scenario import Scenario

RUNS = Path("runs")


def print_json(what: Mapping[str, Any] | Sequence[Any]) -> None:
    """Print one JSON object, or list, to standard output; NaN becomes null."""
    typer.echo(orjson.dumps(what, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY).decode())


def free_folder(name: str) -> Path:
    """Return a folder under runs/ that does not exist yet: the name, or the name with the next number.

    Raises
    ------
    UserError
        Nothing can be written there.
    """
    path, number = RUNS / name, 2
    while path.exists():
        path, number = RUNS / f"{name}-{number}", number + 1
    if wrong := unwritable(path, file=False):
        raise UserError(f"{wrong} with --out")
    return path


@contextmanager
def bar(*columns: str, total: float, quiet: bool) -> Iterator[tuple[Progress, TaskID]]:
    """Show a progress bar on standard error while the block runs; `columns` are names of task fields to show."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    shown = [TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.percentage:>3.0f} %")]
    shown += [TextColumn("{task.fields[" + column + "]}", markup=False) for column in columns]
    console = terminal(error=True)
    with Progress(*shown, TimeElapsedColumn(), console=console, transient=True, disable=quiet) as progress:
        fields: dict[str, Any] = dict.fromkeys(columns, "")  # Any: rich types its fields as its own options
        yield progress, progress.add_task("", total=total, **fields)


def quiet(as_json: bool) -> bool:
    """Tell whether a progress bar would only disturb: machine output, no terminal, or log lines in its place."""
    return as_json or commentary.enabled() or not sys.stderr.isatty()


def log_progress(done: int, total: int, unit: str, **details: object) -> None:
    """Log that one more unit of a long command has finished."""
    commentary.log("info", f"{unit} finished", done=done, total=total, **details)


@contextmanager
def kept_progress(
    title: str, command: str, unit: str, kept: Path | None, *, silent: bool
) -> Iterator[Callable[[int, int], None]]:
    """Yield what shows how many units are done of how many; after an interrupt the user is told where they are kept.

    Parameters
    ----------
    title, command, unit : str
        What the bar says; the command and what one of its many parts is called, as `run`.
    kept : Path, optional
        Where what is done stays; without it an interrupt is passed on.
    silent : bool
        Whether to show no bar.
    """
    reached = [(0, 0)]
    with bar("of", total=1, quiet=silent) as (progress, task):
        progress.update(task, description=title)

        def show(done: int, total: int) -> None:
            reached[0] = (done, total)
            log_progress(done, total, f"{command}: {unit}")
            progress.update(task, completed=done, total=total, of=f"{done} of {total} {unit}s")

        try:
            yield show
        except KeyboardInterrupt:
            done, total = reached[0]
            if kept is None or not done:
                raise
            where = f"{done} of {total} {unit}s are kept in {kept}"
            raise Interrupted(f"{where}; the same command goes on from them") from None


def only(scenario: Scenario, names: Sequence[str]) -> Scenario:
    """Return the scenario with the candidates named, or with all where none is; raises UserError for a strange name."""
    known = [candidate.name for candidate in scenario.candidates]
    for name in names:
        if name not in known:
            raise UserError(
                f"--candidate {name}: no such candidate{nearest(name, known)}; there are {', '.join(known)}"
            )
    if not names:
        return scenario
    kept = tuple(candidate for candidate in scenario.candidates if candidate.name in names)
    expect = {name: checks for name, checks in scenario.expect.items() if name in names}
    return scenario.model_copy(update={"candidates": kept, "expect": expect})


def print_repairs(scenario: Scenario) -> None:
    """Say on standard error what was odd in the scenario's trace, and what was done about it."""
    from scenarios.build.conversations import facts

    for entry in (facts(scenario) or {"repairs": ()})["repairs"]:
        done = f": {entry['done']}" if entry["done"] else ""
        typer.echo(f"trace: {entry['count']} x {entry['kind']}{done} (first: {entry['first_at']})", err=True)


def print_code(scenario: Scenario) -> None:
    """Say on standard error which files of code the scenario's candidates will run."""
    from scenarios.build.laws.file import code_of

    for file in code_of(scenario):
        typer.echo(f"code: {file} will run, with all rights of this user", err=True)


def print_checks(checks: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Print expectations: those that hold in one line, those that fail each in its own."""
    every = [(name, check) for name, candidate_checks in checks.items() for check in candidate_checks]
    failed = [(name, check) for name, check in every if not check["ok"]]
    if every:
        typer.echo(f"expectations: {len(every) - len(failed)} of {len(every)} hold")
    for name, check in failed:
        typer.echo(f"  {name}: {check['key']} should be {check['want']}, is {_number(check['got'])}")


def _number(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
