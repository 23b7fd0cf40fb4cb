"""Find one cycle in a series: the resolution at which it shows best, its autocorrelation peak, and the red-noise null.

The null is AR(1) noise with the same lag-one correlation, put through the same detrending at the resolution chosen; the
choice itself is not repeated for it. Its peak heights are kept by (length, redness), so that signals of one run share
them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.linalg import solve_banded

from scenarios.verdict import acf as correlation
from scenarios.verdict.types import Floats

SURROGATES, FEW_SURROGATES = 399, 149
SURROGATE_SEED = 20220622
SHORTEST, MOST_LEVELS = 32, 12
# A peak needs some samples a period to be placed, and a few more make its height dependable.
SAMPLES_LEAST, SAMPLES_GOOD = 6.0, 16.0
# What turns at every sample has a lag of two, which noise places a little to either side.
SHORTEST_LAG = 1.5
REDNESS_STEP = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """The best cycle in a series, at the resolution that shows it best.

    `lag` is its period in samples of `factor` bins, refined over all clear peaks; `height` is the autocorrelation at
    the first, `heights` those of the train of peaks, corrected for the overlap lost at their lags; `tries` counts the
    multiples of the first lag that were looked at before this one was chosen.
    """

    x: Floats
    acf: Floats
    factor: int
    height: float
    lag: float
    heights: Floats
    tries: int
    high_pass: bool

    @property
    def keeps_phase(self) -> bool:
        """Tell whether the cycle is still in step with itself eight periods on, as none kept up by noise is.

        A loop kept up by noise with zeta 0.02 has lost two thirds of its autocorrelation by then.
        """
        return len(self.heights) >= 8 and bool(self.heights[7] > 0.75 * self.heights[0])

    def decrement(self, even: bool) -> float:
        """Return the fall of ln(autocorrelation) a period.

        An `even` cycle is read from the slope over its many peaks, which white noise and the window's ends leave
        alone. A cycle kept up by noise is read from its first peak: its later ones are few, and biased by the search.
        """
        if even and len(self.heights) >= 3:
            return -float(np.polyfit(np.arange(len(self.heights)), np.log(self.heights), 1)[0])
        first = self.heights[0] if len(self.heights) else self.height
        return -float(np.log(np.clip(first, 1e-9, 1.0)))


def best_candidate(mean: Floats, high_pass: bool) -> Candidate | None:
    """Return the cycle with the highest autocorrelation peak over dyadic resolutions, or None.

    Coarse bins average counting noise away; fine ones resolve short periods. Among resolutions that show the peak
    equally well, the coarsest with `SAMPLES_GOOD` samples a period is taken.
    """
    candidates: list[tuple[float, float, int, int, Floats, Floats]] = []
    for level in range(MOST_LEVELS):
        factor = 2**level
        if len(mean) // factor < SHORTEST:
            break
        x = correlation.detrend(correlation.rebin(mean, factor), high_pass)
        acf = correlation.autocorrelation(x)
        height, lag, tries = _dominant(acf)
        # Of a period of two or three humps each needs its samples: one that falls between bins looks lower than it is.
        if lag / tries >= SAMPLES_LEAST or (level == 0 and lag >= SHORTEST_LAG):
            candidates.append((height, lag, tries, factor, x, acf))
    if not candidates:
        return None
    # A coarse level may show a clean beat between a fast cycle and its bins; it then holds little of the movement.
    variance = float(correlation.detrend(mean, high_pass).var())
    score = [item[0] * (float(item[4].var()) / variance) ** 0.25 if variance > 0 else 0.0 for item in candidates]
    good = [item for item, value in zip(candidates, score) if value >= 0.95 * max(score)]
    fine = [item for item in good if item[1] >= SAMPLES_GOOD]
    height, lag, tries, factor, x, acf = fine[-1] if fine else good[0]
    lags, heights = correlation.peak_train(acf, lag, floor=max(0.2, 0.25 * height))
    if len(lags) > 0:
        lag = correlation.refined_period(lags)
    return Candidate(
        x=x, acf=acf, factor=factor, height=height, lag=lag, heights=heights, tries=tries, high_pass=high_pass
    )


def _dominant(acf: Floats) -> tuple[float, float, int]:
    heights, lags = correlation.first_peaks(acf[None, :])
    height, lag, tries = float(heights[0]), float(lags[0]), 1
    if not np.isfinite(lag):
        return 0.0, 0.0, 1
    # A wave with two humps a period peaks first at a part of its period: take the multiple that stands clearly higher.
    first = lag
    for multiple in (2, 3):
        reach = max(int(first / 4), 1)
        low = round(multiple * first) - reach
        if low + 2 * reach + 1 > len(acf):
            break
        k = low + int(np.argmax(acf[low : low + 2 * reach + 1]))
        top, place = correlation.vertex(acf, k, 1)
        if top > height + 0.1:
            height, lag, tries = top, place, multiple
    return height, lag, tries


def red_noise_p(candidate: Candidate, surrogates: int) -> float:
    """Return the share of AR(1) surrogates whose first peak is as high, corrected for the multiples tried."""
    n = len(candidate.x)
    redness = int(np.ceil(-np.log1p(-_lag_one(candidate.acf)) / REDNESS_STEP))
    null = null_heights(n, redness, candidate.high_pass, surrogates)
    exceed = int(np.sum(null >= candidate.height))
    return min(1.0, candidate.tries * (1 + exceed) / (surrogates + 1))


def _lag_one(acf: Floats) -> float:
    # White counting noise lowers the autocorrelation at lag one but not its decay after it; the redder answer is kept.
    correlation_1 = acf[1]
    decay = (acf[4] / correlation_1) ** (1 / 3) if correlation_1 > 0 and acf[4] > 0 else 0.0
    return float(np.clip(max(correlation_1, decay), 0.0, 0.9995))


@lru_cache(maxsize=128)
def null_heights(n: int, redness: int, high_pass: bool, surrogates: int) -> Floats:
    """Return first-peak heights of AR(1) surrogates of length n with phi = 1 - exp(-redness * 0.25), sorted."""
    phi = 1 - np.exp(-REDNESS_STEP * redness)
    rng = np.random.default_rng([SURROGATE_SEED, n, redness])
    noise = rng.standard_normal((surrogates, n), dtype=np.float32).astype(np.float64)
    # Each row starts in the stationary law, so no burn-in is needed.
    noise[:, 0] /= np.sqrt(1 - phi**2)
    bands = np.ones((2, n))  # x[t] - phi x[t - 1] = noise[t]
    bands[1] = -phi
    x = np.ascontiguousarray(solve_banded((1, 0), bands, noise.T, overwrite_ab=True, check_finite=False).T)
    heights, _ = correlation.first_peaks(correlation.autocorrelation(correlation.detrend(x, high_pass)))
    heights.sort()
    heights.flags.writeable = False
    return heights
