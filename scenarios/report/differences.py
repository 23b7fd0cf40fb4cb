"""Paired differences to the first candidate over seeds, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from scenarios.compare.join import differences
from scenarios.report.numbers import NONE, plain
from scenarios.report.table import fitted

# Dotted path in a summary, heading, factor, unit.
SHOWN = (
    ("flow.decode_utilization_ratio", "in use", 100.0, "%"),
    ("goodput.ratio", "goodput", 100.0, "%"),
    ("latency.ttft_s.p99", "TTFT p99", 1.0, "s"),
    ("latency.tpot_s.p99", "TPOT p99", 1e3, "ms"),
    ("gpu_hours", "GPU-hours", 1.0, ""),
)


def difference_rows(summaries: Mapping[str, Sequence[Mapping[str, Any]]]) -> tuple[list[str], list[list[str]]]:
    """Return headings and lines: a candidate's mean difference to the first one, with its 95 % interval.

    Parameters
    ----------
    summaries
        By candidate, one a seed; the same seeds in the same order for each.
    """
    (first, base), *others = summaries.items()
    differences_by_name = {name: differences(summaries, base) for name, summaries in others}
    used = [row for row in SHOWN if any(row[0] in each for each in differences_by_name.values())]
    lines = [
        [name, *(_cell(each.get(path), factor, unit) for path, _, factor, unit in used)]
        for name, each in differences_by_name.items()
    ]
    return [f"minus {first}", *(heading for _, heading, _, _ in used)], lines


def _cell(value: Mapping[str, Any] | None, factor: float, unit: str) -> str:
    if value is None:
        return NONE
    mean, spread = factor * value["mean"], value["ci95"]
    if spread is None:
        return f"{_signed(mean)} {unit}".strip()
    half = factor * (spread[1] - spread[0]) / 2
    sure = "" if abs(mean) > half or mean == half == 0.0 else " (0 is inside)"
    return f"{_signed(mean)} ±{plain(half)} {unit}".strip() + sure


def _signed(value: float) -> str:
    return f"{'+' if value > 0 else ''}{plain(value)}"


def differences_table(summaries: Mapping[str, Sequence[Mapping[str, Any]]]) -> Table:
    """Return the differences as a table for the terminal."""
    headings, lines = difference_rows(summaries)
    return fitted(
        headings, lines, lambda *_: "", dropped=headings[:1:-1], words={}, title="differences on the same seeds"
    )
