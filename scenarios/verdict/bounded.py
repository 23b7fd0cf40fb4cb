"""Whether a stock keeps its bounds: its trend over the window, and its drift from high levels. Both must say no.

Either test alone is treacherous near the critical load (a queue at 0.98 of capacity trends for hundreds of seconds).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scenarios.verdict.acf import rebin
from scenarios.verdict.thresholds import THRESHOLDS, Thresholds
from scenarios.verdict.types import Floats

BLOCKS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Trend and drift of block means. `slope` is per block; `drift` is E[change | level above its upper quartile]."""

    slope: float
    slope_t: float
    final_over_median: float
    drift: float
    drift_se: float


def growth(x: Floats) -> Growth | None:
    """Return the growth of a non-negative stock, over 50 block means (None: fewer than 50 samples).

    References
    ----------
    Newey and West, Econometrica 55 (1987) for the trend's error; Foster-Lyapunov drift for the second test.
    """
    if len(x) < BLOCKS:
        return None
    size = len(x) // BLOCKS
    blocks = x[: size * BLOCKS].reshape(BLOCKS, size).mean(axis=1)
    t = np.arange(BLOCKS) - (BLOCKS - 1) / 2
    squares = float(np.dot(t, t))
    slope = float(np.dot(t, blocks) / squares)
    residual = blocks - blocks.mean() - slope * t
    lags = int(1.5 * BLOCKS ** (1 / 3))
    score = t * residual
    variance = float(np.dot(score, score)) + 2 * sum(
        (1 - k / (lags + 1)) * float(np.dot(score[k:], score[:-k])) for k in range(1, lags + 1)
    )
    error = np.sqrt(max(variance, 1e-18 * (1 + squares))) / squares
    change = np.diff(blocks)[blocks[:-1] > np.quantile(blocks, 0.75)]
    drift = float(change.mean()) if len(change) else 0.0
    drift_se = float(change.std() / np.sqrt(len(change))) if len(change) else 0.0
    final, middle = float(blocks[-BLOCKS // 10 :].mean()), float(np.median(blocks))
    ratio = final / middle if middle > 0 else (np.inf if final > 0 else 1.0)
    return Growth(
        slope=slope, slope_t=slope / float(error), final_over_median=float(ratio), drift=drift, drift_se=drift_se
    )


def is_unbounded(x: Floats, scale: float, limits: Thresholds = THRESHOLDS) -> bool:
    """Tell whether a stock grows through the whole window by an amount that matters, and does not turn back."""
    grown = growth(x)
    if grown is None:
        return False
    risen = grown.slope * BLOCKS > 0.1 * scale and bool(np.all(np.diff(rebin(x, len(x) // 4)[:4]) > 0))
    trend = grown.slope_t > limits.trend_t and grown.final_over_median > limits.final_over_median
    # Linear growth leaves the same drift at high levels as everywhere; a bounded queue turns back there.
    return bool(risen and trend and grown.drift > 0.5 * grown.slope and grown.drift > grown.drift_se)
