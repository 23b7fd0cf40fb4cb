"""What one run of a law over a draw came to, and what many such runs say of the law: yield, quantiles, where it breaks.

    yield     draws that hold / draws, with the exact binomial interval of 95 % (Clopper and Pearson)
    holds     the pool's occupancy is calm (no cycle of the loop's own, decided) and it is not starved
    break     the split `name > value` or `name < value` with the largest Youden index, the share of the broken
              draws beyond it minus the share of those that hold beyond it

The draws of a hypercube repel each other, so the interval is, if anything, too wide (Stein, 1987).

References
----------
Clopper and Pearson, Biometrika 26 (1934); Youden, Cancer 3 (1950); Stein, Technometrics 29 (1987) 143-151.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.stats import binomtest

from scenarios.sweep.safe import calm

Word = Literal["holds", "oscillates", "starved", "undecided"]
WORDS: tuple[Word, ...] = ("holds", "undecided", "starved", "oscillates")
QUANTILES = (0.0, 0.05, 0.5, 0.95, 1.0)
LEAST_INDEX = 0.5
"""A split that tells broken draws from others no better than this names no cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One law over one draw: the verdict of the pool's occupancy, the flow, and its figures.

    `ttft_p99_s` is None where no turn retired; `good_per_gpu_hour` counts turns that met their class's objectives.
    """

    draw: Mapping[str, float]
    seed: int
    verdict: str
    period_s: float | None
    fed: str
    utilization_ratio: float
    ttft_p99_s: float | None
    good_per_gpu_hour: float

    @property
    def word(self) -> Word:
        """Name the outcome; a cycle comes before the starvation that it causes."""
        if self.verdict == "undecided":
            return "starved" if self.fed == "starved" else "undecided"
        if not calm(self.verdict):
            return "oscillates"
        return "starved" if self.fed == "starved" else "holds"

    def to_json(self) -> dict[str, object]:
        """Return the outcome as JSON values."""
        return {
            "draw": dict(self.draw),
            "seed": self.seed,
            "outcome": self.word,
            "verdict": self.verdict,
            "period_s": self.period_s,
            "fed": self.fed,
            "decode_utilization_ratio": self.utilization_ratio,
            "ttft_p99_s": self.ttft_p99_s,
            "good_turns_per_gpu_hour": self.good_per_gpu_hour,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """The split that best tells the draws at which a law breaks: `beyond` of `broken` lie there, and `held` others."""

    name: str
    above: bool
    value: float
    beyond: int
    broken: int
    held: int

    def __str__(self) -> str:
        """Return the split in words."""
        side = "above" if self.above else "below"
        return (
            f"{self.name} {side} {self.value:.3g} "
            f"({self.beyond} of the {self.broken} that break, {self.held} that hold)"
        )


def binomial_interval(successes: int, count: int) -> tuple[float, float]:
    """Return the exact interval of 95 % of a share."""
    interval = binomtest(successes, count).proportion_ci(confidence_level=0.95, method="exact")
    return float(interval.low), float(interval.high)


def quantiles(values: Sequence[float | None]) -> dict[str, float] | None:
    """Return least, 5 %, median, 95 % and greatest of the numbers among the values; None where there are none."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    names = ("min", "p5", "p50", "p95", "max")
    return {name: float(value) for name, value in zip(names, np.quantile(known, QUANTILES))}


def breaks_at(outcomes: Sequence[Outcome]) -> Break | None:
    """Return where a law breaks along one parameter; None where it never or always does, or no parameter tells."""
    holds = np.array([outcome.word == "holds" for outcome in outcomes])
    if holds.all() or not holds.any():
        return None
    best: Break | None = None
    best_index = LEAST_INDEX
    for name in outcomes[0].draw:
        values = np.array([outcome.draw[name] for outcome in outcomes])
        ordered = np.unique(values)
        for value in (ordered[1:] + ordered[:-1]) / 2:
            for above in (True, False):
                there = values > value if above else values < value
                index = float(there[~holds].mean() - there[holds].mean())
                if index > best_index:
                    best_index = index
                    best = Break(
                        name=name,
                        above=above,
                        value=float(value),
                        beyond=int(there[~holds].sum()),
                        broken=int((~holds).sum()),
                        held=int(there[holds].sum()),
                    )
    return best


def outcome_of(draw: Mapping[str, float], seed: int, measured: Mapping[str, Any]) -> Outcome:  # Any: JSON of a run
    """Return the outcome from the figures that are kept of a run."""
    return Outcome(draw=draw, seed=seed, **measured)


def figures_of(summary: Mapping[str, Any]) -> dict[str, Any]:  # Any: JSON of a run
    """Return what is kept of a run's summary."""
    verdict, flow = summary["verdict"]["decode_occupancy_ratio"], summary["flow"]
    return {
        "verdict": verdict["verdict"],
        "period_s": verdict["period_s"],
        "fed": flow["fed"],
        "utilization_ratio": flow["decode_utilization_ratio"],
        "ttft_p99_s": summary["latency"]["ttft_s"]["p99"],
        "good_per_gpu_hour": _good_per_gpu_hour(summary),
    }


def _good_per_gpu_hour(summary: Mapping[str, Any]) -> float:  # Any: JSON of a run
    """Return good turns per GPU-hour; where no class states an objective, what retired is good."""
    rate, hours = summary["goodput"]["turns_per_s"], summary["gpu_hours"]
    if rate is None:
        rate = summary["flow"].get("retirement_per_s")
    return float(rate or 0.0) * summary["window_s"][1] / hours if hours else 0.0
