"""Results of finished runs, kept in a file of JSON lines, so that an interrupted command goes on from them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scenarios.errors import UserError
from scenarios.writing import disk_errors


class Kept:
    """Results by key; None for a path keeps them in memory alone.

    Raises
    ------
    UserError
        The file there holds something else.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._results = {} if path is None or not path.is_file() else _read(path)

    def __contains__(self, key: str) -> bool:
        return key in self._results

    def __getitem__(self, key: str) -> dict[str, Any]:  # Any: JSON
        return self._results[key]

    def add(self, key: str, measured: Mapping[str, Any]) -> None:  # Any: JSON
        """Keep a result, on disk at once."""
        self._results[key] = dict(measured)
        if self._path is not None:
            with disk_errors(self._path):
                self._path.parent.mkdir(parents=True, exist_ok=True)
                _append(self._path, json.dumps({"key": key, "measured": self._results[key]}))


def _append(path: Path, line: str) -> None:
    """Add a line, also after one that an interrupted write has left torn."""
    with path.open("a+b") as lines:
        size = lines.seek(0, os.SEEK_END)
        lines.seek(max(size - 1, 0))
        torn = lines.read(1) not in (b"", b"\n")
        lines.write((b"\n" if torn else b"") + line.encode() + b"\n")


def _read(path: Path) -> dict[str, dict[str, Any]]:
    measured = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            point = json.loads(line)
            measured[point["key"]] = point["measured"]
        except (ValueError, KeyError, TypeError):
            # An interrupted write leaves a torn last line; anything else is another file.
            if number == 1:
                raise UserError(f"{path}: does not hold kept results; give another --out") from None
    return measured
