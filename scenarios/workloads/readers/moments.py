"""Calendar stamps of traces: seconds since 1970, on one clock for the whole file."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from scenarios.workloads.repairs import Repairs

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(text: str) -> tuple[float, bool] | None:
    """Return (seconds since 1970, whether an offset from UTC is stated) of an ISO stamp, or None where it is none.

    Any number of fractional digits is read (Azure writes seven); without an offset the stamp is taken as UTC.
    """
    integral, _, remainder = text.strip().partition(".")
    digits = remainder[: len(remainder) - len(remainder.lstrip("0123456789"))]
    try:
        at = datetime.fromisoformat(integral + remainder[len(digits) :])
    except ValueError:
        return None
    stated = at.tzinfo is not None
    whole_s = ((at if stated else at.replace(tzinfo=UTC)) - EPOCH) / timedelta(seconds=1)
    return whole_s + (float(f"0.{digits}") if digits else 0.0), stated


class Moments:
    """Read the stamps of one file; stamps with and without an offset from UTC are two clocks, which is a defect."""

    def __init__(self, repairs: Repairs) -> None:
        self._repairs = repairs
        self._stated: bool | None = None

    def seconds(self, value: Any, key: str, at: str) -> float:
        """Return seconds since 1970 of a stamp."""
        read = moment(value) if isinstance(value, str) else None
        if read is None:
            problem = f"{value!r}; a time such as 2026-01-31T18:17:03.979+00:00 was expected"
            raise self._repairs.rejection(f"{key} not a time", f"{at}: {key}", problem)
        at_s, stated = read
        if self._stated is None:
            self._stated = stated
        if stated != self._stated:
            problem = f"{value!r} and the rows before it: with and without an offset from UTC, so on two clocks"
            raise self._repairs.rejection("two clocks", f"{at}: {key}", problem)
        return at_s
