"""The answer to a comparison in a sentence: who is steady and fed, and which of these does most good work.

A candidate is *steady and fed* when its headline says so: nothing swings by the loop's own doing, and the pool neither
starves nor leaves work behind. Only such a candidate is recommended. Among them the order is

    1  good turns per GPU-hour (turns within their objectives; without objectives, retired turns)          turns/h
    2  cost: share of the pool's slot time left idle while work waited                                      1
    3  the 99th percentile of the time to first token                                                       s

Values that are equal as printed are equal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.catalogue import HEADLINE
from scenarios.report.numbers import headline, headlines, listed, mean_of, percent, plain, seconds, value_in
from scenarios.report.table import BAD, tone

STEADY, FED = ("steady", "constant"), "fed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What a candidate is ranked by.

    `recommendable`: steady and fed, on every seed. `per_gpu_hour_turns` is None where no GPU was paid for or nothing
    was counted; `good_ratio` is None without an objective, and then `per_gpu_hour_turns` counts retired turns.
    """

    name: str
    headline: str
    recommendable: bool
    per_gpu_hour_turns: float | None
    good_ratio: float | None
    cost_ratio: float
    ttft_p99_s: float | None

    @property
    def key(self) -> tuple[float, float, float]:
        """Return the sorting key, best first, of values as they are printed."""
        return (
            -_printed(self.per_gpu_hour_turns or 0.0),
            _printed(self.cost_ratio),
            math.inf if self.ttft_p99_s is None else _printed(self.ttft_p99_s),
        )


def _printed(value: float) -> float:
    return float(f"{value:.3g}")


def _steady_and_fed(headline: str) -> bool:
    words = [part.strip() for part in headline.split(",")]
    return words[0] in STEADY and words[-1] == FED


def standing(summary: Mapping[str, Any], name: str | None = None) -> Standing:
    """Return what a summary, of one run or joined over seeds, is ranked by."""
    good = mean_of(value_in(summary, "goodput", "ratio"))
    rate = mean_of(value_in(summary, "goodput", "turns_per_s"))
    if good is None:
        rate = mean_of(value_in(summary, "flow", "retirement_per_s"))
    return Standing(
        name=name or str(summary.get("candidate")),
        headline=headline(summary),
        recommendable=all(map(_steady_and_fed, headlines(summary))),
        per_gpu_hour_turns=_per_gpu_hour(rate, summary),
        good_ratio=good,
        cost_ratio=mean_of(value_in(summary, "verdict", HEADLINE, "cost", "utilization_lost_ratio")) or 0.0,
        ttft_p99_s=mean_of(value_in(summary, "latency", "ttft_s", "p99")),
    )


def _per_gpu_hour(rate_per_s: float | None, summary: Mapping[str, Any]) -> float | None:
    # GPU-hours are those of the whole run; the rate is that of the window, taken for the whole run.
    hours, window = mean_of(summary.get("gpu_hours")), summary.get("window_s")
    if rate_per_s is None or not hours or not window:
        return None
    return rate_per_s * float(window[1]) / hours


def answer(summaries: Sequence[Mapping[str, Any]], names: Sequence[str] | None = None) -> str:
    """Say how many candidates are steady and fed, which of them is best, by what, and what that costs.

    Parameters
    ----------
    summaries
        Of single runs, or joined over seeds.
    names
        What to call them; None: by their candidates.
    """
    each = [standing(s, name) for s, name in zip(summaries, names or [str(s.get("candidate")) for s in summaries])]
    if len(each) == 1:
        return f"{each[0].name}: {each[0].headline}."
    good = sorted((law for law in each if law.recommendable), key=lambda law: law.key)
    if not good:
        return _none_steady(each)
    first = f"{_count(len(good), len(each))} steady and fed"
    best = [law for law in good if law.key == good[0].key]
    why = _why(good[0])
    if len(best) == len(each):
        return f"{first}, and equal: {why}."
    if len(best) > 1:
        return f"{first}. Best are {listed([law.name for law in best])}, which are equal: {why}."
    return f"{first}. Best is {best[0].name}: {why}{_next(good)}."


def _count(some: int, of: int) -> str:
    return f"All {of} candidates are" if some == of else f"{some} of {of} candidates {'is' if some == 1 else 'are'}"


def _none_steady(each: Sequence[Standing]) -> str:
    bad = sum(tone(law.headline) == BAD for law in each)
    starve = f"{bad} of {len(each)} starve, or swing at a cost" if bad else "none starves, or swings at a cost"
    least = min(each, key=lambda law: (tone(law.headline) == BAD, law.cost_ratio, *law.key))
    return (
        f"No candidate is both steady and fed, so none is recommended; {starve}. "
        f"{least.name} comes nearest ({least.headline})."
    )


def _why(law: Standing) -> str:
    parts = []
    if law.per_gpu_hour_turns is not None:
        kind = "retired" if law.good_ratio is None else "good"
        parts.append(f"{plain(law.per_gpu_hour_turns)} {kind} turns per GPU-hour")
    if law.good_ratio is not None:
        parts.append(f"{percent(law.good_ratio)} of turns within their objectives")
    if law.ttft_p99_s is not None:
        parts.append(f"TTFT p99 {seconds(law.ttft_p99_s)}")
    return ", ".join(parts) or law.headline


def _next(good: Sequence[Standing]) -> str:
    if len(good) < 2:
        return ""
    best, second = good[0], good[1]
    if best.key[0] != second.key[0] and second.per_gpu_hour_turns is not None:
        return f"; next is {second.name} with {plain(second.per_gpu_hour_turns)} turns per GPU-hour"
    if best.key[1] != second.key[1]:
        return (
            f"; {second.name} does as much, and leaves {percent(second.cost_ratio)} of slot time idle with work waiting"
        )
    return f"; {second.name} does as much, with TTFT p99 {seconds(second.ttft_p99_s)}"
