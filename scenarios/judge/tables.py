"""Tables of series: delimited text of any kind, Parquet, and what `kubectl get hpa -w` prints; wide or long."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from scenarios.errors import UserError, nearest
from scenarios.judge.numbers import numbers, seconds
from scenarios.verdict.types import Floats

TIME_NAMES = ("t_s", "time_s", "t", "time", "timestamp", "ts", "date", "datetime", "_time", "at")
LABEL_NAMES = re.compile(
    r"^(host|pod|node|instance|name|namespace|series|metric|container|deployment|label|service|job|region|model|group|"
    r"pool|cluster|zone|id|.*_(id|name))$",
    re.IGNORECASE,
)
HPA_HEADER = ("NAME", "REFERENCE", "TARGETS")
# Instants that come again in so many rows make a long table; a label column tells its rows apart.
REPEATED_RATIO, TOLD_APART_RATIO, MOST_LABELS = 0.1, 0.98, 500
Columns = list[tuple[str, Floats, Floats, list[str]]]


def table_of(path: Path, text: str) -> pd.DataFrame:
    """Return the table in a text: `,` `;` tab or `|` between cells, or columns in line as kubectl prints them."""
    lines = [line for line in text.lstrip("\ufeff").splitlines() if line.strip() and not line.startswith("#")]
    if lines and lines[0].lower().startswith("sep="):  # a hint for spreadsheets, in Grafana's exports
        lines = lines[1:]
    if not lines:
        raise UserError(f"{path}: holds no line; a header and one row an instant are needed")
    if all(word in lines[0] for word in HPA_HEADER):
        return _kubectl(lines)
    try:
        mark = csv.Sniffer().sniff("\n".join(lines[:20]), delimiters=",;\t|").delimiter
    except csv.Error:
        mark = ","
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            # Without `index_col`, lines longer than the header would take their first field for a label of the row.
            source = io.StringIO("\n".join(lines))
            return pd.read_csv(
                source,
                sep=mark,
                skipinitialspace=True,
                index_col=False,
                keep_default_na=False,
                na_values=[""],
                dtype=str,
            )
    except pd.errors.ParserWarning:
        raise UserError(f"{path}: lines hold more fields than the header names; a name a column is needed") from None
    except (ValueError, csv.Error) as error:
        raise UserError(f"{path}: not a readable CSV with a header line: {str(error).splitlines()[0]}") from None


def _kubectl(lines: Sequence[str]) -> pd.DataFrame:
    # Columns are parted by two spaces or more; a header may come again; the age of the object is the clock.
    names = re.split(r"\s{2,}", lines[0].strip())
    rows = [re.split(r"\s{2,}", line.strip()) for line in lines[1:] if not line.startswith(HPA_HEADER[0])]
    table = pd.DataFrame([row for row in rows if len(row) == len(names)], columns=names)
    kept = {"time": table["AGE"], "name": table["NAME"], "replicas": table["REPLICAS"]}
    parts = table["TARGETS"].str.extract(r"^(?:\w+: )?([^/]+)/")
    return pd.DataFrame({**kept, "target": parts[0]})


def series_of(
    path: Path, table: pd.DataFrame, time: str | None, columns: Sequence[str] = (), by: Sequence[str] = ()
) -> tuple[Columns, list[str]]:
    """Return name, instants, values and notes of each series of a table, and the names of columns without numbers.

    A long table, in which instants come again, is split by its label columns (`by`, or those that tell its rows apart).
    """
    if len(table.columns) < 2:
        raise UserError(f"{path}: one column is not enough: a time column and at least one series are needed")
    if table.empty:
        raise UserError(f"{path}: holds no row; a header and one row an instant are needed")
    table = table.rename(columns=lambda name: str(name).strip())
    names = list(table.columns)
    for asked in (*([time] if time else []), *by):
        if asked not in names:
            raise UserError(f"{path}: no column `{asked}`{nearest(asked, names)}; there are {', '.join(names[:8])}")
    clock = time or next((name for name in names if name.lower() in TIME_NAMES), names[0])
    at = seconds(path, clock, table[clock])
    values: dict[str, Floats] = {}
    words = []
    for name in names:
        if name == clock or name in by:
            continue
        cells, wrong = numbers(table[name])
        if len(wrong) and (len(wrong) > 0.5 * len(table) or not np.isfinite(cells).any()):
            words.append(name)
        elif len(wrong) and (not columns or name in columns):
            raise UserError(
                f"{path}: row {wrong[0] + 2}, column `{name}`: `{table[name].iloc[wrong[0]]}` is not a number; "
                "leave a gap empty"
            )
        elif np.isfinite(cells).any():
            values[name] = cells
    labels = list(by) or _labels(path, table, at, words, values)
    columns_of_series: Columns = []
    parts = table.groupby(labels, sort=True, dropna=False).indices if labels else {(): np.arange(len(table))}
    for key, rows in parts.items():
        label_values = dict(zip(labels, key if isinstance(key, tuple) else (key,)))
        shown = ",".join(f'{label}="{value}"' for label, value in label_values.items())
        for name, cells in values.items():
            if name not in labels and np.isfinite(cells[rows]).any():
                columns_of_series.append((f"{name}{{{shown}}}" if shown else name, at[rows], cells[rows], []))
    return columns_of_series, [name for name in words if name not in labels]


def _labels(path: Path, table: pd.DataFrame, at: Floats, words: list[str], values: dict[str, Floats]) -> list[str]:
    """Return the columns whose values tell the series of a long table apart; none for a wide one."""
    known = np.isfinite(at)
    instants = len(np.unique(at[known]))
    repeated = 1 - instants / max(int(known.sum()), 1)
    named = [name for name in words if LABEL_NAMES.match(name) and 1 < table[name].nunique() <= MOST_LABELS]
    if repeated < REPEATED_RATIO:
        return [name for name in named if table[name].nunique() <= max(len(table) // 8, 1)]
    few = [name for name in words if 1 < table[name].nunique() <= MOST_LABELS]
    # A number may be a label too (a shard, a rank): where each of its values comes at most of the instants.
    few += [name for name, cells in values.items() if len(values) > 1 and _is_panel(cells, at, instants)]
    chosen: list[str] = []
    for name in sorted(few, key=lambda label: (label not in named, label not in words)):
        if _told_apart(table, at, chosen) >= TOLD_APART_RATIO:
            break
        if _told_apart(table, at, [*chosen, name]) > _told_apart(table, at, chosen) + 0.01:
            chosen.append(name)
    if _told_apart(table, at, chosen) < TOLD_APART_RATIO:
        raise UserError(
            f"{path}: {repeated:.0%} of the rows come at an instant that another row has, and no column of labels "
            "tells their series apart; name it with --by COLUMN, or give one row an instant"
        )
    return chosen


def _told_apart(table: pd.DataFrame, at: Floats, labels: Sequence[str]) -> float:
    keys = pd.DataFrame({"at": at, **{name: table[name].to_numpy() for name in labels}})
    return 1 - float(keys.duplicated().mean())


def _is_panel(cells: Floats, at: Floats, instants: int) -> bool:
    distinct, counts = np.unique(cells[np.isfinite(cells)], return_counts=True)
    integers = bool(np.all(distinct == np.round(distinct)))
    return integers and 1 < len(distinct) <= MOST_LABELS and bool(np.all(counts > 0.5 * instants))
