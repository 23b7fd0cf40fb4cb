"""The table of the suite for the terminal, and the same as an HTML page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from rich.table import Table

from scenarios.pages.document import write_page
from scenarios.report.table import BAD, fitted
from scenarios.suite.execute import Row, cells

HEADINGS = ("scenario", "candidate", "verdict", "goodput", "TTFT p99", "GPU-h", "flips", "flaps", "expected")
# What a narrow terminal can do without, in this order, and what may wrap.
DROPPED = ("flaps", "flips", "GPU-h", "TTFT p99", "goodput")
WORDS = {"verdict": 20}


def line(row: Row) -> tuple[str, ...]:
    """Return one row's cells as text."""
    c: Mapping[str, Any] = cells(row.summary)
    good, late = c["goodput_ratio"], c["ttft_p99_s"]
    held = sum(check["ok"] for check in row.checks)
    return (
        row.scenario,
        row.candidate,
        c["headline"],
        "" if good is None else f"{100 * good:.1f} %",
        "" if late is None else f"{late:.3g} s",
        f"{c['gpu_hours']:.2f}",
        str(c["reconfigurations"]),
        str(c["flaps"]),
        f"{held} of {len(row.checks)}" if row.checks else "",
    )


def suite_table(rows: Sequence[Row], width: int | None = None) -> Table:
    """Return the suite's table for the terminal: each scenario's name, and under it a line a candidate."""
    lines: list[Sequence[str]] = []
    failed: set[int] = set()
    scenario = None
    for row in rows:
        first, candidate, *rest = line(row)
        if first != scenario:
            scenario = first
            lines.append((first, *[""] * len(rest)))
        if not row.ok:
            failed.add(len(lines))
        lines.append((f"  {candidate}", *rest))

    def style(number: int, _: str, __: str) -> str:
        return BAD if number in failed else ""

    return fitted(("scenario", *HEADINGS[2:]), lines, style, dropped=DROPPED, words=WORDS, width=width)


def write_suite_page(rows: Sequence[Row], path: Path) -> Path:
    """Write the suite's page and return its path; its folder is made."""
    head = "".join(f"<th>{escape(h)}</th>" for h in HEADINGS)
    rows_html = "".join(_html(row) for row in rows)
    checks = [check for row in rows for check in row.checks]
    held = sum(check["ok"] for check in checks)
    body = (
        f"<h1>The suite</h1><p>{held} of {len(checks)} expectations hold.</p>"
        f'<div id="suite" class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows_html}</tbody></table></div>'
    )
    return write_page(path, "Suite", body, plotly=False)


def _html(row: Row) -> str:
    wrong = "".join(
        f"<br>{escape(str(c['key']))} should be {escape(str(c['want']))}, is {escape(str(c['got']))}"
        for c in row.checks
        if not c["ok"]
    )
    texts = [escape(text) for text in line(row)]
    texts[-1] += wrong
    tag = "" if row.ok else ' class="bad"'
    return f"<tr{tag}>" + "".join(f"<td>{text}</td>" for text in texts) + "</tr>"
