"""The command line: one command a file; this one joins them and turns the user's mistakes into one line and exit 2."""

from __future__ import annotations

import errno
import os
import sys
import warnings
from typing import Annotated

import typer

from scenarios.cli.commands import LazyGroup
from scenarios.errors import Interrupted, UserError
from scenarios.writing import reason

INTERRUPTED = 130  # 128 + SIGINT, as shells count
# Typer contains a copy of click; this is its base class of all usage errors.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]

app = typer.Typer(
    name="steadyflow",
    cls=LazyGroup,
    help="Will this admission or scaling rule oscillate on my traffic? Compare policies before they meet a GPU.",
    epilog="Start with: steadyflow demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _print_version(asked: bool) -> None:
    if asked:
        from importlib import metadata

        try:
            typer.echo(f"steadyflow {metadata.version('steadyflow')}")
        except metadata.PackageNotFoundError:
            typer.echo("steadyflow, not installed: run from its sources")
        raise typer.Exit


@app.callback()
def _steadyflow(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Take the options of the command line as a whole; the version has been printed by its callback."""


def main() -> None:
    """Run the command line."""
    try:
        left = app(standalone_mode=False)
        sys.stdout.flush()
    except UserError as error:
        typer.echo(f"steadyflow: {' '.join(str(error).splitlines())}", err=True)
        sys.exit(2)
    except Interrupted as interrupted:
        typer.echo(f"steadyflow: interrupted; {interrupted}", err=True)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:  # whoever read the output has gone: there is no one to report to
        _drop_output()
        sys.exit(1)
    except OSError as error:  # a full disk, a stream that takes no more: the environment's, not the program's
        _drop_output()
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        where = f"{error.filename}: " if error.filename else "the output cannot be written: " if full else ""
        typer.echo(f"steadyflow: {where}{reason(error)}", err=True)
        sys.exit(2)
    except UsageError as error:
        if message := usage(error):
            typer.echo(message, err=True)
        sys.exit(2)
    if left == INTERRUPTED:  # Typer turns the interrupt into this code and prints nothing
        warnings.simplefilter("ignore", RuntimeWarning)  # a turn's coroutine that never started
        typer.echo("steadyflow: interrupted; nothing was kept", err=True)
    sys.exit(left if isinstance(left, int) else 0)


def _drop_output() -> None:
    """Discard what standard output cannot take, so that nothing tries again at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def usage(error: Exception) -> str:
    """Return a mistake in arguments or options as one line; empty where the help has been shown instead."""
    message = " ".join(str(getattr(error, "format_message", error.__str__)()).split())
    message = message.replace("Input should be", "must be").split(", unable to parse")[0]
    context = getattr(error, "ctx", None)
    if context is None or not message:
        return message
    names = [context.info_name]
    while context.parent is not None:
        context = context.parent
        names.insert(0, context.info_name)
    command = " ".join(["steadyflow", *names[1:]])
    return f"{command}: {message[0].lower()}{message[1:].rstrip('.')}; {command} --help lists what there is"
