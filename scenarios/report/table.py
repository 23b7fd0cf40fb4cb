"""The verdicts of several candidates as one table in the terminal."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import rich
from rich import box
from rich.table import Table
from rich.text import Text

from scenarios.report.numbers import rows

GOOD, BAD, MIXED = "green", "red", "yellow"
# What a narrow terminal can do without, in this order; the verdict may wrap, the rest may not.
DROPPED = ("TPOT p50 / p99", "TTFT p50 / p99", "goodput", "E2E p50 / p99", "theory")
WORDS = {"verdict": 17, "theory": 17}
GAP = 2
# A ripple that costs less than this is worth a word and no alarm.
HARMLESS_PERCENT = 2


def tone(headline: str) -> str:
    """Return the colour for a headline: red for what starves, or swings at a cost; green for steady and fed."""
    if headline.startswith("unbounded") or "starved" in headline:
        return BAD
    if headline.startswith(("limit cycle", "echo")):
        cost = re.search(r"cost (\d+) %", headline)
        return MIXED if cost is not None and int(cost[1]) < HARMLESS_PERCENT else BAD
    return GOOD if headline.startswith(("steady", "constant")) and "saturated" not in headline else MIXED


def verdict_table(summaries: Sequence[Mapping[str, Any]], title: str | None = None, width: int | None = None) -> Table:
    """Return one line a candidate: verdict, theory, use of the decode pool, starvation, latencies, goodput.

    Parameters
    ----------
    summaries
        As `run --json` prints them, or a comparison's, with {"mean", "ci95"} for a number and {"mode", "counts"} for
        a word; `theory` ({"verdict", "period_s", "decode_utilization_ratio", "loss_ratio"}) where there is one.
    title
        Stands above the table.
    width
        Characters there are, None: as many as the terminal has. Columns that do not fit are left out, and named.
    """
    headings, lines = rows(summaries)
    left_out = _too_many(headings, lines, width or rich.get_console().width)
    caption = f"for want of width without: {', '.join(left_out)}" if left_out else None
    table = Table(title=title, caption=caption, box=box.SIMPLE_HEAD, padding=(0, 1), collapse_padding=True)
    table.title_justify = table.caption_justify = "left"
    kept = [i for i, heading in enumerate(headings) if heading not in left_out]
    for i in kept:
        words = headings[i] in WORDS
        heading = headings[i].replace(" p50", "\np50")
        table.add_column(heading, justify="left" if words or i == 0 else "right", no_wrap=not words)
    for line in lines:
        # A number is not parted from its unit where a cell of words wraps.
        cells = [(i, line[i].replace(" %", "\N{NO-BREAK SPACE}%").replace(" s,", "\N{NO-BREAK SPACE}s,")) for i in kept]
        table.add_row(*(Text(cell, style=tone(line[i]) if headings[i] == "verdict" else "") for i, cell in cells))
    return table


def _too_many(headings: Sequence[str], lines: Sequence[Sequence[str]], width: int) -> list[str]:
    needed = {}
    for i, heading in enumerate(headings):
        longest = max([*(len(line[i]) for line in lines), max(len(part) for part in heading.split(" p50"))])
        needed[heading] = min(longest, WORDS.get(heading, longest)) + GAP
    left_out: list[str] = []
    for heading in DROPPED:
        if sum(needed.values()) <= width:
            break
        if needed.pop(heading, None) is not None:
            left_out.append(heading)
    return left_out
