"""Parse long JSON lines whose bulk is lists of block ids, without an object for every id.

A conversation on one line repeats its ids in every prompt: tens of millions of numbers, of which Python needs 40 bytes
each. The lists are cut out of the text, read as arrays of 8 bytes an id, and put back in their places.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

LONG_BYTES = 1 << 20
KEY = b'"hash_ids":'
MARK = "\x00ids "
MOST_DIGITS = 18
"""Numbers of so many digits fit 64 bits; longer ones are left to the parser."""


def loads(text: bytes) -> Any:
    """Return the JSON value of a text; in long ones, lists of small ids are arrays.

    Raises
    ------
    orjson.JSONDecodeError
        The text is no JSON value.
    """
    if len(text) < LONG_BYTES or KEY not in text:
        return orjson.loads(text)
    pieces: list[bytes] = []
    arrays: list[NDArray[np.int64]] = []
    done = 0
    while (at := text.find(KEY, done)) >= 0:
        start = text.find(b"[", at + len(KEY), at + len(KEY) + 2) + 1
        end = text.find(b"]", start) if start else -1
        ids = _ids(text[start:end]) if end > start else None
        if ids is None:
            pieces.append(text[done : at + len(KEY)])
            done = at + len(KEY)
            continue
        pieces.append(text[done : start - 1])
        pieces.append(orjson.dumps(f"{MARK}{len(arrays)}"))
        arrays.append(ids)
        done = end + 1
    pieces.append(text[done:])
    return _restored(orjson.loads(b"".join(pieces)), arrays)


def _ids(text: bytes) -> NDArray[np.int64] | None:
    """Return a list's numbers, or None where it is no plain list of numbers of at most 18 digits."""
    plain = text.replace(b", ", b",")
    if plain.translate(None, b"0123456789,"):
        return None
    commas = np.flatnonzero(np.frombuffer(plain, dtype=np.uint8) == ord(","))
    digits = np.diff(np.concatenate(([-1], commas, [len(plain)]))) - 1
    if digits.min() < 1 or digits.max() > MOST_DIGITS:
        return None
    return np.fromstring(plain, dtype=np.int64, sep=",")


def _restored(value: Any, arrays: list[NDArray[np.int64]]) -> Any:
    if isinstance(value, dict):
        for key, inner in value.items():
            value[key] = _restored(inner, arrays)
    elif isinstance(value, list):
        for k, inner in enumerate(value):
            if isinstance(inner, dict | list):
                value[k] = _restored(inner, arrays)
    elif isinstance(value, str) and value.startswith(MARK):
        return arrays[int(value[len(MARK) :])]
    return value
