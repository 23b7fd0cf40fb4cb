"""Axes of a sweep: `PATH=a,b,c`, `PATH=from:to:count`, or `PATH=from:to:count:log`, with the paths of `--set`."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from scenarios.errors import UserError

MOST_POINTS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One parameter and its values; `log` says how to draw it."""

    path: str
    values: tuple[float, ...]
    log: bool = False

    @property
    def label(self) -> str:
        """Return the last two steps of the path: enough to know it by."""
        return ".".join(self.path.split(".")[-2:])


def parse_axis(text: str) -> Axis:
    """Read one `--grid`.

    Raises
    ------
    UserError
        The text is not of one of the three forms, a value is not a finite number, or there are fewer than two.
    """
    path, equals, values = text.partition("=")
    if not equals or not path.strip() or not values.strip():
        raise UserError(f"--grid {text}: must be PATH=a,b,c or PATH=from:to:count or PATH=from:to:count:log")
    if ":" not in values:
        return _checked(text, path.strip(), [_number(text, part) for part in values.split(",")], False)
    parts = values.split(":")
    if len(parts) not in (3, 4) or (len(parts) == 4 and parts[3].strip() != "log") or not parts[2].strip().isdigit():
        raise UserError(f"--grid {text}: a range is from:to:count, or from:to:count:log")
    low, high, count = _number(text, parts[0]), _number(text, parts[1]), int(parts[2])
    if len(parts) == 3:
        return _checked(text, path.strip(), np.linspace(low, high, count).tolist(), False)
    if low <= 0 or high <= 0:
        raise UserError(f"--grid {text}: a logarithmic range needs positive ends")
    return _checked(text, path.strip(), np.geomspace(low, high, count).tolist(), True)


def _number(text: str, part: str) -> float:
    try:
        value = float(part)
    except ValueError:
        raise UserError(f"--grid {text}: `{part.strip()}` is not a number") from None
    if not math.isfinite(value):
        raise UserError(f"--grid {text}: {part.strip()} is not finite")
    return value


def _checked(text: str, path: str, values: list[float], log: bool) -> Axis:
    if len(set(values)) < 2:
        raise UserError(f"--grid {text}: an axis needs at least two different values")
    if len(values) > MOST_POINTS:
        raise UserError(f"--grid {text}: {len(values)} values are more than {MOST_POINTS}")
    # Nine digits: what --set would be given, and so that a resumed sweep finds its own points again.
    return Axis(path=path, values=tuple(float(f"{value:.9g}") for value in values), log=log)
