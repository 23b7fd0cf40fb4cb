"""Shared parts of the readers: the sample for format detection, rows of JSON and CSV, checks of the corpus."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import orjson

from scenarios.errors import UserError
from scenarios.workloads.corpus import Conversation, Corpus, StreamBuilder
from scenarios.workloads.readers import files
from scenarios.workloads.readers.long_lines import loads
from scenarios.workloads.repairs import OnError, Repairs, Skip

TEXTS = (".json", ".jsonl", ".csv")
LONGEST_HEADER_BYTES = 1 << 16
SAMPLED = 20
"""Lines of which one must be known; session logs begin with rows that say nothing of their form."""
TimeUnit = Literal["s", "ms", "us", "ns"]
UNITS_S: dict[TimeUnit, float] = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Options of a reader; a reader ignores options that do not concern its format.

    `block_tokens` overrides the format's own block size; `delta` says that input lengths are only the new part and
    accumulate; `seed` and `horizon_s` are for formats that are generators; `drop_doubles` leaves out a request that is
    sent twice (streamed, then plain); `stated_thinks` plays think times longer than the interval of starts. `time_unit`
    is the unit of stamps and waits where the format's own does not hold. `spread_stamps` draws starts within the grain
    of a coarse clock. `columns` says which column of a table holds what, see `table`.
    """

    on_error: OnError = "repair"
    subagent_clock: Literal["auto", "relative", "absolute"] = "auto"
    block_tokens: int | None = None
    delta: bool = False
    drop_doubles: bool = False
    stated_thinks: bool = False
    seed: int = 1
    horizon_s: float = 3_600.0
    time_unit: TimeUnit | None = None
    spread_stamps: bool = False
    columns: str | None = None

    def unit_s(self, own_s: float) -> float:
        """Return the unit of stamps and waits, seconds: the stated one, else the format's own."""
        return own_s if self.time_unit is None else UNITS_S[self.time_unit]


@dataclass(frozen=True, slots=True)
class Sample:
    """The beginning of a file, for format detection.

    `first` and `second` are the first two JSON values of a JSONL file (or the value of a JSON file), `values` the
    objects among its first lines; `header` is the first line split at commas.
    """

    path: Path
    first: Any
    second: Any
    header: tuple[str, ...]
    values: tuple[dict[str, Any], ...] = ()


def sample(path: Path, on_error: OnError = "repair") -> Sample:
    """Read the first lines of a file, or of a directory's first file (under `skip`: the first that can be read)."""
    if path.is_file():
        with path.open("rb") as binary:
            if binary.read(4) == b"PAR1":
                return Sample(path, None, None, ("parquet",))
    if path.is_dir() and any(path.glob("chunk-*-trace.csv")):
        return Sample(path, None, None, ("servegen",))
    *before, last = files.members(path, TEXTS)
    if on_error == "skip":
        for file in before:
            with suppress(UserError):
                return sample_of(path, file)
        return sample_of(path, last)
    return sample_of(path, (*before, last)[0])


def sample_of(path: Path, file: Path) -> Sample:
    """Read the first lines of one file of a path."""
    first_lines = [line for _, line in zip(range(SAMPLED), (line for _, line in files.lines(file)))]
    if not first_lines:
        raise UserError(f"{file}: the file is empty; a trace was expected")
    first = _json_line(first_lines[0])
    if first is None and first_lines[0].strip()[:1] in (b"{", b"["):
        first = _json_document(file)
    if isinstance(first, list):
        first = first[0] if first else None
    second = _json_line(first_lines[1]) if len(first_lines) > 1 else None
    line = first_lines[0][:LONGEST_HEADER_BYTES].decode("utf-8-sig", "replace")
    header = tuple(name.strip().strip('"') for name in line.split(delimiter_of(line)))
    values = [first, *(_json_line(line) for line in first_lines[1:])]
    return Sample(path, first, second, header, tuple(value for value in values if isinstance(value, dict)))


def delimiter_of(header: str) -> str:
    """Return what parts the columns of a header: a comma unless another mark occurs more often."""
    return max(",;\t|", key=header.count)


def _json_line(line: bytes) -> Any:
    try:
        return loads(line)
    except orjson.JSONDecodeError:
        return None


def _json_document(file: Path) -> Any:
    """Return a file as one JSON value, None where it is none; raise UserError where it is truncated."""
    text = b"\n".join(line for _, line in files.lines(file))
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if files.is_truncated(text, error):
            raise UserError(f"{file}: the JSON value is not closed at the file's end: the file is truncated") from None
        return None


def missing_keys(value: Any, *keys: str) -> str:
    """Return why a JSON value is not a row with these keys; '' when it is."""
    if not isinstance(value, dict):
        return "its first value is not a JSON object"
    missing = [key for key in keys if key not in value]
    return f"its first row has no {', '.join(f'`{key}`' for key in missing)}" if missing else ""


def missing_columns(header: Sequence[str], *columns: str) -> str:
    """Return why a header does not name these columns; '' when it does."""
    missing = [column for column in columns if column not in header]
    return f"its first line names no column {', '.join(f'`{column}`' for column in missing)}" if missing else ""


def json_rows(path: Path, repairs: Repairs, *, deep: bool = False) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (place, row) for every JSON object of a file or of a directory's files (`deep`: also in sub-folders)."""
    for file in files.members(path, deep=deep):
        for at, value in files.documents(file, repairs):
            if not isinstance(value, dict):
                rejection = repairs.rejection("not a row", at, "a JSON object was expected")
                if isinstance(rejection, Skip):
                    continue
                raise rejection
            yield at, value


