"""Whether a fast loop and a slow one may be designed apart: three tests, of which all should pass.

- bandwidths: the fast loop's is at least five times the slow one's (ten is better);
- modes: those of the whole are within a tenth of those of fast (slow held) and slow (fast settled) apart;
- small gain: the product of the cross couplings' peak gains is below one.

References
----------
Kokotovic, Khalil and O'Reilly, Singular Perturbation Methods in Control (1986), ch. 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

LEAST_RATIO, MODE_ERROR = 5.0, 0.1
Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Separation:
    """What the three tests say; `apart` when all of them pass."""

    bandwidth_ratio: float
    mode_error_ratio: float
    small_gain: float

    @property
    def apart(self) -> bool:
        """Tell whether the loops may be designed apart."""
        return self.bandwidth_ratio >= LEAST_RATIO and self.mode_error_ratio <= MODE_ERROR and self.small_gain < 1


def separation(fast: Matrix, to_fast: Matrix, to_slow: Matrix, slow: Matrix) -> Separation:
    """Test dx/dt = [[fast, to_fast], [to_slow, slow]] x, fast states first; every matrix in 1/s.

    Parameters
    ----------
    fast, slow : ndarray
        Square matrices of either part, shapes (f, f) and (s, s); `fast` invertible and stable.
    to_fast, to_slow : ndarray
        Couplings, shapes (f, s) and (s, f).
    """
    joint_modes = np.linalg.eigvals(np.block([[fast, to_fast], [to_slow, slow]]))
    settled = slow - to_slow @ np.linalg.solve(fast, to_fast)
    fast_modes, slow_modes = np.linalg.eigvals(fast), np.linalg.eigvals(settled)
    apart = np.concatenate([fast_modes, slow_modes])
    distance = np.abs(joint_modes[:, None] - apart[None, :]) / np.maximum(np.abs(apart[None, :]), 1e-300)
    rows, columns = linear_sum_assignment(distance)
    ratio = float(np.abs(fast_modes.real).min() / max(np.abs(slow_modes).max(), 1e-300))
    return Separation(
        bandwidth_ratio=ratio,
        mode_error_ratio=float(distance[rows, columns].max()),
        small_gain=_peak_gain(fast, to_fast) * _peak_gain(slow, to_slow),
    )


def _peak_gain(a: Matrix, b: Matrix) -> float:
    # max over frequency of the largest singular value of (jw - own)^-1 into; inf for a part not stable by itself.
    modes = np.linalg.eigvals(a)
    if np.any(modes.real >= 0):
        return float("inf")
    scale = np.abs(modes)
    omega = np.concatenate([[0.0], np.geomspace(scale.min() / 100, scale.max() * 100, 300)])
    stacked = 1j * omega[:, None, None] * np.eye(len(a)) - a
    answers = np.linalg.solve(stacked, np.broadcast_to(b, (len(omega), *b.shape)))
    return float(np.linalg.svd(answers, compute_uv=False).max())
