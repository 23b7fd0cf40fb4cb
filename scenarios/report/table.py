"""Tables for the terminal: the verdicts of several candidates, fitted to its width."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from textwrap import wrap
from typing import Any

import rich
from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from scenarios.report.numbers import rows

GOOD, BAD, MIXED = "green", "red", "yellow"
# What a narrow terminal can do without, in this order; the verdict may wrap, the rest may not.
DROPPED = ("TPOT p50 / p99", "TTFT p50 / p99", "goodput", "E2E p50 / p99", "theory")
WORDS = {"verdict": 17, "theory": 17}
GAP, EDGES = 2, 2
# A ripple that costs less than this is shown, but not in red.
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
    return fitted(headings, lines, _toned, dropped=DROPPED, words=WORDS, title=title, width=width)


def _toned(_: int, heading: str, cell: str) -> str:
    return tone(cell) if heading == "verdict" else ""


def fitted(
    headings: Sequence[str],
    lines: Sequence[Sequence[str]],
    style: Callable[[int, str, str], str],
    *,
    dropped: Sequence[str],
    words: Mapping[str, int],
    title: str | None = None,
    width: int | None = None,
) -> Table:
    """Return a table that fits the terminal: columns of words wrap, then columns of numbers are left out, and named.

    Parameters
    ----------
    headings, lines
        The first column names what a line is about; its text is not wrapped.
    style
        Gives the style of a cell by the number of its line, its heading and its text.
    dropped
        Headings that a narrow table can do without, in this order.
    words
        Headings of the columns that may wrap, each with the characters that it needs at least.
    title, width
        As for `verdict_table`.
    """
    left_out = _columns_left_out(headings, lines, dropped, words, width or rich.get_console().width)
    caption = f"left out for want of width: {', '.join(left_out)}" if left_out else None
    table = Table(title=title, caption=caption, box=box.SIMPLE_HEAD, padding=(0, 1), collapse_padding=True)
    table.title_justify = table.caption_justify = "left"
    kept = [i for i, heading in enumerate(headings) if heading not in left_out]
    for i in kept:
        wraps = headings[i] in words
        heading = headings[i].replace(" p50", "\np50")
        table.add_column(heading, justify="left" if wraps or i == 0 else "right", no_wrap=not wraps)
    for number, line in enumerate(lines):
        table.add_row(*(_Cell(line[i], style(number, headings[i], line[i])) for i in kept))
    return table


class _Cell:
    """A cell that keeps a number with its unit where it wraps; rich would break at a no-break space too."""

    def __init__(self, text: str, style: str) -> None:
        self.text = text.replace(" %", "\N{NO-BREAK SPACE}%").replace(" s,", "\N{NO-BREAK SPACE}s,")
        self.style = style

    def __rich_measure__(self, _: Console, options: ConsoleOptions) -> Measurement:
        lines = self.text.split("\n")
        longest = max(len(word) for line in lines for word in line.split(" "))
        return Measurement(longest, max(len(line) for line in lines)).with_maximum(options.max_width)

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        lines = self.text.split("\n")
        if not options.no_wrap:
            width = options.max_width
            lines = [part for line in lines for part in wrap(line, width, break_on_hyphens=False) or [""]]
        yield Text("\n".join(lines), style=self.style)


def _columns_left_out(
    headings: Sequence[str],
    lines: Sequence[Sequence[str]],
    dropped: Sequence[str],
    words: Mapping[str, int],
    width: int,
) -> list[str]:
    needed = {}
    for i, heading in enumerate(headings):
        text = "\n".join([heading.replace(" p50", "\n"), *(line[i] for line in lines)])
        longest = max(len(part) for part in text.split("\n"))
        needed[heading] = min(longest, words.get(heading, longest)) + GAP
    left_out: list[str] = []
    for heading in dropped:
        if sum(needed.values()) + EDGES <= width:
            break
        if needed.pop(heading, None) is not None:
            left_out.append(heading)
    return left_out
