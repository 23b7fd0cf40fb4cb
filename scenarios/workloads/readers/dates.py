"""Times of a table's column: numbers in a stated unit, or calendar dates, by pandas for the whole column at once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from scenarios.errors import UserError

OFFSET = re.compile(r"(?:Z|[+-]\d\d:?\d\d)$")
DAY_OR_MONTH_FIRST = r"^(\d{1,2})([/.-])(\d{1,2})[/.-](\d{4}|\d{2})(\D.*|)$"


def seconds_of(column: Sequence[object], unit_s: float, places: Sequence[str]) -> NDArray[np.float64]:
    """Return seconds of a column of times.

    Parameters
    ----------
    column : sequence
        Numbers, texts of numbers, dates or texts of dates.
    unit_s : float
        What a number counts, seconds.
    places : sequence of str
        File and line of each value, for errors.

    Raises
    ------
    UserError
        A value is no time, some dates state an offset from UTC and others do not, or it cannot be known whether days
        or months come first.
    """
    texts = [value.isoformat() if isinstance(value, datetime) else str(value).strip() for value in column]
    numbers = np.asarray(pd.to_numeric(pd.Series(texts), errors="coerce"), dtype=np.float64)
    if np.isfinite(numbers).all():
        return numbers * unit_s
    if np.isfinite(numbers).any():
        odd = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise UserError(f"{places[odd]}: {texts[odd]!r} is no number, and other times of the column are")
    stated = [bool(OFFSET.search(text)) for text in texts]
    if any(stated) and not all(stated):
        raise UserError(f"{places[stated.index(not stated[0])]}: times with and without an offset from UTC: two clocks")
    parts = pd.Series(texts).str.extract(DAY_OR_MONTH_FIRST)
    if parts.isna().any(axis=None):
        return _seconds(_parsed(pd.Series(texts)), texts, places)
    year = parts[3].where(parts[3].str.len() == 4, "20" + parts[3])
    day_first = _parsed(year + "-" + parts[2] + "-" + parts[0] + parts[4])
    month_first = _parsed(year + "-" + parts[0] + "-" + parts[2] + parts[4])
    readings = [reading for reading in (month_first, day_first) if not reading.isna().any()]
    since = [reading - reading.iloc[0] for reading in readings]
    if len(readings) == 2 and not since[0].equals(since[1]):  # where intervals agree, either reading will do
        readings = [reading for reading in readings if reading.is_monotonic_increasing]
        if len(readings) != 1:
            raise UserError(
                f"{places[0]}: {texts[0]!r}: day first or month first? Both are possible in the whole column; "
                "write dates as 2026-01-31"
            )
    return _seconds(readings[0] if readings else month_first, texts, places)


def _parsed(texts: pd.Series[str]) -> pd.Series[pd.Timestamp]:
    return pd.to_datetime(texts, format="mixed", utc=True, errors="coerce")


def _seconds(read: pd.Series[pd.Timestamp], texts: list[str], places: Sequence[str]) -> NDArray[np.float64]:
    missing = np.flatnonzero(np.asarray(read.isna()))
    if len(missing):
        raise UserError(f"{places[int(missing[0])]}: {texts[int(missing[0])]!r} is no time as the other rows have")
    elapsed_s = (read - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)
    return np.asarray(elapsed_s, dtype=np.float64)
