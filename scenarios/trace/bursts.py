"""Burstiness of arrivals: dispersion of counts and tokens in bins of 1, 10 and 60 s.

    dispersion of requests(w) = Var(N_w) / E(N_w)             1 for a Poisson process, at every width w
    dispersion of tokens(w)   = Var(S_w) / E(S_w) / (E x^2 / E x)

S_w sums the tokens x of a bin's requests. Divided by E x^2 / E x the second is 1 for Poisson requests of independent
sizes; above 1, large requests cluster. E x^2 / E x measures the variability of the sizes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

WIDTHS_S = (1.0, 10.0, 60.0)


def _sums(t_s: NDArray[np.float64], weights: NDArray[np.float64], width_s: float) -> tuple[float, float] | None:
    """Return mean and variance of the weights summed in bins from the first stamp; None below two bins.

    Only bins that the span fills count: a last bin that is mostly beyond the last stamp would look like a lull. Empty
    bins are counted without being held, so a span of years costs no memory.
    """
    if not len(t_s):
        return None
    since_s = t_s - t_s.min()
    bins = np.floor(since_s.max() / width_s)
    if bins < 2:
        return None
    number = np.floor(since_s / width_s)
    inside = number < bins
    _, which = np.unique(number[inside], return_inverse=True)
    sums = np.bincount(which, weights=weights[inside])
    mean = float(sums.sum() / bins)
    return mean, max(0.0, float((sums**2).sum() / bins) - mean**2)


def dispersion(t_s: NDArray[np.float64], width_s: float) -> float | None:
    """Return Var / mean of the counts in bins of this width from the first stamp to the last; None below two bins."""
    moments = _sums(t_s, np.ones(len(t_s)), width_s)
    return moments[1] / moments[0] if moments and moments[0] > 0.0 else None


def token_dispersion(t_s: NDArray[np.float64], tokens: NDArray[np.int64], width_s: float) -> float | None:
    """Return the dispersion of tokens in bins of this width, over that of Poisson requests of the same sizes."""
    total = float(tokens.sum())
    moments = _sums(t_s, tokens.astype(np.float64), width_s)
    if moments is None or total <= 0.0 or moments[0] <= 0.0:
        return None
    lump = float((tokens.astype(np.float64) ** 2).sum() / total)
    return moments[1] / moments[0] / lump


def gap_cv(t_s: NDArray[np.float64]) -> float | None:
    """Return the coefficient of variation of the gaps between sorted stamps; None below two gaps or at mean 0."""
    gaps = np.diff(np.sort(t_s))
    return float(gaps.std() / gaps.mean()) if len(gaps) >= 2 and gaps.mean() > 0.0 else None


def idle_start_warning(t_s: NDArray[np.float64]) -> str | None:
    """Return a warning where the first tenth of the span runs below a tenth of the mean rate; else None.

    A slice from the start of such a trace is idle, and all policies perform alike on it.
    """
    if len(t_s) < 100:
        return None
    span_s = float(t_s.max() - t_s.min())
    early = int((t_s - t_s.min() < 0.1 * span_s).sum())
    if span_s <= 0.0 or early >= 0.01 * len(t_s):
        return None
    return f"the first tenth of the span holds {early} of {len(t_s)} requests: a slice from the start would be idle"