def csv_rows(path: Path, repairs: Repairs, *, any_name: bool = False) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield (place, row) for every line of CSV files under their header; quotes and a byte-order mark are allowed.

    A last line with fewer fields than the header is an error, or left out and counted under `skip`; so is one that ends
    after its last comma, unless a row above it also leaves the last field empty. A last field without a line end or a
    quote after it is counted: a file truncated within its last number still ends in a number.

    Raises
    ------
    UserError
        The last line is truncated (except under `skip`), or no file holds a row.
    """
    row_count = 0
    for file in files.members(path, (".csv", ".tsv", ".txt") if any_name else (".csv",)):
        unended: list[bytes] = []
        numbered = files.lines(file, unended)
        numbers: list[int] = []

        def text(numbered: Any = numbered, numbers: list[int] = numbers) -> Iterator[str]:
            for number, line in numbered:
                numbers.append(number)
                yield line.decode("utf-8-sig", "replace")

        lines = text()
        header = next(lines, "")
        reader = csv.DictReader(chain([header], lines), delimiter=delimiter_of(header))
        row = next(reader, None)
        _check_header(reader.fieldnames or (), file)
        final = (reader.fieldnames or ("",))[-1]
        may_be_empty = not final.strip()
        while row is not None:
            row_count += 1
            at = f"{file}:{numbers[-1]}"
            following = next(reader, None)
            short = sum(value is None for value in row.values())
            columns = len(row) - (None in row)
            open_end = following is None and bool(unended) and not unended[0].endswith(b'"')
            empty = not (row[final] or "").strip()
            problem = ""
            if following is None and short:
                problem = f"the last line ends {short} of {len(row)} fields early: the file is truncated"
            elif open_end and empty and not may_be_empty:
                problem = f"the last line ends before its last field ({final.strip()}): the file may be truncated"
            if problem:
                rejection = repairs.rejection("file truncated", at, problem)
                if isinstance(rejection, Skip):
                    break
                raise rejection
            may_be_empty = may_be_empty or empty
            if None in row and any(cell.strip() for cell in row[None]):
                fields = f"{columns + len(row[None])} fields under {columns} column names"
                advice = "a number with a comma needs quotes"
                rejection = repairs.rejection("more fields than columns", at, f"{fields}; {advice}")
                if not isinstance(rejection, Skip):
                    raise rejection
                row = following
                continue
            if open_end:
                last = unended[0].rpartition(delimiter_of(header).encode())[2].decode("utf-8", "replace")
                repairs.note(
                    "no newline at the end", at, f"kept with {last!r}: incomplete if the file was truncated there"
                )
            yield at, {(k or "").strip(): (v or "").strip() for k, v in row.items() if k is not None}
            row = following
    if not row_count:
        raise UserError(f"{path}: there is a header, but no row below it; one row per request was expected")


def _check_header(names: Sequence[str], file: Path) -> None:
    """Raise UserError where a header names a column twice: which of them is meant is not known."""
    stripped = [name.strip() for name in names if name.strip()]
    twice = next((name for name in stripped if stripped.count(name) > 1), None)
    if twice is not None:
        raise UserError(f"{file}:1: the header names the column {twice!r} twice; one of each was expected")


def number(row: dict[str, str], key: str, at: str, repairs: Repairs) -> float:
    """Return a CSV cell as a finite number."""
    cell = row.get(key, "")
    try:
        value = float(cell)
    except ValueError:
        value = float("nan")
    if not abs(value) < float("inf"):
        what = "missing" if cell == "" else repr(cell)
        raise repairs.rejection(f"{key} not a number", f"{at}: {key}", f"{what}; a finite number was expected")
    return value


def with_digest(corpus: Corpus, path: Path, *, deep: bool = False) -> Corpus:
    """Return the corpus with the digest of its files; raise UserError where it is empty."""
    corpus.source_sha256 = files.sha256(files.members(path, TEXTS, deep=deep))
    return require_requests(corpus, path)


def require_requests(corpus: Corpus, path: Path) -> Corpus:
    """Return the corpus; where it is empty, raise UserError with the counted defects."""
    if corpus.requests == 0:
        odd = "; ".join(f"{e.kind}: {e.count}, first at {e.first_at}" for e in corpus.repairs.entries.values())
        raise UserError(f"{path}: no request is left to play ({odd or 'the file holds none'})")
    return corpus


def independent_rows(
    path: Path,
    form: str,
    stream: StreamBuilder,
    repairs: Repairs,
    *,
    block_tokens: int = 64,
    scope: Literal["global", "none"] = "none",
) -> Corpus:
    """Return independent rows as one corpus."""
    built = stream.build()
    conversation = Conversation(name=path.name, block_tokens=block_tokens, streams=(built,), start_s=0.0)
    return with_digest(
        Corpus(name=path.name, format=form, conversations=[conversation], scope=scope, repairs=repairs), path
    )


def not_skipped(error: Exception) -> Exception:
    """Return the error of a defect of a whole file, which cannot be left out: also under `skip` a UserError."""
    return UserError("the whole file would be left out; see the defects above") if isinstance(error, Skip) else error


def out_of_order(t_s: float, latest_s: float, at: str, repairs: Repairs) -> None:
    """Count a row that stands below a later one; sorting mends it, so `skip` has nothing to leave out."""
    if repairs.on_error == "skip":
        repairs.note("time going backwards", at, "sorted by time stamp")
    else:
        repairs.repair("time going backwards", at, f"{t_s} s after {latest_s} s", "sorted by time stamp")


def check_order(stream: StreamBuilder, t_s: float, at: str, repairs: Repairs) -> float:
    """Return `t_s`; count it as a defect where it precedes an earlier row. Replay sorts by time, so nothing changes."""
    if t_s < stream.last_t_s:
        out_of_order(t_s, stream.last_t_s, at, repairs)
    stream.last_t_s = max(stream.last_t_s, t_s)
    return t_s
