"""The options `-v`, `--log-level` and `--log-format` of the commands that take long or run an orchestrator."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from scenarios import commentary
from scenarios.errors import UserError, nearest

_VERBOSE = Annotated[
    int, typer.Option("-v", "--verbose", count=True, help="Log to standard error: -v is info, -vv is debug.")
]
_LEVEL = Annotated[
    str | None,
    typer.Option("--log-level", help=f"One of {', '.join(commentary.LEVELS)}; else no log.", metavar="LEVEL"),
]
_FORMAT = Annotated[
    str | None, typer.Option("--log-format", help="human, or json (an object a line).", metavar="FORMAT")
]
_ADDED = {
    "verbose": (_VERBOSE, 0),
    "log_level": (_LEVEL, None),
    "log_format": (_FORMAT, None),
}


def logs(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with the three options, which are set before it runs."""

    @wraps(command)
    def with_log(*args: Any, verbose: int, log_level: str | None, log_format: str | None, **options: Any) -> None:
        configure(verbose, log_level, log_format)
        command(*args, **options)

    before = inspect.signature(command, eval_str=True)
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in _ADDED.items()
    ]
    # inspect.signature, which Typer uses to find the options, reads this attribute.
    with_log.__signature__ = before.replace(parameters=[*before.parameters.values(), *added])  # type: ignore[attr-defined]
    return with_log


def configure(verbose: int, log_level: str | None, log_format: str | None) -> None:
    """Turn logging on as the options require; a format alone logs at level info."""
    for option, value, known in (
        ("--log-level", log_level, tuple(commentary.LEVELS)),
        ("--log-format", log_format, commentary.FORMATS),
    ):
        if value is not None and value not in known:
            raise UserError(f"{option} {value}: must be one of {', '.join(known)}{nearest(value, known)}")
    level = log_level or ("debug" if verbose > 1 else "info" if verbose or log_format else None)
    commentary.configure(level, log_format)
