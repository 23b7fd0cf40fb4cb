"""Read any table of requests by its columns: CSV (comma, semicolon or tab), JSONL or Parquet.

    --columns arrived=ts,input=prompt_len,output=gen_len,session=chat_id,unit=ms

Fields: `arrived` [time: a number in `unit`, or a date], `input`, `output` [tokens], and, optional, `session` (rows of
one name follow each other), `turn` (their order), `end` [time of the last token] or `service` [`unit`], `ids` (a list
of block ids), `unit` (s, ms, us, ns; seconds where not stated). A dot reaches into a JSON object: `input=usage.prompt`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pyarrow.parquet as pq

from scenarios.errors import UserError, nearest
from scenarios.workloads.corpus import Corpus
from scenarios.workloads.readers import fields, files, rows
from scenarios.workloads.readers.block_ids import BlockIds
from scenarios.workloads.readers.dates import seconds_of
from scenarios.workloads.readers.plain_rows import PlainRow, corpus_of
from scenarios.workloads.readers.rows import UNITS_S, ReadOptions, TimeUnit
from scenarios.workloads.repairs import Repairs, Skip

FORMAT = "table"
FIELDS = ("arrived", "input", "output", "session", "turn", "end", "service", "ids")
REQUIRED = ("input", "output")


@dataclass(frozen=True, slots=True)
class Columns:
    """Which column holds which field, and the unit of times."""

    names: Mapping[str, str]
    unit_s: float = 1.0


def columns_of(text: str) -> Columns:
    """Parse `field=column,...`.

    Raises
    ------
    UserError
        A part is no pair, a field is not known or given twice, or a required one is missing.
    """
    names: dict[str, str] = {}
    unit_s = 1.0
    for part in text.split(","):
        field, equals, column = (piece.strip() for piece in part.partition("="))
        if not equals or not column:
            raise UserError(f"--columns: {part!r}; field=column was expected, such as input=prompt_len")
        if field == "unit":
            if column not in get_args(TimeUnit):
                raise UserError(f"--columns: unit={column}; one of {', '.join(get_args(TimeUnit))} was expected")
            unit_s = UNITS_S[column]  # type: ignore[index]  # checked against the literal's values
        elif field not in FIELDS:
            raise UserError(f"--columns: no field {field}{nearest(field, FIELDS)}; known: {', '.join(FIELDS)}, unit")
        elif field in names:
            raise UserError(f"--columns: {field} is given twice")
        else:
            names[field] = column
    missing = [field for field in REQUIRED if field not in names]
    if missing or not {"arrived", "session"} & set(names):
        raise UserError(
            f"--columns: {', '.join(missing) or 'arrived or session'} missing; input, output and one of "
            "arrived and session are required"
        )
    return Columns(names, unit_s)


def read(path: Path, options: ReadOptions) -> Corpus:
    """Read a table by the columns that the options state."""
    return read_columns(path, options, columns_of(options.columns or ""), FORMAT)


def read_columns(path: Path, options: ReadOptions, columns: Columns, form: str) -> Corpus:
    """Read a table by these columns."""
    repairs = Repairs(options.on_error)
    unit_s = options.unit_s(columns.unit_s)
    ids = BlockIds(repairs, options.block_tokens or 64, columns.names.get("ids", "ids"))
    listed: list[PlainRow] = []
    times: dict[str, list[object]] = {"arrived": [], "end": []}
    for at, row in _rows(path, repairs):
        cells = {field: _cell(row, column) for field, column in columns.names.items()}
        try:
            listed.append(_row(cells, columns, at, unit_s, ids, repairs))
        except Skip:
            continue
        for field in set(times) & set(columns.names):
            if cells[field] is None:
                raise UserError(f"{at}: {columns.names[field]}: missing; a time was expected")
            times[field].append(cells[field])
    _set_times(listed, times, columns, unit_s, repairs)
    ids.check(path)
    scope = "global" if "ids" in columns.names else "none"
    return corpus_of(listed, path, form, repairs, block_tokens=ids.block_tokens, scope=scope)  # type: ignore[arg-type]


def _set_times(
    listed: list[PlainRow], times: dict[str, list[object]], columns: Columns, unit_s: float, repairs: Repairs
) -> None:
    if "arrived" not in columns.names or not listed:
        return
    places = [f"{row.at}: {columns.names['arrived']}" for row in listed]
    arrived = seconds_of(times["arrived"], unit_s, places)
    for row, at_s in zip(listed, (arrived - arrived.min()).tolist()):
        row.t_s = at_s
        fields.seconds({"arrived": at_s}, "arrived", row.at, repairs)
    if "end" in columns.names:
        ends = seconds_of(times["end"], unit_s, [f"{row.at}: {columns.names['end']}" for row in listed])
        for row, service_s in zip(listed, (ends - arrived).tolist()):
            row.service_s = service_s if service_s > 0.0 else None
            if service_s < 0.0:
                repairs.note("end before the arrival", row.at, "the service time is taken as missing")


def _row(cells: dict[str, Any], columns: Columns, at: str, unit_s: float, ids: BlockIds, repairs: Repairs) -> PlainRow:
    numbers = {field: _number(cells[field], columns.names[field], at, repairs) for field in ("input", "output")}
    if numbers["output"] == 0:
        repairs.repair("failed request", at, "0 output tokens", "left out: it was never served")
        raise Skip
    prompt_tokens = fields.integer(numbers, "input", at, repairs, 1)
    service = {"service": _number(cells["service"], "service", at, repairs)} if cells.get("service") is not None else {}
    turn = _number(cells["turn"], columns.names["turn"], at, repairs) if cells.get("turn") is not None else None
    return PlainRow(
        at=at,
        prompt_tokens=prompt_tokens,
        output_tokens=fields.output(numbers, "output", at, repairs),
        service_s=fields.wait(service, "service", at, repairs, unit_s),
        session=fields.name(cells, "session"),
        turn=turn,
        runs=ids.runs({ids.key: cells["ids"]}, at, prompt_tokens) if "ids" in cells else [],
    )


def _number(cell: Any, column: str, at: str, repairs: Repairs) -> float:
    return rows.number({column: "" if cell is None else str(cell).replace(",", ".")}, column, at, repairs)


def _cell(row: Mapping[str, Any], column: str) -> Any:
    """Return a cell; a dot reaches into objects. An absent or empty one is None."""
    if column in row:
        value: Any = row[column]
    else:
        value = row
        for part in column.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
    return None if value == "" else value


def _rows(path: Path, repairs: Repairs) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (place, row) of a table in any of the three forms, told by its name and first bytes."""
    first = files.members(path, (*rows.TEXTS, ".parquet"))[0]
    with first.open("rb") as binary:
        is_parquet = binary.read(4) == b"PAR1"
    if is_parquet:
        yield from _parquet_rows(first)
    elif isinstance(rows.sample(path, repairs.on_error).first, dict):
        yield from rows.json_rows(path, repairs)
    else:
        yield from rows.csv_rows(path, repairs, any_name=True)


def _parquet_rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    number = 0
    try:
        for batch in pq.ParquetFile(path).iter_batches(batch_size=8_192):
            for row in batch.to_pylist():
                number += 1
                yield f"{path}: row {number}", row
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{path}: the Parquet file cannot be read ({str(error).splitlines()[0]})") from None
