"""Read series from tables (CSV of any kind, Parquet, kubectl's) and from the JSON of monitoring systems."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scenarios.errors import UserError, nearest
from scenarios.judge.answers import answered, named
from scenarios.judge.numbers import EPOCHS, FIRST_EPOCH_S
from scenarios.judge.tables import series_of, table_of
from scenarios.verdict.types import Floats

STANDARD_INPUT = Path("-")


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """A series as it was read: instants in seconds from its file's first, rising; values finite.

    `notes` say what was repaired while reading, and how often; `epoch_s` is the epoch of instant 0, where it is known.
    """

    name: str
    t_s: Floats
    values: Floats
    notes: tuple[str, ...] = ()
    epoch_s: float | None = None


def read_series(
    path: Path, *, time: str | None = None, columns: Sequence[str] = (), by: Sequence[str] = ()
) -> list[Raw]:
    """Read every numeric series of a file.

    Parameters
    ----------
    path : Path
        A table (`.parquet`, or text: one row an instant and one column a series, or a long table with columns of
        labels), the JSON of Prometheus, Grafana or Datadog, or `-` for standard input.
    time : str, optional
        Column of the instants: seconds, an epoch, dates, times of day. By default one with a usual name or the first.
    columns : sequence of str
        Keep these only; empty keeps all. In a long table the name of the value column, or of one of its series.
    by : sequence of str
        Columns that tell the series of a long table apart; by default they are found.

    Raises
    ------
    UserError
        When the file cannot be read, holds no series, or lacks a column that was asked for.
    """
    if path == STANDARD_INPUT:
        text: str | None = sys.stdin.read()
    elif not path.is_file():
        raise UserError(f"{path}: {'is a folder; name a file' if path.is_dir() else 'no such file'}")
    else:
        text = None if path.suffix == ".parquet" else _text(path)
    left_out: list[str] = []
    if text is not None and (path.suffix == ".json" or text.lstrip()[:1] in ("{", "[")):
        series = [_tidy(name, at, values, []) for name, at, values in answered(path, text)]
    else:
        table = _parquet(path) if text is None else table_of(path, text)
        columns_of, left_out = series_of(path, table, time, columns, by)
        series = [_tidy(*columns_) for columns_ in columns_of]
    kept = [raw for raw in series if not columns or {raw.name, raw.name.split("{")[0]} & set(columns)]
    names = [raw.name for raw in series]
    for name in columns:
        if name in left_out:
            raise UserError(f"{path}: column `{name}` holds words, no numbers")
        if name not in names and name not in {columns_.split("{")[0] for columns_ in names}:
            raise UserError(f"{path}: no series `{name}`{nearest(name, names)}; there are {', '.join(names[:8])}")
    if not kept:
        raise UserError(f"{path}: holds no numeric series beside the time column")
    return _from_zero(kept)


def series_from(results: Sequence[Mapping[str, Any]]) -> list[Raw]:  # Any: what JSON holds
    """Return the series of a Prometheus range query, named by the labels that tell them apart.

    Raises
    ------
    ValueError, KeyError, TypeError, AttributeError
        They are not as Prometheus states them.
    """
    return _from_zero([_tidy(name, at, values, []) for name, at, values in named({"result": results})])


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (UnicodeDecodeError, OSError) as error:
        raise UserError(f"{path}: not a readable text: {str(error).splitlines()[0]}") from None


def _parquet(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path)
    except (ValueError, OSError) as error:
        raise UserError(f"{path}: not a readable Parquet file: {str(error).splitlines()[0]}") from None


def _tidy(name: str, at: Floats, values: Floats, notes: list[str]) -> Raw:
    known = np.isfinite(at) & np.isfinite(values)
    notes = list(notes)
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
    epoch_s = first if FIRST_EPOCH_S < first < EPOCHS[-1][0] else None
    return [replace(raw, t_s=raw.t_s - first, epoch_s=epoch_s) for raw in series]
