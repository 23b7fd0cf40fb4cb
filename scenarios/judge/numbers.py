"""Cells as people and dashboards write them: numbers with units, gaps in words, instants."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd

from scenarios.errors import UserError
from scenarios.verdict.types import Floats

GAPS = frozenset({"", "-", "--", "<unknown>", "unknown", "<nil>", "<none>", "n/a", "na", "nan", "null", "none"}) | {
    "undefined",
    "no data",
}
# What a number may be followed by: SI and binary multiples, shares, spans; what counts (req/s, bytes) is left as it is.
UNITS = {
    **dict.fromkeys(("", "b", "s", "sec", "bytes", "/s", "req/s", "reqs/s", "rps", "ops/s", "tok/s", "tokens/s"), 1.0),
    **dict.fromkeys(("k", "K", "kB", "KB"), 1e3),
    **dict.fromkeys(("M", "Mil", "MB"), 1e6),
    **dict.fromkeys(("G", "Bil", "GB"), 1e9),
    **dict.fromkeys(("T", "Tri", "TB"), 1e12),
    **dict.fromkeys(("Ki", "KiB"), 2.0**10),
    **dict.fromkeys(("Mi", "MiB"), 2.0**20),
    **dict.fromkeys(("Gi", "GiB"), 2.0**30),
    **dict.fromkeys(("Ti", "TiB"), 2.0**40),
    **dict.fromkeys(("m", "ms"), 1e-3),  # Kubernetes writes 250m for a quarter
    **dict.fromkeys(("us", "µs", "μs"), 1e-6),
    "B": 1.0,
    "ns": 1e-9,
    "%": 1e-2,
    **dict.fromkeys(("min", "mins"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
}
CELL = re.compile(r"^([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(\D*)$")
DECIMAL_COMMA = re.compile(r"^[-+]?(\d{1,3}(\.\d{3})+|\d+),\d+(?=\D*$)")
CLOCK = re.compile(r"^\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?$")
AGE = re.compile(r"^(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$")
DAY_MONTH = re.compile(r"^(\d{1,2})([/.-])(\d{1,2})\2\d{4}")
DAY_S = 86400.0
# Numbers beyond these are epochs in milliseconds, microseconds, nanoseconds (all after 2001).
EPOCHS = ((1e18, 1e-9), (1e15, 1e-6), (1e12, 1e-3))
FIRST_EPOCH_S = 1e9


def numbers(column: pd.Series) -> tuple[Floats, list[int]]:
    """Return the values of a column (NaN in gaps), and the places of cells that are neither numbers nor gaps."""
    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(dtype=np.float64, na_value=np.nan), []
    text = column.astype("string").fillna("").str.strip()
    values = pd.to_numeric(text, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    wrong = []
    for place in np.flatnonzero(np.isnan(values)).tolist():
        cell = str(text.iloc[place])
        if cell.lower() in GAPS:
            continue
        if (value := number(cell)) is None:
            wrong.append(place)
        else:
            values[place] = value
    return values, wrong


def number(cell: str) -> float | None:
    """Return the number in a cell such as `1.2 K`, `35%`, `250m` or `1.234,5`; None: it holds none."""
    if DECIMAL_COMMA.match(cell):
        cell = cell.replace(".", "").replace(",", ".")
    parts = CELL.match(cell)
    if parts is None:
        return None
    factor = UNITS.get(parts.group(2).strip(), UNITS.get(parts.group(2).strip().lower()))
    return None if factor is None else float(parts.group(1)) * factor


def seconds(path: Path, name: str, column: pd.Series) -> Floats:
    """Return a time column in seconds: seconds, epochs of any unit, dates, times of day, or ages such as 3h5m."""
    text = column.astype("string").fillna("").str.strip()
    plain, wrong = numbers(column) if pd.api.types.is_numeric_dtype(column) else numbers(text)
    if np.isfinite(plain).mean() > 0.9 and not wrong:
        largest = float(np.nanmax(np.abs(plain)))
        return np.asarray(plain * next((factor for least, factor in EPOCHS if largest >= least), 1.0))
    known = text[text.str.lower().isin(GAPS) == False]  # noqa: E712  (pandas)
    if len(known) and known.str.match(CLOCK).all():
        return _clock(text)
    if len(known) and known.str.match(AGE).all():
        return text.map(_age_s).to_numpy(dtype=np.float64)
    dates = _dates(text)
    bad = np.flatnonzero(dates.isna().to_numpy() & ~text.str.lower().isin(GAPS).to_numpy(dtype=bool))
    if len(bad):
        row, value = int(bad[0]) + 2, column.iloc[int(bad[0])]
        raise UserError(f"{path}: row {row}, column `{name}`: `{value}` is neither seconds nor a date")
    stamps = dates.dt.tz_localize(None)
    return np.where(dates.isna(), np.nan, stamps.to_numpy(dtype="datetime64[ns]").astype(np.int64) * 1e-9)


def _clock(text: pd.Series) -> Floats:
    parts = text.str.replace(",", ".").str.split(":", expand=True).reindex(columns=[0, 1, 2])
    hours, minutes, rest = (pd.to_numeric(parts[k], errors="coerce") for k in (0, 1, 2))
    of_day = (3600 * hours + 60 * minutes + rest.fillna(0.0)).to_numpy(dtype=np.float64, na_value=np.nan)
    known = np.flatnonzero(np.isfinite(of_day))
    # A time of day that falls by more than half a day has gone past midnight.
    days = np.concatenate([[0], np.cumsum(np.diff(of_day[known]) < -DAY_S / 2)]) if len(known) else np.empty(0)
    of_day[known] += DAY_S * days
    return of_day


def _age_s(cell: str) -> float:
    age = AGE.match(cell)
    parts = [int(part or 0) for part in age.groups()] if age and cell else None
    return float("nan") if parts is None else float(np.dot(parts, (86400, 3600, 60, 1)))


def _dates(text: pd.Series) -> pd.Series:
    parts = text.str.extract(DAY_MONTH)
    day_first = False
    if parts[0].notna().mean() > 0.5:
        first, second = pd.to_numeric(parts[0]).dropna(), pd.to_numeric(parts[2]).dropna()
        day_first = bool(first.max() > 12)
        if not day_first and second.max() <= 12:
            # Either order fits: dots are written day first; else the order in which time does not go back is taken.
            month = _parsed(text, False)
            day_first = bool((parts[1] == ".").any()) or not month.dropna().is_monotonic_increasing
            day_first = day_first and bool(_parsed(text, True).dropna().is_monotonic_increasing)
    return _parsed(text, day_first)


def _parsed(text: pd.Series, day_first: bool) -> pd.Series:
    gaps = text.str.lower().isin(GAPS)
    return pd.to_datetime(text.mask(gaps), errors="coerce", utc=True, format="mixed", dayfirst=day_first)
