"""From `times = {kind = "table", ...}` to fitted step times; rows that hold no measurement are refused."""

from __future__ import annotations

import csv
import functools
import hashlib
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np

from orchestrator.messages import DECODES, FILLS, Role
from plant.model.kernels import Array
from plant.model.measured import MeasuredTimes
from scenarios.errors import UserError, nearest
from scenarios.schema.plants import ClusterPlant
from scenarios.schema.scenario import Scenario
from scenarios.schema.table_times import TableTimes
from scenarios.writing import reason

STEP_COLUMNS = ("batch", "kv_tokens", "step_s")
FILL_COLUMNS = ("new_tokens", "cached_tokens", "batch", "kv_tokens", "pass_s")
_KNOWN = dict.fromkeys((*STEP_COLUMNS, *FILL_COLUMNS))
# The least value of each column; seconds are above it, the others may equal it.
_LEAST = {"batch": 0.0, "kv_tokens": 0.0, "step_s": 0.0, "new_tokens": 1.0, "cached_tokens": 0.0, "pass_s": 0.0}


Rows = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRows:
    """Rows of the files of one configuration: steps (batch, KV, seconds) and fills, and the SHA-256 of each file."""

    steps: Rows
    fills: Rows
    sha256: Mapping[str, str]


def read_rows(times: TableTimes) -> MeasuredRows:
    """Read the files.

    Raises
    ------
    UserError
        In one line with the file and its line: a file that is absent, a column that is missing, an empty cell, a
        value that is no number or too small.
    """
    steps: list[tuple[float, ...]] = []
    fills: list[tuple[float, ...]] = []
    sha256: dict[str, str] = {}
    for path in dict.fromkeys(p for p in (times.file, times.fills) if p is not None):
        try:
            content = path.read_bytes()
            text = content.decode("utf-8-sig")
        except OSError as error:
            raise UserError(f"{path}: cannot be read: {reason(error)}") from error
        except UnicodeDecodeError as error:
            raise UserError(f"{path}: is no text in UTF-8 (byte {error.start}); a CSV file was expected") from error
        sha256[path.name] = hashlib.sha256(content).hexdigest()
        _read(path.name, text, steps, fills)
    return MeasuredRows(steps=tuple(steps), fills=tuple(fills), sha256=sha256)


def _read(name: str, text: str, steps: list[tuple[float, ...]], fills: list[tuple[float, ...]]) -> None:
    table = csv.DictReader(text.splitlines(), skipinitialspace=True)
    heads = [head.strip() for head in table.fieldnames or ()]
    table.fieldnames = heads
    unknown = next((head for head in heads if head not in _KNOWN), None)
    if unknown is not None:
        raise UserError(f"{name}: column `{unknown}` is unknown{nearest(unknown, _KNOWN)}; known: {', '.join(_KNOWN)}")
    wanted = STEP_COLUMNS if "step_s" in heads or "pass_s" not in heads else ("new_tokens", "cached_tokens", "pass_s")
    missing = [column for column in wanted if column not in heads]
    if missing:
        raise UserError(f"{name}: column {missing[0]} is missing; a table has {', '.join(wanted)}")
    for row in table:
        place = f"{name}, line {table.line_num}"
        if None in row:
            raise UserError(f"{place}: more cells than the {len(heads)} columns")
        if (row.get("pass_s") or "").strip():
            given = {"batch": "0", "kv_tokens": "0", **{k: v for k, v in row.items() if (v or "").strip()}}
            fills.append(tuple(_number(place, column, given.get(column)) for column in FILL_COLUMNS))
        else:
            steps.append(tuple(_number(place, column, row.get(column)) for column in STEP_COLUMNS))
            if steps[-1][0] < 1.0:
                raise UserError(f"{place}: batch = {steps[-1][0]:g} of a step; at least 1 would do")
    if not steps and not fills:
        raise UserError(f"{name}: holds no rows; a table has {', '.join(wanted)}")


