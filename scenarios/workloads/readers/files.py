"""Read lines and JSON documents from plain, gzip or zstd files and from directories, one line in memory at a time."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import zstandard

from scenarios.errors import UserError
from scenarios.workloads.readers.long_lines import loads
from scenarios.workloads.repairs import Repairs, Skip

CHUNK_BYTES = 1 << 18
NEWLINE = b"\n"
ENDS_TOO_SOON = "unexpected end of data"  # the message of both orjson and Python's decoder
PIECE_BYTES = 1 << 10
"""Packed bytes that are unpacked at once: 1 kB of zstd may grow to 30 MB."""
MOST_UNPACKED_BYTES, MOST_RATIO = 1 << 31, 200
"""A packed trace beyond both is refused; JSON packs 5 to 50 times."""
LONGEST_LINE_BYTES = 1 << 30
BOM, UTF_16 = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


def members(path: Path, suffixes: tuple[str, ...] = (".json", ".jsonl"), *, deep: bool = False) -> list[Path]:
    """Return the files that a path names: itself, or a directory's files with these suffixes, in name order.

    `deep`: those of its sub-folders too.

    Raises
    ------
    UserError
        Where the path does not exist, the directory holds no such file, or it holds one file plain and packed.
    """
    if not path.exists():
        raise UserError(f"{path}: no such file or directory")
    if path.is_file():
        return [path]
    wanted = tuple(suffix + pack for suffix in suffixes for pack in ("", ".gz", ".zst"))
    listed = path.rglob("*") if deep else path.iterdir()
    files = sorted(p for p in listed if p.is_file() and p.name.endswith(wanted))
    if not files:
        raise UserError(f"{path}: the directory holds no {', '.join(suffixes)} file (plain, .gz or .zst)")
    plain: dict[str, Path] = {}
    for file in files:
        first = plain.setdefault(str(file).removesuffix(".gz").removesuffix(".zst"), file)
        if first != file:
            raise UserError(f"{file}: the same file as {first.name} beside it, packed; leave one of them in the folder")
    return files


def _chunks(path: Path) -> Iterator[bytes]:
    """Yield the file's content, decompressed according to its first bytes; raise UserError where it is truncated."""
    with path.open("rb") as file:
        start = file.read(4)
        file.seek(0)
        if start[:2] in UTF_16:
            raise UserError(f"{path}: the text is UTF-16 (it begins with its byte-order mark); UTF-8 was expected")
        unpacked_bytes, most_bytes = 0, max(MOST_UNPACKED_BYTES, MOST_RATIO * path.stat().st_size)
        if start[:2] == GZIP:
            new: Any = lambda: zlib.decompressobj(31)  # noqa: E731  (zlib and zstandard share no typed protocol)
        elif start == ZSTD:
            new = lambda: zstandard.ZstdDecompressor().decompressobj()  # noqa: E731
        else:
            while chunk := file.read(CHUNK_BYTES):
                yield chunk
            return
        unpack = new()
        try:
            while packed := file.read(PIECE_BYTES):
                pieces = [unpack.decompress(packed)]
                while unpack.eof and (rest := unpack.unused_data):
                    unpack = new()
                    pieces.append(unpack.decompress(rest))
                for piece in pieces:
                    unpacked_bytes += len(piece)
                    yield piece
                if unpacked_bytes > most_bytes:
                    problem = f"unpacks to more than {most_bytes:,} bytes, {MOST_RATIO} times its size"
                    raise UserError(f"{path}: {problem}; it is no trace (unpack it yourself to read it all the same)")
        except (zlib.error, zstandard.ZstdError) as error:
            raise UserError(f"{path}: byte {file.tell()}: the compressed data is damaged ({error})") from None
        if not unpack.eof:
            raise UserError(f"{path}: the compressed file is truncated: it ends before its end marker")


