"""Read series from a CSV, a Parquet file, or the JSON answer of a Prometheus range query."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scenarios.errors import UserError, nearest
from scenarios.verdict.types import Floats

TIME_NAMES = ("t_s", "time_s", "t", "time", "timestamp", "ts", "date", "datetime")
# Numbers beyond these are epochs in milliseconds, microseconds, nanoseconds (all after 2001).
EPOCHS = ((1e18, 1e-9), (1e15, 1e-6), (1e12, 1e-3))


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """A series as it was read: instants in seconds from its file's first, rising; values finite.

    `notes` say what was repaired while reading, and how often.
    """

    name: str
    t_s: Floats
    values: Floats
    notes: tuple[str, ...] = ()


def read_series(path: Path, *, time: str | None = None, columns: Sequence[str] = ()) -> list[Raw]:
    """Read every numeric series of a file.

    Parameters
    ----------
    path : Path
        `.csv`, `.parquet` (one row an instant, one column a series) or `.json` (a Prometheus range query).
    time : str, optional
        Column of the instants: seconds, an epoch, or dates. By default one with a usual name, else the first.
    columns : sequence of str
        Keep these only; empty keeps all.

    Raises
    ------
    UserError
        When the file cannot be read, holds no series, or lacks a column that was asked for.
    """
    if not path.is_file():
        raise UserError(f"{path}: {'is a folder; name a file' if path.is_dir() else 'no such file'}")
    readers = {".csv": _csv, ".parquet": _parquet}
    if path.suffix == ".json":
        series = _prometheus(path)
    elif path.suffix in readers:
        series = _columns(path, readers[path.suffix](path), time)
    else:
        raise UserError(f"{path}: `{path.suffix}` is not understood; give a .csv, .parquet or .json (Prometheus) file")
    names = [raw.name for raw in series]
    for name in columns:
        if name not in names:
            raise UserError(f"{path}: no series `{name}`{nearest(name, names)}; there are {', '.join(names[:8])}")
    kept = [raw for raw in series if not columns or raw.name in columns]
    if not kept:
        raise UserError(f"{path}: holds no numeric series beside the time column")
    return kept


def _csv(path: Path) -> pd.DataFrame:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            # Without this, lines longer than the header would take their first field for a label of the row.
            return pd.read_csv(path, comment="#", skipinitialspace=True, index_col=False)
    except pd.errors.ParserWarning:
        raise UserError(f"{path}: lines hold more fields than the header names; a name a column is needed") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not a readable CSV with a header line: {str(error).splitlines()[0]}") from None


def _parquet(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path)
    except (ValueError, OSError) as error:
        raise UserError(f"{path}: not a readable Parquet file: {str(error).splitlines()[0]}") from None


def _columns(path: Path, table: pd.DataFrame, time: str | None) -> list[Raw]:
    if len(table.columns) < 2:
        raise UserError(f"{path}: one column is not enough: a time column and at least one series are needed")
    if table.empty:
        raise UserError(f"{path}: holds no row; a header and one row an instant are needed")
    names = [str(name) for name in table.columns]
    if time is not None and time not in names:
        raise UserError(f"{path}: no time column `{time}`{nearest(time, names)}")
    clock = time or next((name for name in names if name.lower() in TIME_NAMES), names[0])
    at = _seconds(path, clock, table[clock])
    series = []
    for name in names:
        if name == clock:
            continue
        values = pd.to_numeric(table[name], errors="coerce").to_numpy(dtype=np.float64)
        if not np.isfinite(values).any():  # labels
            continue
        words = np.flatnonzero(~np.isfinite(values) & table[name].notna().to_numpy())
        if len(words):
            row, value = int(words[0]) + 2, table[name].iloc[int(words[0])]
            raise UserError(f"{path}: row {row}, column `{name}`: `{value}` is not a number; leave a gap empty")
        series.append(_tidy(name, at, values))
    return _from_zero(series)


def _seconds(path: Path, name: str, column: pd.Series) -> Floats:
    plain = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64)
    if np.isfinite(plain).mean() > 0.9:
        largest = float(np.nanmax(np.abs(plain)))
        return np.asarray(plain * next((factor for least, factor in EPOCHS if largest >= least), 1.0))
    dates = pd.to_datetime(column, errors="coerce", utc=True, format="mixed")
    bad = np.flatnonzero(dates.isna())
    if len(bad):
        row, value = int(bad[0]) + 2, column.iloc[int(bad[0])]
        raise UserError(f"{path}: row {row}, column `{name}`: `{value}` is neither seconds nor a date")
    nanoseconds = dates.dt.tz_localize(None).to_numpy(dtype="datetime64[ns]").astype(np.int64)
    return np.asarray(nanoseconds * 1e-9)


def _prometheus(path: Path) -> list[Raw]:
    try:
        answer = json.loads(path.read_text(encoding="utf-8"))
        results = answer["data"]["result"] if "data" in answer else answer["result"]
        return series_of(results)
    except (ValueError, KeyError, TypeError, AttributeError, UnicodeDecodeError, RecursionError):
        raise UserError(
            f"{path}: not the answer of a Prometheus range query (a `matrix` under data.result, each with values)"
        ) from None


def series_of(results: Sequence[Mapping[str, Any]]) -> list[Raw]:  # Any: what JSON holds
    """Return the series of a Prometheus range query, named by the labels that tell them apart.

    Raises
    ------
    ValueError, KeyError, TypeError, AttributeError
        They are not as Prometheus states them.
    """
    pairs = [(dict(result["metric"]), result["values"]) for result in results]
    series = [(labels, np.array([[float(t), float(v)] for t, v in values])) for labels, values in pairs]
    shared = set.intersection(*({*labels.items()} for labels, _ in series)) if len(series) > 1 else set()
    return _from_zero(
        [_tidy(_label(labels, shared), xy[:, 0], xy[:, 1]) for labels, xy in series if xy.ndim == 2 and len(xy)]
    )


def _label(labels: Mapping[str, str], shared: set[tuple[str, str]]) -> str:
    # Only what tells the series apart, as Prometheus itself would write it.
    name = labels.get("__name__", "")
    all_labels = [f'{key}="{value}"' for key, value in sorted(labels.items()) if key != "__name__"]
    distinct = [
        f'{key}="{value}"' for key, value in sorted(labels.items()) if key != "__name__" and (key, value) not in shared
    ]
    shown = distinct if shared else all_labels
    return f"{name}{{{','.join(shown)}}}" if shown else name or "series"


def _tidy(name: str, at: Floats, values: Floats) -> Raw:
    known = np.isfinite(at) & np.isfinite(values)
    notes = []
    if lost := int(np.sum(~np.isfinite(at))):
        notes.append(f"{lost} rows without an instant left out")
    if empty := int(np.sum(np.isfinite(at) & ~np.isfinite(values))):
        notes.append(f"{empty} of {len(values)} values empty or not finite: left out")
    at, values = at[known], values[known]
    if back := int(np.sum(np.diff(at) < 0)):
        notes.append(f"time goes back {back} times: rows put in order")
    order = np.argsort(at, kind="stable")
    at, values = at[order], values[order]
    # Of several samples at one instant the last one stands.
    last = np.append(np.diff(at) > 0, True) if len(at) else np.empty(0, dtype=bool)
    if merged := int(np.sum(~last)):
        notes.append(f"{merged} samples at an instant that comes again left out: the last one stands")
    return Raw(name=name, t_s=at[last], values=values[last], notes=tuple(notes))


def _from_zero(series: list[Raw]) -> list[Raw]:
    starts = [float(raw.t_s[0]) for raw in series if len(raw.t_s)]
    first = min(starts, default=0.0)
    return [replace(raw, t_s=raw.t_s - first) for raw in series]
