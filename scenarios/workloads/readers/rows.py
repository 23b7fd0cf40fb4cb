"""What readers share: a look at a file's beginning, rows of JSON and CSV, and the corpus they end in."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import orjson

from scenarios.errors import UserError
from scenarios.workloads.corpus import Conversation, Corpus, StreamBuilder
from scenarios.workloads.readers import files
from scenarios.workloads.repairs import OnError, Repairs, Skip

TEXTS = (".json", ".jsonl", ".csv")
LIKELY_RATE_PER_S = (1e-4, 1e4)
"""Requests a second that a whole trace may plausibly hold; outside, the unit of its times is in doubt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What a reader may be told; what does not concern a format is left alone by it.

    `block_tokens` overrides the format's own block size; `delta` says that input lengths are only the new part and
    accumulate; `seed` and `horizon_s` are for formats that are generators; `drop_doubles` leaves out a request that is
    sent twice (streamed, then plain); `stated_thinks` plays think times longer than the interval of starts.
    """

    on_error: OnError = "repair"
    subagent_clock: Literal["auto", "relative", "absolute"] = "auto"
    block_tokens: int | None = None
    delta: bool = False
    drop_doubles: bool = False
    stated_thinks: bool = False
    seed: int = 1
    horizon_s: float = 3_600.0


@dataclass(frozen=True, slots=True)
class Sample:
    """The beginning of a file, as far as a reader needs it to say yes or no.

    `first` and `second` are the first two JSON values of a JSONL file (or the value of a JSON file); `header` is the
    first line split at commas.
    """

    path: Path
    first: Any
    second: Any
    header: tuple[str, ...]


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
                return _sample(path, file)
        return _sample(path, last)
    return _sample(path, (*before, last)[0])


def _sample(path: Path, file: Path) -> Sample:
    """Read the first lines of one file of a path."""
    found = [line for _, line in zip(range(2), (line for _, line in files.lines(file)))]
    if not found:
        raise UserError(f"{file}: the file is empty; a trace was expected")
    first = _value(found[0])
    if first is None and found[0].strip()[:1] in (b"{", b"["):
        first = _whole(file)
    if isinstance(first, list):
        first = first[0] if first else None
    second = _value(found[1]) if len(found) > 1 else None
    header = tuple(name.strip().strip('"') for name in found[0].decode("utf-8-sig", "replace").split(","))
    return Sample(path, first, second, header)


def _value(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return None


def _whole(file: Path) -> Any:
    """Return a file as one JSON value, None where it is none; raise UserError where it breaks off."""
    text = b"\n".join(line for _, line in files.lines(file))
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if files.broken_off(text, error):
            raise UserError(f"{file}: the JSON value is not closed at the file's end: the file is truncated") from None
        return None


def lacks(value: Any, *keys: str) -> str:
    """Return why a JSON value is not a row with these keys; '' when it is."""
    if not isinstance(value, dict):
        return "its first value is not a JSON object"
    missing = [key for key in keys if key not in value]
    return f"its first row has no {', '.join(f'`{key}`' for key in missing)}" if missing else ""


def lacks_columns(header: Sequence[str], *columns: str) -> str:
    """Return why a header does not name these columns; '' when it does."""
    missing = [column for column in columns if column not in header]
    return f"its first line names no column {', '.join(f'`{column}`' for column in missing)}" if missing else ""


def json_rows(path: Path, repairs: Repairs) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (place, row) for every JSON object of a file or of a directory's files."""
    for file in files.members(path):
        for at, value in files.documents(file, repairs):
            if not isinstance(value, dict):
                repairs_error = repairs.refuse("not a row", at, "a JSON object was expected")
                if isinstance(repairs_error, Skip):
                    continue
                raise repairs_error
            yield at, value


