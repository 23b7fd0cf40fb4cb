"""Types of a law's parameters with their bounds, and rules that tie two parameters together.

A law declares its parameters once, as the keywords of its constructor: name (ending in its unit), type with bounds,
default. The scenario file's table, its checks and the documentation are derived from that signature. Where one bound
depends on another parameter, the law lists rules: `rules = (below("open_at_ratio", "close_at_ratio"),)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from annotated_types import Ge, Gt, Le, Lt

Positive = Annotated[float, Gt(0.0)]
NotNegative = Annotated[float, Ge(0.0)]
Share = Annotated[float, Ge(0.0), Le(1.0)]
PositiveShare = Annotated[float, Gt(0.0), Le(1.0)]
OpenShare = Annotated[float, Gt(0.0), Lt(1.0)]
Count = Annotated[int, Ge(1)]
CountOrZero = Annotated[int, Ge(0)]

# From the values of all parameters, by name, to what is wrong with them; empty: nothing.
Rule = Callable[[Mapping[str, Any]], str]  # Any: a parameter of any type


def below(low: str, high: str) -> Rule:
    """Return the rule that one parameter is less than another."""
    return lambda values: "" if values[low] < values[high] else f"{low} must be below {high}"


def at_most(low: str, high: str) -> Rule:
    """Return the rule that one parameter does not exceed another."""
    return lambda values: "" if values[low] <= values[high] else f"{low} must not exceed {high}"


def between(name: str, low: str, high: str) -> Rule:
    """Return the rule that one parameter lies between two others, or on one of them."""
    return lambda values: (
        "" if values[low] <= values[name] <= values[high] else f"{name} must lie between {low} and {high}"
    )
