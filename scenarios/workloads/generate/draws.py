"""Correlated random draws: phases of work within a session, and habits that differ between sessions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter
from scipy.special import ndtr

Array = NDArray[np.float64]


def phases(rng: np.random.Generator, size: int, persistence: float) -> Array:
    """Return uniforms whose normal scores follow z_k = rho z_{k-1} + sqrt(1 - rho^2) e_k: work comes in phases.

    Each value alone is uniform on (0, 1), so the marginal distribution is preserved.
    """
    e = rng.standard_normal(size)
    e[1:] *= np.sqrt(1.0 - persistence**2)
    out: Array = ndtr(lfilter([1.0], [1.0, -persistence], e))
    return out


def correlated(rng: np.random.Generator, rho: float) -> tuple[float, float]:
    """Return two uniforms whose normal scores correlate by rho."""
    a, b = rng.standard_normal(2)
    return float(ndtr(a)), float(ndtr(rho * a + np.sqrt(1.0 - rho * rho) * b))


def habits(rng: np.random.Generator, size: int, common: float) -> Array:
    """Return uniforms with a common component per session: any two have correlation `common` (normal scores)."""
    z = np.sqrt(common) * rng.standard_normal() + np.sqrt(1.0 - common) * rng.standard_normal(size)
    out: Array = ndtr(z)
    return out


def share(rng: np.random.Generator, mean: float, concentration: float) -> float:
    """Return a session's share, Beta distributed around the mean; a low concentration spreads sessions widely."""
    return float(rng.beta(concentration * mean, concentration * (1.0 - mean)))
