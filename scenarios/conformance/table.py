"""The documentation's table of laws, made from the laws: `python -m scenarios.conformance.table` rewrites docs/laws.md.

A law's row is the first line of its table's docstring, the parameters with their defaults, and the sources that its
file names. A test compares the file with what is made here.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scenarios.conformance.shipped import examples
from scenarios.schema.laws import LAW_TABLES

HEAD = """# Every law

Made by `python -m scenarios.conformance.table`; a test compares. `hold` heads every slot and changes nothing; `file`
fits every slot and is a law of your own (see [Write your own law](write-a-law.md)). Equations with their units, and
what a law does when a measurement is missing, stand in its file.
"""
NOT_SHOWN = ("kind", "period_s")


def table() -> str:
    """Return docs/laws.md."""
    parts = [HEAD]
    for slot in LAW_TABLES:
        parts.append(f"\n## {slot.capitalize()}\n\n| law | what it does | parameters | source |\n|---|---|---|---|\n")
        parts += list(_rows(slot))
    return "".join(parts)


def _rows(slot: str) -> Iterator[str]:
    for kind, part in examples(slot):
        if kind == "hold":
            continue
        module = sys.modules[part.source.__module__]
        name = module.__name__.replace(".", "/")
        what = _one_line(str(type(part).__doc__))
        yield f"| [`{kind}`](../{name}.py) | {what} | {_parameters(part)} | {_source(str(module.__doc__))} |\n"


def _parameters(part: Any) -> str:
    cells = []
    for name, info in type(part).model_fields.items():
        if name not in NOT_SHOWN:
            default = "" if info.is_required() else f" = {_plain(info.default)}"
            cells.append(f"`{name}{default}`")
    return ", ".join(cells)


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _source(doc: str) -> str:
    match = re.search(r"Sources?:\s+(.*?)(?:\n\n|\s+Missing data:|$)", doc, re.DOTALL)
    return _one_line(match[1]).rstrip(".") if match else ""


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    path = Path(__file__).resolve().parent.parent.parent / "docs" / "laws.md"
    path.write_text(table(), encoding="utf-8")
