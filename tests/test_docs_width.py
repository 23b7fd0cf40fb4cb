"""Prose is read in terminals and beside code: no line of it is longer than 120 characters. Tables and code may be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.paths import ROOT

TEXTS = (ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md")))


def prose(text: str) -> Iterator[tuple[int, str]]:
    code = False
    for number, line in enumerate(text.splitlines(), 1):
        code ^= line.startswith("```")
        if not code and not line.startswith("|"):
            yield number, line


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_no_line_of_prose_is_longer_than_120_characters(path: Path) -> None:
    assert [f"{path.name}:{n}" for n, line in prose(path.read_text(encoding="utf-8")) if len(line) > 120] == []
