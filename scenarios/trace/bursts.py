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


def dispersion(t_s: NDArray[np.float64], width_s: float) -> float | None:
    """Return Var / mean of the counts in bins of this width from the first stamp to the last; None below two bins."""
    bins = ((t_s - t_s.min()) / width_s).astype(np.int64) if len(t_s) else np.zeros(0, dtype=np.int64)
    counts = np.bincount(bins)
    return float(counts.var() / counts.mean()) if len(counts) >= 2 else None


def token_dispersion(t_s: NDArray[np.float64], tokens: NDArray[np.int64], width_s: float) -> float | None:
    """Return the dispersion of tokens in bins of this width, over that of Poisson requests of the same sizes."""
    total = float(tokens.sum())
    if len(t_s) == 0 or total <= 0.0:
        return None
    sums = np.bincount(((t_s - t_s.min()) / width_s).astype(np.int64), weights=tokens)
    lump = float((tokens.astype(np.float64) ** 2).sum() / total)
    return float(sums.var() / sums.mean() / lump) if len(sums) >= 2 else None


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
