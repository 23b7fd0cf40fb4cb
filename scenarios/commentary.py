"""Log lines for people who watch a long run: structlog on standard error, off unless a level is set.

The level and the format stand in two environment variables, which the options `--log-level` and `--log-format` set, so
that worker processes inherit them. structlog is imported when the first logger is made, and never while logging is off.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from scenarios.errors import UserError, nearest

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

LEVEL, FORMAT = "STEADYFLOW_LOG_LEVEL", "STEADYFLOW_LOG_FORMAT"
LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
FORMATS = ("human", "json")
Level = Literal["debug", "info", "warning", "error"]


def configure(level: str | None, form: str | None) -> None:
    """Set level and format for this process and for the worker processes that it starts; None leaves either alone."""
    for name, value in ((LEVEL, level), (FORMAT, form)):
        if value is not None:
            os.environ[name] = value


def enabled() -> bool:
    """Tell whether logging is on."""
    return bool(os.environ.get(LEVEL))


def logger(**context: object) -> FilteringBoundLogger | None:
    """Return a logger to standard error that adds `context` to each line; None while logging is off.

    Raises
    ------
    UserError
        A variable holds a word that is no level or no format.
    """
    if not enabled():
        return None
    level = _checked(LEVEL, tuple(LEVELS))
    form = _checked(FORMAT, FORMATS) if os.environ.get(FORMAT) else "human"
    import structlog

    render: Any  # Any: either renderer
    if form == "json":
        render = structlog.processors.JSONRenderer(default=str)
    else:
        render = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), pad_event_to=24, sort_keys=False)
    logger: FilteringBoundLogger = structlog.wrap_logger(
        structlog.WriteLogger(sys.stderr),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso" if form == "json" else "%H:%M:%S", utc=form == "json"),
            render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        context_class=dict,
    )
    return logger.bind(**context)


def _checked(variable: str, known: Sequence[str]) -> str:
    value = os.environ[variable]
    if value not in known:
        raise UserError(f"{variable}={value}: must be one of {', '.join(known)}{nearest(value, known)}")
    return value


def log(level: Level, event: str, **what: object) -> None:
    """Log one line, if logging is on."""
    if (to := logger()) is not None:
        getattr(to, level)(event, **what)