def _number(place: str, column: str, text: str | None) -> float:
    if text is None or not text.strip():
        raise UserError(f"{place}: {column} is empty; every row needs it")
    try:
        value = float(text)
    except ValueError:
        raise UserError(f"{place}: {column} = {text.strip()} is no number") from None
    least, seconds = _LEAST[column], column.endswith("_s")
    if not math.isfinite(value) or value < least or (seconds and value == 0.0):
        raise UserError(f"{place}: {column} = {value:g}; {'more than' if seconds else 'at least'} {least:g} would do")
    return value


def build_measured_times(times: TableTimes, role: Role, slots: int) -> MeasuredTimes:
    """Return fitted step times for a worker of `role` with `slots`.

    Raises
    ------
    UserError
        As `read_rows` does, and for rows that the role needs and the files lack.
    """
    rows = read_rows(times)
    if role in DECODES and not rows.steps:
        raise UserError(f"{times.file.name}: the role {role.value} needs rows of {', '.join(STEP_COLUMNS)}")
    if role in FILLS and not any(row[2] == 0.0 for row in rows.fills):
        raise UserError(
            f"{times.file.name}: the role {role.value} needs rows of new_tokens, cached_tokens, pass_s without a batch"
        )
    steps, fills = rows.steps if role in DECODES else (), rows.fills if role in FILLS else ()
    fitted = _fitted(steps, fills, times.outside == "extrapolate", max(slots, 1))
    hull = fitted.decode_hull
    if hull is not None and times.outside == "error" and slots > hull.points[-1][0]:
        raise UserError(
            f"slots = {slots} exceed the largest measured batch of {hull.points[-1][0]:g} in {times.file.name}; "
            'measure it, lower slots, or set outside = "extrapolate"'
        )
    return fitted


@functools.lru_cache(maxsize=16)
def _fitted(steps: Rows, fills: Rows, extrapolate: bool, max_batch: int) -> MeasuredTimes:
    decode, fill = _columns(steps, 3), _columns(fills, 5)
    return MeasuredTimes(
        (decode[0], decode[1], decode[2]) if steps else None,
        (fill[0], fill[1], fill[2], fill[3], fill[4]) if fills else None,
        extrapolate=extrapolate,
        max_batch=max_batch,
    )


def _columns(rows: Rows, width: int) -> tuple[Array, ...]:
    return tuple(np.asarray(rows, dtype=float).reshape(-1, width).T)


def measured_facts(scenario: Scenario) -> dict[str, object]:
    """Return, by configuration with a table, its files' digests, the measured region and how well the fit meets it."""
    facts: dict[str, object] = {}
    if not isinstance(scenario.plant, ClusterPlant):
        return facts
    for name, configuration in scenario.plant.configurations.items():
        if isinstance(configuration.times, TableTimes):
            fitted = build_measured_times(configuration.times, configuration.role, configuration.slots or 1)
            hulls = {"decode": fitted.decode_hull, "fill": fitted.fill_hull}
            errors = {"decode": fitted.decode_error, "fill": fitted.fill_error}
            facts[name] = {
                "sha256": dict(read_rows(configuration.times).sha256),
                "outside": configuration.times.outside,
                "measured": {key: hull.text() for key, hull in hulls.items() if hull is not None},
                "fit": {key: asdict(error) for key, error in errors.items() if error is not None},
                "mixed_ratio": fitted.mixed_ratio,
            }
    return facts


def extrapolation_warnings(facts: Mapping[str, object]) -> list[str]:
    """Return one line for each configuration whose table is extrapolated where it holds no rows."""
    lines = []
    for name, fact in facts.items():
        assert isinstance(fact, dict)
        if fact["outside"] == "extrapolate":
            region = "; ".join(f"{key}: {text}" for key, text in fact["measured"].items())
            lines.append(f"times of {name} are extrapolated outside their measurements ({region})")
    return lines
