"""Models from experiments: a lag with dead time from a step, a difference equation from any excitation, and how far
to trust them.

All are least squares on arrays; each answer carries 95 % confidence intervals and a test of its residuals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares
from scipy.signal import lfilter
from scipy.stats import chi2

from policies.design.loops import Floats
from policies.design.tuning import Fopdt

Z95 = 1.96


@dataclass(frozen=True, slots=True, kw_only=True)
class FopdtFit:
    """A fitted first-order lag with dead time, its 95 % half-widths, the share of variance it explains, the rest."""

    model: Fopdt
    gain_ci: float
    tau_ci_s: float
    dead_time_ci_s: float
    explained: float
    white: bool
    residual: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class ArxFit:
    """y[k] = sum a_i y[k-i] + sum b_j u[k-delay-j] + e[k]; a, b in the order of i, j = 1 .. and 0 .. ."""

    a: Floats
    b: Floats
    a_ci: Floats
    b_ci: Floats
    delay: int
    noise_sd: float
    explained: float
    white: bool

    @property
    def gain(self) -> float:
        """Return the steady-state gain."""
        return float(self.b.sum() / (1 - self.a.sum()))


def fopdt_response(t_s: Floats, u: Floats, gain: float, tau_s: float, dead_time_s: float) -> Floats:
    """Return the output of a lag with dead time for an input held between samples (any waveform), from rest at u[0].

    The dead time need not be a whole number of samples: the input is shifted exactly, as a piecewise constant.
    """
    step = float(t_s[1] - t_s[0])
    samples = int(np.floor(dead_time_s / step))
    part = dead_time_s / step - samples
    du = u - u[0]
    late = np.concatenate([np.zeros(samples + 1), du])[: len(du) + 1]
    older, newer = late[:-1], late[1:]
    decay, within = np.exp(-step / tau_s), np.exp(-(1 - part) * step / tau_s)
    # Over a step the held input changes from `older` to `newer` a fraction `part` into it.
    drive = gain * (older * (within - decay) + newer * (1 - within))
    return np.concatenate([[0.0], np.asarray(lfilter([1.0], [1.0, -decay], drive))[:-1]])


def fit_fopdt(
    t_s: Floats,
    u: Floats,
    y: Floats,
    *,
    most_dead_time_s: float | None = None,
    skip_s: float = 0.0,
    rising: bool = False,
) -> FopdtFit:
    """Fit a lag with dead time to an experiment.

    Parameters
    ----------
    t_s, u, y : ndarray
        Equal samples, shape (n,): time, input (held from each sample to the next), output.
    most_dead_time_s : float, optional
        Largest dead time to look for; a third of the record by default.
    skip_s : float
        How much of the record's start only leads in: what came before it is unknown, and must have died away by then.
    rising : bool
        True where the output is known to rise with the input.

    Raises
    ------
    ValueError
        When the input never moves, the record is shorter than 20 samples, or the output falls though `rising`.
    """
    moved = np.flatnonzero(u != u[0])
    if len(t_s) < 20 or len(moved) == 0:
        raise ValueError("the input never moves in a record of at least 20 samples: excite it with step, relay or prbs")
    step, span = float(t_s[1] - t_s[0]), float(t_s[-1] - t_s[0])
    first = int(skip_s / step)
    limit = most_dead_time_s if most_dead_time_s is not None else span / 3

    def miss(p: Floats) -> Floats:
        missed: Floats = fopdt_response(t_s, u, p[0], float(np.exp(p[1])), float(p[2])) + p[3] - y
        return missed[first:]

    # The cost has one valley a dead time: a coarse scan finds the right one before least squares refines it.
    starts = [
        _start(t_s, u, y, float(tau), float(dead), first)
        for dead in np.linspace(0, limit, 13)
        for tau in np.geomspace(2 * step, span / 3, 6)
    ]
    # A periodic input fits as well with the other sign half a period later, unless the sign is known.
    starts = [p for p in starts if p[0] > 0 or not rising]
    if not starts:
        raise ValueError("the output does not rise with the input at any dead time")
    start = min(starts, key=lambda p: float(np.sum(miss(p) ** 2)))
    solution = least_squares(
        miss, start, bounds=([0.0 if rising else -np.inf, np.log(step / 10), 0, -np.inf], [np.inf, 30, limit, np.inf])
    )
    residual, slope = np.asarray(solution.fun, dtype=np.float64), np.asarray(solution.jac, dtype=np.float64)
    variance = float(residual @ residual) / max(len(y) - 4, 1)
    # Noise that stays for a while (a pool's own counting noise does) leaves fewer independent samples than rows.
    covariance = np.linalg.pinv(slope.T @ slope) * variance * correlation_length(residual)
    half = Z95 * np.sqrt(np.diag(covariance))
    gain, tau, dead = float(solution.x[0]), float(np.exp(solution.x[1])), float(solution.x[2])
    return FopdtFit(
        model=Fopdt(gain=gain, tau_s=tau, dead_time_s=dead),
        gain_ci=float(half[0]),
        tau_ci_s=float(half[1] * tau),
        dead_time_ci_s=float(half[2]),
        explained=explained_ratio(residual, y[first:]),
        white=is_white(residual),
        residual=residual,
    )


def _start(t_s: Floats, u: Floats, y: Floats, tau_s: float, dead_time_s: float, first: int) -> Floats:
    # For a lag and a dead time, gain and rest follow by a straight line.
    unit = fopdt_response(t_s, u, 1.0, tau_s, dead_time_s)[first:]
    if float(np.ptp(unit)) == 0.0:
        return np.array([0.0, np.log(tau_s), dead_time_s, float(y.mean())])
    gain, rest = np.polyfit(unit, y[first:], 1)
    return np.array([gain, np.log(tau_s), dead_time_s, rest])


def fit_arx(u: Floats, y: Floats, *, a_order: int = 1, b_order: int = 1, delay: int | None = None) -> ArxFit:
    """Fit a difference equation by least squares about the means.

    With `delay` None every delay up to a fifth of the record is tried and the smallest residual kept.
    """
    if len(y) < 10 * (a_order + b_order) or float(np.ptp(u)) == 0.0:
        raise ValueError(
            f"{len(y)} samples with an input range of {float(np.ptp(u)):.3g} cannot fix {a_order + b_order} "
            "coefficients: record more, and excite the input"
        )
    delays = [delay] if delay is not None else list(range(1, max(len(y) // 5, 2)))
    # One common range of rows, so that residuals of different delays compare.
    first = max(a_order, max(delays) + b_order - 1)
    fits = [_arx(u, y, a_order, b_order, d, first) for d in delays]
    return min(fits, key=lambda fit: fit.noise_sd)


def _arx(u: Floats, y: Floats, a_order: int, b_order: int, delay: int, first: int) -> ArxFit:
    v, x = u - u.mean(), y - y.mean()
    n = len(y)
    columns = [x[first - i : n - i] for i in range(1, a_order + 1)]
    columns += [v[first - delay - j : n - delay - j] for j in range(b_order)]
    matrix, target = np.stack(columns, axis=1), x[first:]
    coefficients, *_ = np.linalg.lstsq(matrix, target, rcond=None)
    residual = target - matrix @ coefficients
    variance = float(residual @ residual) / max(len(target) - len(coefficients), 1)
    half = Z95 * np.sqrt(np.diag(np.linalg.pinv(matrix.T @ matrix)) * variance)
    return ArxFit(
        a=coefficients[:a_order],
        b=coefficients[a_order:],
        a_ci=half[:a_order],
        b_ci=half[a_order:],
        delay=delay,
        noise_sd=float(np.sqrt(variance)),
        explained=explained_ratio(residual, target),
        white=is_white(residual),
    )


def explained_ratio(residual: Floats, y: Floats) -> float:
    """Return the share of the variance of `y` that the residual leaves explained."""
    total = float(np.sum((y - y.mean()) ** 2))
    return 1 - float(residual @ residual) / total if total > 0 else 0.0


def correlation_length(residual: Floats) -> float:
    """Return 1 + 2 sum of the autocorrelation up to its first zero: how many samples count as one, at least 1."""
    x = residual - residual.mean()
    spectrum = np.abs(np.fft.rfft(x, 2 * len(x))) ** 2
    rho = np.fft.irfft(spectrum)[: len(x)]
    if rho[0] <= 0:
        return 1.0
    rho = rho / rho[0]
    below = np.flatnonzero(rho <= 0)
    end = int(below[0]) if len(below) else len(rho)
    return float(max(1 + 2 * rho[1:end].sum(), 1.0))


def drifts(residual: Floats, y: Floats) -> bool:
    """Tell whether a fit leaves behind a lasting change: what was recorded is not one plant throughout.

    At some instant the means of the residual before and after it differ by more than four standard errors and by more
    than a tenth of the output's range. Noise that lasts is allowed for: either side must hold five independent samples.
    """
    n = len(residual)
    for cut in range(n // 10, n - n // 10, max(n // 20, 1)):
        before, after = residual[:cut], residual[cut:]
        length = max(correlation_length(before), correlation_length(after))
        if min(len(before), len(after)) < 5 * length:
            continue
        error = float(np.sqrt((before.var() / len(before) + after.var() / len(after)) * length))
        moved = abs(float(after.mean() - before.mean()))
        if moved > 4 * error and moved > 0.1 * float(np.ptp(y)):
            return True
    return False


def is_white(residual: Floats, lags: int = 20) -> bool:
    """Tell whether a residual passes the Ljung-Box test at 1 %.

    References
    ----------
    Ljung and Box, Biometrika 65 (1978).
    """
    x = residual - residual.mean()
    n, power = len(x), float(x @ x)
    if power == 0 or n <= lags + 1:
        return True
    rho = np.array([float(x[k:] @ x[:-k]) / power for k in range(1, lags + 1)])
    statistic = n * (n + 2) * float(np.sum(rho**2 / (n - np.arange(1, lags + 1))))
    return bool(statistic < chi2.ppf(0.99, lags))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ultimate:
    """The loop's ultimate point from a relay experiment: K_u = 4 M / (pi A), and its period."""

    gain: float
    period_s: float


def relay_ultimate(t_s: Floats, u: Floats, y: Floats) -> Ultimate:
    """Return the ultimate gain and period from a relay cycle, by the fundamentals of input and output.

    References
    ----------
    Astrom and Hagglund, Automatica 20 (1984) 645-651.
    """
    middle = (float(u.max()) + float(u.min())) / 2
    ups = np.flatnonzero((u[1:] > middle) & (u[:-1] <= middle))
    if len(ups) < 4:
        raise ValueError(f"{len(ups)} switches up are too few: a relay experiment needs at least 4 cycles")
    window = slice(int(ups[0]), int(ups[-1]))
    period = float(t_s[ups[-1]] - t_s[ups[0]]) / (len(ups) - 1)
    turn = np.exp(-2j * np.pi * t_s[window] / period)
    size_u = abs(np.mean((u[window] - u[window].mean()) * turn))
    size_y = abs(np.mean((y[window] - y[window].mean()) * turn))
    return Ultimate(gain=float(size_u / size_y), period_s=period)
