"""Rank admission laws on two axes: how steady they are, and how much good work a GPU-hour gives.

    steadiness  1 - share of the pool's work that swinging costs (utilisation lost), mean over scenarios and seeds    1
    yield       good turns per GPU-hour, relative to the best law of the same scenario and seed, mean                 1

A law is dominated when another is at least as good on both axes and better on one. Intervals are t intervals over seeds
of the mean over scenarios. A law is ranked on the scenarios in which it is a candidate; `runs` says on how many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scenarios.compare.join import interval
from scenarios.suite.execute import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedPolicy:
    """One law's place: means with 95 % intervals, and by whom it is dominated (empty: by none)."""

    law: str
    runs: int
    steadiness: dict[str, Any]
    goods_per_gpu: dict[str, Any]
    dominated_by: str

    def to_json(self) -> dict[str, Any]:
        """Return the place as `leaderboard --json` prints it."""
        return {
            "law": self.law,
            "runs": self.runs,
            "steadiness": self.steadiness,
            "yield": self.goods_per_gpu,
            "dominated_by": self.dominated_by or None,
        }


def ranked(seeds: Sequence[Sequence[Row]]) -> list[RankedPolicy]:
    """Rank the candidates that occur in the rows of every seed; best first.

    Parameters
    ----------
    seeds : sequence of sequences of Row
        The suite's rows, one sequence a seed.
    """
    steady: dict[str, list[list[float]]] = {}
    good: dict[str, list[list[float]]] = {}
    for k, rows in enumerate(seeds):
        best = _best(rows)
        for row in rows:
            top = best[row.scenario]
            for scores, value in (
                (steady, 1.0 - _cost(row.summary)),
                (good, _yield(row.summary) / top if top > 0.0 else 0.0),
            ):
                scores.setdefault(row.candidate, [[] for _ in seeds])[k].append(value)
    means = {law: (_mean(_by_seed(steady[law])), _mean(_by_seed(good[law]))) for law in steady}
    places = [
        RankedPolicy(
            law=law,
            runs=sum(map(len, steady[law])),
            steadiness=interval(_by_seed(steady[law])),
            goods_per_gpu=interval(_by_seed(good[law])),
            dominated_by=_dominator(law, means),
        )
        for law in means
    ]
    return sorted(places, key=lambda p: (bool(p.dominated_by), -sum(means[p.law])))


def _by_seed(scores: Sequence[Sequence[float]]) -> list[float]:
    return [_mean(each) for each in scores if each]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _cost(summary: Mapping[str, Any]) -> float:
    """Share of the pool's work lost: to a swing, as the verdict reckons it, and to starvation while work waits."""
    lost_ratio = (
        summary["verdict"].get("decode_occupancy_ratio", {}).get("cost", {}).get("utilization_lost_ratio") or 0.0
    )
    return min(1.0, max(0.0, float(lost_ratio), float(summary["flow"]["starved_ratio"])))


def _yield(summary: Mapping[str, Any]) -> float:
    hours, rate = summary["gpu_hours"], summary["goodput"]["turns_per_s"]
    if rate is None:  # no class has an objective: then what retired counts
        rate = summary["flow"].get("retirement_per_s")
    return float(rate or 0.0) / hours if hours else 0.0


def _best(rows: Sequence[Row]) -> dict[str, float]:
    best: dict[str, float] = {}
    for row in rows:
        best[row.scenario] = max(best.get(row.scenario, 0.0), _yield(row.summary))
    return best


def _dominator(law: str, means: Mapping[str, tuple[float, float]]) -> str:
    scores = means[law]
    better = [
        name for name, other in means.items() if other != scores and other[0] >= scores[0] and other[1] >= scores[1]
    ]
    return max(better, key=lambda name: sum(means[name]), default="")
