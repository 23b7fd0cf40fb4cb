"""Join summaries over seeds: numbers to mean and interval, words to counts; and compare them with the expectations.

Intervals are Student's t intervals of the mean over seeds (scipy.stats.t; a bootstrap of three seeds covers its 95 %
only in three cases of four).
Differences are paired: candidate minus first candidate, seed by seed, so what the seed does to both cancels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from orchestrator.catalogue import HEADLINE
from scenarios.schema.expect import Bound, Expectation

# Shorthand of expectation keys: the verdict on the decode pool stands for the run.
SHORT = {
    "verdict": f"verdict.{HEADLINE}.verdict",
    "period_s": f"verdict.{HEADLINE}.period_s",
    "amplitude_ratio": f"verdict.{HEADLINE}.amplitude_ratio",
    "damping_ratio": f"verdict.{HEADLINE}.damping_ratio",
    "cost_ratio": f"verdict.{HEADLINE}.cost.utilization_lost_ratio",
}
# Facts of the computer, not of a policy: no difference is taken of them.
# Numbers that are names: they have no mean.
LABELS = ("seed",)
MACHINE = ("cpu_s_by_part", "turns_per_cpu_s", "peak_rss_mb", "seed")


def interval(values: Sequence[float]) -> dict[str, Any]:
    """Return `{"mean", "ci95"}` with Student's t interval of the mean; the interval is None for a single value."""
    x = np.asarray(values, dtype=float)
    mean = float(x.mean())
    if len(x) < 2:
        return {"mean": mean, "ci95": None}
    half = float(stats.t.ppf(0.975, len(x) - 1) * x.std(ddof=1) / np.sqrt(len(x)))
    return {"mean": mean, "ci95": [mean - half, mean + half]}


def joined(parts: Sequence[Any]) -> Any:
    """Join equal-shaped values over seeds: tables key by key, numbers to intervals, words to counts."""
    known = [part for part in parts if part is not None]
    if not known:
        return None
    if isinstance(known[0], Mapping):
        keys = list(dict.fromkeys(key for part in known for key in part))
        return {key: _names(known, key) if key in LABELS else joined([part.get(key) for part in known]) for key in keys}
    if isinstance(known[0], bool | str):
        counts = Counter(str(part) for part in known)
        return {"mode": counts.most_common(1)[0][0], "counts": dict(counts)}
    if isinstance(known[0], int | float):
        return interval([float(part) for part in known])
    if isinstance(known[0], Sequence):
        return list(known[0])
    return known[0]


def _names(parts: Sequence[Mapping[str, Any]], key: str) -> list[Any]:
    return [part.get(key) for part in parts]


def numbers(summary: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """Return every number of a summary by its dotted path."""
    by_path: dict[str, float] = {}
    for key, value in summary.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping):
            by_path |= numbers(value, f"{path}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            by_path[path] = float(value)
    return by_path


def differences(summaries: Sequence[Mapping[str, Any]], first: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return paired differences to the first candidate by dotted path; paths that a seed lacks are left out."""
    numbers_of, numbers_of_first = [numbers(s) for s in summaries], [numbers(s) for s in first]
    paths = [
        path
        for path in numbers_of[0]
        if path.split(".")[0] not in MACHINE and all(path in seed for seed in (*numbers_of, *numbers_of_first))
    ]
    return {path: interval([a[path] - b[path] for a, b in zip(numbers_of, numbers_of_first)]) for path in paths}


def value_at(summary: Mapping[str, Any], key: str) -> Any:
    """Return a value of a summary by its dotted path or its shorthand; None where there is none."""
    return _at(summary, SHORT.get(key, key).split("."))


def _at(here: Any, steps: list[str]) -> Any:
    if not steps:
        return here
    if not isinstance(here, Mapping):
        return None
    # Signals such as command.admission.gate_open have dots in their names: the longest name that is there counts.
    for count in range(len(steps), 0, -1):
        name = ".".join(steps[:count])
        if name in here:
            return _at(here[name], steps[count:])
    return None


def expected(expectation: Expectation, summaries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Compare each expectation with the runs: words to the commonest one, numbers to the mean over seeds."""
    checks = []
    for key, want in expectation.items():
        values = [value for value in (value_at(s, key) for s in summaries) if value is not None]
        if isinstance(want, str):
            got: Any = Counter(str(v) for v in values).most_common(1)[0][0] if values else None
            checks.append({"key": key, "want": want, "got": got, "ok": got == want})
        else:
            got = float(np.mean(values)) if values else None
            checks.append(
                {"key": key, "want": bound_text(want), "got": got, "ok": got is not None and within(got, want)}
            )
    return checks


def within(got: float, want: Bound) -> bool:
    """Tell whether a number meets its bounds."""
    if want.value is not None:
        slack = max((want.rel or 0.0) * abs(want.value), want.abs_tol or 0.0)
        if abs(got - want.value) > slack:
            return False
    return (want.at_least is None or got >= want.at_least) and (want.at_most is None or got <= want.at_most)


def bound_text(want: Bound) -> str:
    """Return a bound as text, for instance `12 +-5 %` or `>= 0.9`."""
    parts = []
    if want.value is not None:
        slack = f"{100 * want.rel:g} %" if want.rel is not None else f"{want.abs_tol:g}"
        parts.append(f"{want.value:g} +-{slack}")
    if want.at_least is not None:
        parts.append(f">= {want.at_least:g}")
    if want.at_most is not None:
        parts.append(f"<= {want.at_most:g}")
    return " and ".join(parts)
