"""What is varied: `PATH=from:to` or `PATH=from:to:log`, with the paths of `--set`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from scenarios.errors import UserError

Values = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter and its range; `log`: searched evenly in its logarithm. `whole`: only whole numbers."""

    path: str
    low: float
    high: float
    log: bool = False
    integer: bool = False

    @property
    def label(self) -> str:
        """Return the last step of the path."""
        return self.path.rsplit(".", 1)[-1]

    def near(self, value: float, share: float, u: float) -> float:
        """Return a value within `share` of the range about another one, at `u` in (0, 1), inside the range."""
        low, high = (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)
        centre = math.log(value) if self.log else value
        moved = centre + share * (high - low) * (2.0 * u - 1.0)
        back = math.exp(moved) if self.log else moved
        inside = min(max(back, self.low), self.high)
        return float(round(inside)) if self.integer else inside

    def grid(self, count: int) -> tuple[float, ...]:
        """Return values from end to end, evenly on the parameter's own scale."""
        values = np.geomspace(self.low, self.high, count) if self.log else np.linspace(self.low, self.high, count)
        return tuple(float(value) for value in values)


def parse_parameter(text: str) -> Parameter:
    """Read one `--vary`; both ends without a fraction make it a parameter of whole numbers.

    Raises
    ------
    UserError
        The text is not of this form, or the range is empty.
    """
    path, equals, ends = text.partition("=")
    parts = [part.strip() for part in ends.split(":")]
    log = len(parts) == 3 and parts[2] == "log"
    if not equals or not path.strip() or not (len(parts) == 2 or log):
        raise UserError(f"--vary {text}: must be PATH=from:to or PATH=from:to:log")
    try:
        low, high = float(parts[0]), float(parts[1])
    except ValueError:
        raise UserError(f"--vary {text}: {parts[0]} and {parts[1]} must be numbers") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise UserError(f"--vary {text}: the range must be finite, its lower end first")
    if log and low <= 0.0:
        raise UserError(f"--vary {text}: a logarithmic range needs positive ends")
    integer = all(part.lstrip("-").isdigit() for part in parts[:2])
    return Parameter(path=path.strip(), low=low, high=high, log=log, integer=integer)


def settings(parameters: tuple[Parameter, ...], values: Values) -> list[str]:
    """Return the values as overrides."""
    return [
        f"{parameter.path}={int(values[parameter.path]) if parameter.integer else repr(values[parameter.path])}"
        for parameter in parameters
    ]
