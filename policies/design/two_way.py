"""A pool's size after a command: what is asked for comes late, what is given up goes late, each in its own time.

    y(t) = y0 + K (up * h(T_u, L_u) + down * h(T_d, L_d))       h: unit lag T with dead time L

`up` and `down` are the increases and the decreases of the input, added up. One lag for both would be wrong wherever
starting a worker takes another time than winding one down.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from policies.design.fits import Z95, correlation_length, explained_ratio, fopdt_response, is_white
from policies.design.loops import Floats
from policies.design.tuning import Fopdt

# Lags tried before least squares refines them, in samples; the first stands for none.
LAGS_SAMPLES = (0.5, 2.0, 8.0, 32.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoWayFit:
    """A fitted rise and fall of one gain, their 95 % half-widths, and the residual.

    `*_delay_ci_s` is that of dead time and lag together: a record often fixes their sum better than either.
    """

    up: Fopdt
    down: Fopdt
    gain_ci: float
    up_dead_time_ci_s: float
    up_tau_ci_s: float
    down_dead_time_ci_s: float
    down_tau_ci_s: float
    up_delay_ci_s: float
    down_delay_ci_s: float
    explained: float
    white: bool
    residual: Floats


def split(u: Floats, rest: float) -> tuple[Floats, Floats]:
    """Return the increases and the decreases of an input from `rest` on, each added up; their sum is u - rest."""
    moves = np.diff(u, prepend=rest)
    return np.cumsum(np.maximum(moves, 0.0)), np.cumsum(np.minimum(moves, 0.0))


def fit_two_way(t_s: Floats, u: Floats, y: Floats, *, rest: float, most_dead_time_s: float) -> TwoWayFit:
    """Fit the rise and the fall of an output that was at `rest` before the record began.

    Parameters
    ----------
    t_s, u, y : ndarray
        Equal samples, shape (n,): time, input (held from each sample to the next), output at each sample.
    rest : float
        Input (and so output, but for the gain) before the record.
    most_dead_time_s : float
        Largest dead time to look for.

    Raises
    ------
    ValueError
        The input does not move both ways at least twice, or the output does not move.
    """
    up, down = split(u, rest)
    if min(np.count_nonzero(np.diff(x, prepend=0.0)) for x in (up, down)) < 2:
        raise ValueError("the input moves up and down less than twice")
    if float(np.ptp(y)) == 0.0:
        raise ValueError("the output never moves")
    step = float(t_s[1] - t_s[0])

    def shape(x: Floats, tau_s: float, dead_time_s: float) -> Floats:
        # The first sample may already differ from rest, which the response must see as a move.
        return fopdt_response(
            np.concatenate([[t_s[0] - step], t_s]), np.concatenate([[0.0], x]), 1.0, tau_s, dead_time_s
        )[1:]

    def miss(p: Floats) -> Floats:
        risen, fallen = shape(up, float(np.exp(p[1])), float(p[2])), shape(down, float(np.exp(p[3])), float(p[4]))
        missed: Floats = p[0] * (risen + fallen) + p[5] - y
        return missed

    start = _scanned(up, down, y, step, max(int(most_dead_time_s / step), 1))
    low, limit = np.log(step / 2), (np.floor(most_dead_time_s / step) + 1) * step
    start[1], start[3] = max(start[1], low + 1e-9), max(start[3], low + 1e-9)
    solution = least_squares(miss, start, bounds=([0, low, 0, low, 0, -np.inf], [np.inf, 30, limit, 30, limit, np.inf]))
    residual, slope = np.asarray(solution.fun, dtype=np.float64), np.asarray(solution.jac, dtype=np.float64)
    variance = float(residual @ residual) / max(len(y) - 6, 1)
    spread = np.linalg.pinv(slope.T @ slope) * variance * correlation_length(residual)
    half = Z95 * np.sqrt(np.diag(spread))
    gain, dead_u, dead_d = float(solution.x[0]), float(solution.x[2]), float(solution.x[4])
    tau_u, tau_d = float(np.exp(solution.x[1])), float(np.exp(solution.x[3]))

    def together(lag: int, dead: int, tau_s: float) -> float:
        both = spread[dead, dead] + tau_s**2 * spread[lag, lag] + 2 * tau_s * spread[lag, dead]
        # Half a sample for either.
        return max(Z95 * float(np.sqrt(max(both, 0.0))), step)

    # A delay is known no better than to the sample in which it ends.
    return TwoWayFit(
        up=Fopdt(gain=gain, tau_s=tau_u, dead_time_s=dead_u),
        down=Fopdt(gain=gain, tau_s=tau_d, dead_time_s=dead_d),
        gain_ci=float(half[0]),
        up_dead_time_ci_s=max(float(half[2]), step / 2),
        up_tau_ci_s=max(float(half[1] * tau_u), step / 2),
        down_dead_time_ci_s=max(float(half[4]), step / 2),
        down_tau_ci_s=max(float(half[3] * tau_d), step / 2),
        up_delay_ci_s=together(1, 2, tau_u),
        down_delay_ci_s=together(3, 4, tau_d),
        explained=explained_ratio(residual, y),
        white=is_white(residual),
        residual=residual,
    )


def _scanned(up: Floats, down: Floats, y: Floats, step: float, most: int) -> Floats:
    # A pure delay leaves no slope to follow, so every pair of whole delays and lags is tried: by inner products alone.
    t = np.arange(len(y)) * step

    def bank(x: Floats) -> Floats:
        rows = []
        for lag in LAGS_SAMPLES:
            at_once = fopdt_response(np.concatenate([[-step], t]), np.concatenate([[0.0], x]), 1.0, lag * step, 0.0)[1:]
            rows += [np.concatenate([np.zeros(k), at_once[: len(t) - k]]) for k in range(most + 1)]
        return np.array([row - row.mean() for row in rows])

    risen, fallen, aim = bank(up), bank(down), y - y.mean()
    along = (risen @ aim)[:, None] + (fallen @ aim)[None, :]
    size = np.sum(risen**2, axis=1)[:, None] + np.sum(fallen**2, axis=1)[None, :] + 2 * risen @ fallen.T
    gains = np.where((along > 0) & (size > 1e-9), along**2 / np.maximum(size, 1e-9), 0.0)
    i, j = np.unravel_index(int(np.argmax(gains)), gains.shape)
    lag_u, dead_u = divmod(int(i), most + 1)
    lag_d, dead_d = divmod(int(j), most + 1)
    gain = float(along[i, j] / max(size[i, j], 1e-9))
    rest = float(y.mean())
    return np.array(
        [
            gain,
            np.log(LAGS_SAMPLES[lag_u] * step),
            dead_u * step,
            np.log(LAGS_SAMPLES[lag_d] * step),
            dead_d * step,
            rest,
        ]
    )
