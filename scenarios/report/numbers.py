"""Format numbers as text, and build the rows of the table of verdicts for the report and the terminal."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

NONE = "–"
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)?")
LEAST_LOSS_SHOWN_RATIO = 0.005  # a smaller loss is not shown, as in a headline
HEADINGS = (
    "candidate",
    "verdict",
    "theory",
    "in use",
    "starved",
    "TTFT p50 / p99",
    "TPOT p50 / p99",
    "E2E p50 / p99",
    "goodput",
)


def percent(value: float | None) -> str:
    """Return 0.787 as '78.7 %'."""
    return NONE if value is None else f"{100 * value:.3g} %" if abs(value) < 0.1 else f"{100 * value:.1f} %"


def seconds(value: float | None) -> str:
    """Return seconds with three figures, in ms below one second."""
    if value is None or math.isnan(value):
        return NONE
    if value == 0:
        return "0 s"
    return f"{1e3 * value:.3g} ms" if abs(value) < 1 else f"{plain(value)} s"


def plain(value: float | None) -> str:
    """Return a number with three figures, as an integer with separators from a hundred on."""
    if value is None or math.isnan(value):
        return NONE
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def words(name: str) -> str:
    """Return `limit_cycle` as 'limit cycle'."""
    return name.replace("_", " ")


def mean_of(value: Any) -> float | None:
    """Return a plain number, or the mean that a comparison gives for one; None where there is none."""
    mean = value.get("mean") if isinstance(value, Mapping) else value
    return None if mean is None else float(mean)


def _spread(value: Any) -> float | None:  # half the width of an interval, where there is one
    if not isinstance(value, Mapping) or value.get("ci95") is None:
        return None
    interval = value["ci95"]
    return float(interval) if isinstance(interval, int | float) else (float(interval[1]) - float(interval[0])) / 2


def _ratio(value: Any) -> str:  # as `_mean`
    mean, spread = mean_of(value), _spread(value)
    if mean is None or spread is None or math.isnan(spread):
        return percent(mean)
    return f"{100 * mean:.1f} ±{100 * spread:.1f} %"


def seconds_of_seeds(value: Any) -> str:
    """Return seconds, with half the width of the interval where there are several seeds."""
    mean, spread = mean_of(value), _spread(value)
    if mean is None or spread is None or math.isnan(spread) or spread == 0.0:
        return seconds(mean)
    scale, unit = (1e3, "ms") if abs(mean) < 1 else (1.0, "s")
    return f"{plain(scale * mean)} ±{plain(scale * spread)} {unit}"


def _mode(value: Any) -> str:  # a word, or what a comparison gives for one
    if not isinstance(value, Mapping):
        return NONE if value is None else str(value)
    counts = value.get("counts") or {}
    total, most = sum(counts.values()), counts.get(value.get("mode"), 0)
    return str(value.get("mode")) if most == total else f"{value.get('mode')} ({most} of {total} seeds)"


def value_in(summary: Mapping[str, Any], *path: str) -> Any:
    """Return the value at a path of keys in a summary; None where there is none."""
    value: Any = summary
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def listed(names: Sequence[str]) -> str:
    """Return names as a sentence has them: 'a', 'a and b', 'a, b and c'; each once."""
    names = list(dict.fromkeys(names))
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def theory_text(theory: Mapping[str, Any] | None) -> str:
    """Return what theory expects: 'limit cycle, period 33.5 s, cost 21.4 %'; a capacity loop's has 'workers' first."""
    if not theory:
        return NONE
    parts = []
    if theory.get("verdict"):
        of = "workers " if theory.get("signal") == "workers_active" else ""
        parts.append(of + words(str(theory["verdict"])))
    if theory.get("period_s") is not None:
        parts.append(f"period {seconds(float(theory['period_s']))}")
    if (theory.get("loss_ratio") or 0.0) >= LEAST_LOSS_SHOWN_RATIO:
        parts.append(f"cost {percent(float(theory['loss_ratio']))}")
    return ", ".join(parts) or NONE


def headlines(summary: Mapping[str, Any]) -> list[str]:
    """Return the verdict in words, of each seed where there are several; each wording once, the commonest first."""
    value = summary.get("headline")
    if isinstance(value, Mapping):
        counts = value.get("counts") or {}
        return sorted(counts, key=lambda words: -counts[words])
    return [] if value is None else [str(value)]


def headline(summary: Mapping[str, Any]) -> str:
    """Return the verdict in words; where seeds differ in numbers alone, as in a period, each number as a range."""
    each = headlines(summary)
    if len(each) > 1 and len({_NUMBER.sub("#", words) for words in each}) == 1:
        columns = iter(zip(*(_NUMBER.findall(words) for words in each)))
        return _NUMBER.sub(lambda _: _range(next(columns)), each[0])
    return _mode(summary.get("headline"))


def _range(values: Sequence[str]) -> str:
    low, high = min(values, key=float), max(values, key=float)
    return low if low == high else f"{low}–{high}"


def row(summary: Mapping[str, Any]) -> list[str]:
    """Return the cells under `HEADINGS` for one run, or for one candidate of a comparison."""

    def pair(name: str) -> str:
        ends = [value_in(summary, "latency", name, q) for q in ("p50", "p99")]
        known = any(mean_of(end) is not None for end in ends)
        return " / ".join(seconds_of_seeds(end) for end in ends) if known else NONE

    return [
        str(summary.get("candidate", NONE)),
        headline(summary),
        theory_text(value_in(summary, "theory")),
        _ratio(value_in(summary, "flow", "decode_utilization_ratio")),
        _ratio(value_in(summary, "flow", "starved_ratio")),
        pair("ttft_s"),
        pair("tpot_s"),
        pair("e2e_s"),
        _ratio(value_in(summary, "goodput", "ratio")),
    ]


def rows(summaries: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return headings and cells, without the columns that are empty for every candidate."""
    cells = [row(summary) for summary in summaries]
    kept = [i for i in range(len(HEADINGS)) if i < 2 or any(line[i] != NONE for line in cells)]
    return [HEADINGS[i] for i in kept], [[line[i] for i in kept] for line in cells]
