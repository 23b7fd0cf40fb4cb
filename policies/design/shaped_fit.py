"""The gain of a pool of any residence, from an experiment whose turns show dead time and residence."""

from __future__ import annotations

import numpy as np
from scipy.signal import fftconvolve

from policies.design.fits import Z95, FopdtFit, correlation_length, explained_ratio, is_white
from policies.design.loops import Floats
from policies.design.residence import Shape
from policies.design.tuning import Fopdt


def shaped_response(t_s: Floats, u: Floats, gain: float, mean_s: float, dead_time_s: float, shape: Shape) -> Floats:
    """Return the busy slots of a pool with residence of this shape and mean, the input held between samples.

    A step of the input is followed by gain (1 - J((t - L) / T)), J the mean excess: a ramp for a fixed residence.
    """
    after_s = np.maximum(t_s - t_s[0] - dead_time_s, 0.0)
    step = 1.0 - shape.excess(after_s / mean_s)
    moves = np.diff(u, prepend=u[0])
    return np.asarray(gain * fftconvolve(moves, step)[: len(u)], dtype=np.float64)


def fit_gain(
    t_s: Floats, u: Floats, y: Floats, *, mean_s: float, dead_time_s: float, shape: Shape, skip_s: float
) -> FopdtFit:
    """Fit the gain alone to an experiment whose turns themselves show dead time, mean residence and shape.

    Raises
    ------
    ValueError
        The input never moves.
    """
    first = int(skip_s / float(t_s[1] - t_s[0]))
    unit = shaped_response(t_s, u, 1.0, mean_s, dead_time_s, shape)[first:]
    if float(np.ptp(unit)) == 0.0:
        raise ValueError("the input never moves: excite it with step, relay or prbs")
    gain, rest = np.polyfit(unit, y[first:], 1)
    residual = np.asarray(gain * unit + rest - y[first:], dtype=np.float64)
    variance = float(residual @ residual) / max(len(residual) - 2, 1) * correlation_length(residual)
    return FopdtFit(
        model=Fopdt(gain=float(gain), tau_s=mean_s, dead_time_s=dead_time_s),
        gain_ci=Z95 * float(np.sqrt(variance / np.sum((unit - unit.mean()) ** 2))),
        tau_ci_s=0.0,
        dead_time_ci_s=0.0,
        explained=explained_ratio(residual, y[first:]),
        white=is_white(residual),
        residual=residual,
    )