def csv_rows(path: Path, repairs: Repairs) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield (place, row) for every line of CSV files under their header; quotes and a byte-order mark are allowed.

    A last line with fewer fields than the header is refused, or left out and counted under `skip`; so is one that
    breaks off after its last comma, unless a row above it leaves the last field empty too. A last field that neither a
    line end nor a quote ends is counted: who cuts a file within its last number leaves a number.

    Raises
    ------
    UserError
        Where the last line breaks off (but under `skip`), or no file holds a row.
    """
    met = 0
    for file in files.members(path, (".csv",)):
        unended: list[bytes] = []
        numbered = files.lines(file, unended)
        numbers: list[int] = []

        def text(numbered: Any = numbered, numbers: list[int] = numbers) -> Iterator[str]:
            for number, line in numbered:
                numbers.append(number)
                yield line.decode("utf-8-sig", "replace")

        reader = csv.DictReader(text())
        row = next(reader, None)
        final = (reader.fieldnames or ("",))[-1]
        may_be_empty = not final.strip()
        while row is not None:
            met += 1
            at = f"{file}:{numbers[-1]}"
            following = next(reader, None)
            short = sum(value is None for value in row.values())
            open_end = following is None and bool(unended) and not unended[0].endswith(b'"')
            empty = not (row[final] or "").strip()
            wrong = ""
            if following is None and short:
                wrong = f"the last line ends {short} of {len(row)} fields too soon: the file is truncated"
            elif open_end and empty and not may_be_empty:
                wrong = f"the last line ends before its last field ({final.strip()}): the file may be truncated"
            if wrong:
                refused = repairs.refuse("file broken off", at, wrong)
                if isinstance(refused, Skip):
                    break
                raise refused
            may_be_empty = may_be_empty or empty
            if open_end:
                last = unended[0].rpartition(b",")[2].decode("utf-8", "replace")
                repairs.note("no newline at the end", at, f"kept with {last!r}: short, if the file was cut there")
            yield at, {(k or "").strip(): (v or "").strip() for k, v in row.items() if k is not None}
            row = following
    if not met:
        raise UserError(f"{path}: there is a header, but no row below it; a row a request was expected")


def number(row: dict[str, str], key: str, at: str, repairs: Repairs) -> float:
    """Return a CSV cell as a finite number."""
    cell = row.get(key, "")
    try:
        value = float(cell)
    except ValueError:
        value = float("nan")
    if not abs(value) < float("inf"):
        what = "missing" if cell == "" else repr(cell)
        raise repairs.refuse(f"{key} not a number", f"{at}: {key}", f"{what}; a finite number was expected")
    return value


def kept(corpus: Corpus, path: Path) -> Corpus:
    """Return the corpus with its files' digest, or raise where nothing is left of it."""
    corpus.source_sha256 = files.sha256(files.members(path, TEXTS))
    return not_empty(corpus, path)


def not_empty(corpus: Corpus, path: Path) -> Corpus:
    """Return the corpus, or raise where nothing is left of it, with what was odd."""
    if corpus.requests == 0:
        odd = "; ".join(f"{e.kind}: {e.count}, first at {e.first_at}" for e in corpus.repairs.entries.values())
        raise UserError(f"{path}: no request is left to play ({odd or 'the file holds none'})")
    return corpus


def stand_alone(
    path: Path,
    form: str,
    stream: StreamBuilder,
    repairs: Repairs,
    *,
    block_tokens: int = 64,
    scope: Literal["global", "none"] = "none",
) -> Corpus:
    """Return rows that share nothing but a file as one corpus; times are checked for a plausible unit."""
    built = stream.build()
    if len(built) >= 100:
        span_s = float(built.t_s.max() - built.t_s.min())
        rate = len(built) / span_s if span_s > 0.0 else float("inf")
        low, high = LIKELY_RATE_PER_S
        if not low <= rate <= high:
            wrong = f"{len(built)} requests in {span_s:g} s are {rate:.3g} a second; is the unit of time right?"
            repairs.mend("implausible rate", f"{path}", wrong, "kept as it stands")
    whole = Conversation(name=path.name, block_tokens=block_tokens, streams=(built,), start_s=0.0)
    return kept(Corpus(name=path.name, format=form, conversations=[whole], scope=scope, repairs=repairs), path)


def in_order(stream: StreamBuilder, t_s: float, at: str, repairs: Repairs) -> float:
    """Count a time stamp that lies before the one above it; replay sorts by time, so nothing is changed."""
    if t_s < stream.last_t_s:
        repairs.mend("time going backwards", at, f"{t_s} s after {stream.last_t_s} s", "sorted by time stamp")
    stream.last_t_s = max(stream.last_t_s, t_s)
    return t_s
