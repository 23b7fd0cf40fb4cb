"""Validate single fields of a row; errors name the field, its place and the expected value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from scenarios.workloads.repairs import Repairs

MOST_TOKENS = 10**9
"""A hundred times the longest context that is served (10 M tokens); a larger count is no length."""
CHARACTERS_PER_TOKEN, ASSUMED_OUTPUT_TOKENS = 4, 128
"""Where a trace holds texts or no output length: the common rule of thumb for English, and AIPerf's default."""
LATEST_S = 1e11
"""About 3,000 years; no stamp or wait in seconds is larger, but one in milliseconds since 1970 is."""
NO_NAMES = frozenset({"", "nan", "null", "none"})
"""How tables write a missing name."""


def integer(row: Mapping[str, Any], key: str, at: str, repairs: Repairs, least: int) -> int:
    """Return a required integer that is at least `least` (0 or 1)."""
    value = row.get(key)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        what = "missing" if value is None else f"{value!r}"
        raise repairs.rejection(f"{key} missing", f"{at}: {key}", f"{what}; an integer number of tokens was expected")
    if value < least:
        kind = f"{key} negative" if value < 0 else f"{key} zero"
        raise repairs.rejection(kind, f"{at}: {key}", f"{value}; at least {least} was expected")
    if value > MOST_TOKENS:
        raise repairs.rejection(f"{key} too large", f"{at}: {key}", f"{value}; at most {MOST_TOKENS:,} was expected")
    return value


def output(row: Mapping[str, Any], key: str, at: str, repairs: Repairs) -> int:
    """Return an output length: 0 is a defect that is repaired to 1, as an answer has at least its end token."""
    tokens = integer(row, key, at, repairs, 0)
    if tokens == 0:
        repairs.repair("output zero", f"{at}: {key}", "0 output tokens; at least 1 was expected", "taken as 1 token")
        return 1
    return tokens


def prompt(row: Mapping[str, Any], key: str, text_key: str, at: str, repairs: Repairs) -> int:
    """Return a prompt's length, from the length of its text where only that is given; then it is counted."""
    if row.get(key) is None and isinstance(row.get(text_key), str):
        return tokens_of_text(row[text_key], at, repairs)
    return integer(row, key, at, repairs, 1)


def tokens_of_text(text: str, at: str, repairs: Repairs) -> int:
    """Return the length of a text, from its characters."""
    repairs.note("lengths from characters", at, f"{CHARACTERS_PER_TOKEN} characters taken for a token")
    return max(1, len(text) // CHARACTERS_PER_TOKEN)


def output_or_assumed(row: Mapping[str, Any], key: str, at: str, repairs: Repairs) -> int:
    """Return an output length; where it is absent, the assumed one, counted."""
    if row.get(key) is not None:
        return output(row, key, at, repairs)
    repairs.note(f"{key} absent", at, f"taken as {ASSUMED_OUTPUT_TOKENS} tokens")
    return ASSUMED_OUTPUT_TOKENS


def seconds(row: Mapping[str, Any], key: str, at: str, repairs: Repairs, unit_s: float = 1.0) -> float | None:
    """Return an optional time in seconds; None where absent or null. Not finite is an error, negative is kept."""
    value = row.get(key)
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise repairs.rejection(f"{key} not a time", f"{at}: {key}", f"{value!r}; a finite number was expected")
    value_s = value * unit_s
    if abs(value_s) > LATEST_S:
        problem = f"{value!r} is {value_s:.3g} s; at most {LATEST_S:g} s was expected (is the unit of time right?)"
        raise repairs.rejection(f"{key} not a time", f"{at}: {key}", problem)
    return value_s


def wait(row: Mapping[str, Any], key: str, at: str, repairs: Repairs, unit_s: float = 1.0) -> float | None:
    """Return an optional duration in seconds; a negative one is a defect and is taken as missing."""
    wait_s = seconds(row, key, at, repairs, unit_s)
    if wait_s is not None and wait_s < 0.0:
        repairs.repair(f"{key} negative", f"{at}: {key}", f"{wait_s:g} s", "taken as missing")
        return None
    return wait_s


def name(row: Mapping[str, Any], key: str) -> str | None:
    """Return a name as text; None where it is absent, null or empty: rows without a name have nothing in common."""
    value = row.get(key)
    text = "" if value is None else str(value).strip()
    return None if text.lower() in NO_NAMES else text