def lines(path: Path, unended: list[bytes] | None = None) -> Iterator[tuple[int, bytes]]:
    """Yield (line number from 1, line without its end) for every line that is not blank.

    A last line that neither a newline nor a carriage return ends is put into `unended` before it is yielded.
    """
    number, parts, held_bytes = 1, list[bytes](), 0
    is_first = True
    for chunk in _chunks(path):
        if is_first and chunk:
            chunk, is_first = chunk.removeprefix(BOM), False
        pieces = chunk.split(b"\n")
        held_bytes = len(pieces[-1]) + (held_bytes if len(pieces) == 1 else 0)
        if held_bytes > LONGEST_LINE_BYTES:
            raise UserError(f"{path}:{number}: a line of more than {LONGEST_LINE_BYTES:,} bytes; one row was expected")
        for piece in pieces[:-1]:
            line = b"".join((*parts, piece))
            parts = []
            if line.strip():
                yield number, line.rstrip(b"\r")
            number += 1
        parts.append(pieces[-1])
    line = b"".join(parts)
    if line.strip():
        if unended is not None and not line.endswith(b"\r"):
            unended.append(line)
        yield number, line.rstrip(b"\r")


def documents(path: Path, repairs: Repairs) -> Iterator[tuple[str, Any]]:
    """Yield (place, parsed JSON value) for each line of a JSONL file, or once for a file that is one JSON value.

    A first line that opens and closes an object means JSONL; so does a file name with .jsonl. Lines that are not JSON
    raise UserError with line and byte, or are left out and counted under `skip`.
    """
    source = lines(path)
    try:
        first = next(source)
    except StopIteration:
        raise UserError(f"{path}: the file is empty; a trace was expected") from None
    except UserError as error:
        if repairs.on_error != "skip":
            raise
        repairs.note("file truncated", str(error), "left out")
        return
    stripped = first[1].strip()
    by_line = ".jsonl" in path.name or (stripped[:1] == b"{" and stripped[-1:] == b"}")
    if not by_line:
        try:
            value = _single_document(first, source, path, repairs)
        except Skip:
            return
        for k, item in enumerate(value if isinstance(value, list) else [value]):
            yield (f"{path}: [{k}]" if isinstance(value, list) else f"{path}"), item
        return
    while True:
        number, line = first
        with suppress(Skip):
            yield f"{path}:{number}", parse(line, path, number, repairs)
        try:
            first = next(source)
        except StopIteration:
            return
        except UserError as error:
            if repairs.on_error != "skip":
                raise
            repairs.note("file truncated", str(error), "the rows before it were kept")
            return


def _single_document(
    first: tuple[int, bytes], source: Iterator[tuple[int, bytes]], path: Path, repairs: Repairs
) -> Any:
    """Parse all lines of a file as one JSON value; raise Skip where the file is left out and counted."""
    number, line = first
    rows = [line]
    try:
        for following, line in source:
            rows.extend([b""] * (following - number - 1))
            rows.append(line)
            number = following
    except UserError as error:
        if repairs.on_error != "skip":
            raise
        repairs.note("file truncated", str(error), "left out")
        raise Skip from None
    return parse(b"\n".join(rows), path, 1, repairs)


def parse(line: bytes, path: Path, number: int, repairs: Repairs) -> Any:
    """Parse one JSON text; a syntax error names file, line and byte."""
    try:
        return loads(line)
    except orjson.JSONDecodeError as error:
        if is_truncated(line, error):
            problem = "the JSON value is not closed: the file is truncated"
            raise repairs.rejection("file truncated", f"{path}:{number + line.count(NEWLINE)}", problem) from None
        at = f"{path}:{number + error.lineno - 1}"
        raise repairs.rejection(
            "malformed JSON", at, f"byte {error.colno}: not JSON ({error.msg}); one complete JSON value was expected"
        ) from None


def is_truncated(text: bytes, error: orjson.JSONDecodeError) -> bool:
    """Return whether the only error of a JSON text is that it ends early, within a value or within a character."""
    if error.msg == ENDS_TOO_SOON:
        return True
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as character:
        return character.reason == ENDS_TOO_SOON
    return False


def sha256(paths: list[Path]) -> str:
    """Return the SHA-256 of the files as they are stored, as `sha256sum` prints it (several: of their digests)."""
    digests = []
    for path in paths:
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
        digests.append(digest.hexdigest())
    if len(digests) == 1:
        return digests[0]
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()
