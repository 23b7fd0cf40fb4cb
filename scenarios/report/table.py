"""The verdicts of several candidates as one table in the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from scenarios.report.numbers import rows

GOOD, BAD, MIXED = "green", "red", "yellow"


def tone(headline: str) -> str:
    """Return the colour for a headline: red for what swings or starves, green for steady and fed."""
    if headline.startswith(("limit cycle", "unbounded", "echo")) or "starved" in headline:
        return BAD
    return GOOD if headline.startswith(("steady", "constant")) and "saturated" not in headline else MIXED


def verdict_table(summaries: Sequence[Mapping[str, Any]], title: str | None = None) -> Table:
    """Return one line a candidate: verdict, theory, use of the decode pool, starvation, latencies, goodput.

    Parameters
    ----------
    summaries
        As `run --json` prints them, or a comparison's, with {"mean", "ci95"} for a number and {"mode", "counts"} for
        a word; `theory` ({"verdict", "period_s", "decode_utilization_ratio", "loss_ratio"}) where there is one.
    """
    headings, lines = rows(summaries)
    table = Table(title=title, title_justify="left", title_style="bold", header_style="bold", pad_edge=False)
    for heading in headings:
        number = heading not in ("candidate", "verdict", "theory")
        table.add_column(heading, justify="right" if number else "left", overflow="fold")
    for line in lines:
        table.add_row(Text(line[0]), Text(line[1], style=tone(line[1])), *(Text(cell) for cell in line[2:]))
    return table
