"""What comes from outside the loop, or goes round it: a coherent input, a load that answers, an echo."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scenarios.verdict import acf as correlation
from scenarios.verdict.cycle import Candidate, best_candidate
from scenarios.verdict.thresholds import Thresholds
from scenarios.verdict.types import Floats

# An input whose own past foretells it to this share of its variance is a clock, which nothing can improve upon.
CLOCK_RATIO = 1e-4
# A load answers the loop where the signal's past takes away this share of what its own past leaves unforetold.
ANSWER_RATIO = 0.3
# A signal follows an input where it shares this much of its variance with it, at some delay.
FOLLOWS_RATIO = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Ring:
    """A loop that turns go round: its mean transit time, seconds, and the two flows (counts or rates a bin)."""

    transit_s: float | None = None
    admissions: Floats | None = None
    retirements: Floats | None = None


def coherence(candidate: Candidate, values: Floats, limits: Thresholds) -> float | None:
    """Return the squared coherence with an input of the same period that drives the cycle (None: it does not)."""
    other = correlation.detrend(correlation.rebin(values, candidate.factor), candidate.high_pass)
    if len(other) != len(candidate.x) or float(np.ptp(other)) == 0.0:
        return None
    # Noise also drives: only an input with a peak of its own at this period makes the swing its own.
    height, _ = correlation.first_peaks(correlation.autocorrelation(other)[None, :])
    theirs = best_candidate(values, candidate.high_pass)
    if theirs is None or theirs.height <= limits.acf_peak or height[0] <= 0:
        return None
    ratio = theirs.lag * theirs.factor / (candidate.lag * candidate.factor)
    if abs(ratio / max(round(ratio), 1) - 1) > 0.1 or ratio > 3.3:
        return None
    from scipy import signal  # slow to import, and few records need it

    segment = min(round(4 * candidate.lag), len(other) // 3)
    frequency, squared = signal.coherence(candidate.x, other, nperseg=segment)
    at = float(np.interp(1 / candidate.lag, frequency, squared))
    if at <= limits.coherence or answers(candidate.x, other, candidate.lag):
        return None
    return at


def answers(x: Floats, load: Floats, lag: float) -> bool:
    """Tell whether a load answers the signal: whether the signal's past foretells it better than its own past does.

    References
    ----------
    Granger, Econometrica 37 (1969) 424-438.
    """
    order = int(np.clip(round(lag / 2), 2, 24))
    if len(x) < 8 * order:
        return False
    y, rows = load - load.mean(), len(x) - order
    loads_past, other = (
        np.stack([z[order - k : order - k + rows] for k in range(1, order + 1)], axis=1) for z in (y, x - x.mean())
    )
    left = [_left(y[order:], past) for past in (loads_past, np.concatenate([loads_past, other], axis=1))]
    if left[0] <= CLOCK_RATIO * float(np.sum(y**2)):
        return False
    return 1 - left[1] / left[0] > ANSWER_RATIO


def _left(y: Floats, past: Floats) -> float:
    return float(np.sum((y - past @ np.linalg.lstsq(past, y, rcond=None)[0]) ** 2))


def follows(x: Floats, load: Floats) -> bool:
    """Tell whether a signal moves with an input, at any delay up to a tenth of the record."""
    if len(x) != len(load) or float(np.ptp(load)) == 0.0:
        return False
    a, b = correlation.without_line(x), correlation.without_line(load)
    spread = float(a.std() * b.std()) * len(a)
    if spread == 0.0:
        return False
    from scipy import signal  # slow to import, and few records need it

    cross = signal.correlate(a, b, mode="full")[len(a) - 1 : len(a) - 1 + max(len(a) // 10, 1)] / spread
    return bool(cross.max() ** 2 > FOLLOWS_RATIO)


def echo_error(period_s: float, candidate: Candidate, ring: Ring, limits: Thresholds) -> float:
    """Return how far the period is from the loop's transit time, as a share; infinite where admissions copy nothing."""
    if ring.transit_s is None or ring.admissions is None or ring.retirements is None:
        return float("inf")
    # By ranks: the burst that starts a ring is far larger than anything after it.
    released, ended = (
        correlation.detrend(correlation.ranks(correlation.rebin(flow, candidate.factor)), high_pass=False)
        for flow in (ring.admissions, ring.retirements)
    )
    spread = float(released.std() * ended.std())
    copies = spread > 0 and float(np.mean(released * ended)) / spread > limits.echo_copy
    return abs(period_s / ring.transit_s - 1) if copies else float("inf")
