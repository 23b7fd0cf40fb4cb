"""Autocorrelation by FFT, its first clear peak, and a period refined over many peaks."""

from __future__ import annotations

import numpy as np
from scipy import fft, ndimage

from scenarios.verdict.types import Floats


def rebin(x: Floats, factor: int) -> Floats:
    """Return means of `factor` neighbours along the last axis; a remainder at the end is dropped."""
    if factor == 1:
        return x
    n = x.shape[-1] // factor * factor
    means: Floats = x[..., :n].reshape(*x.shape[:-1], -1, factor).mean(axis=-1)
    return means


def without_line(x: Floats) -> Floats:
    """Return `x` less its line of least squares, along the last axis."""
    t = np.arange(x.shape[-1]) - (x.shape[-1] - 1) / 2
    centred = x - x.mean(axis=-1, keepdims=True)
    slope = centred @ t / (float(t @ t) or 1.0)
    flat: Floats = centred - slope[..., None] * t
    return flat


def ranks(x: Floats) -> Floats:
    """Return the ranks of values, from 1; equal values share the mean of theirs."""
    _, place, count = np.unique(x, return_inverse=True, return_counts=True)
    mean_ranks: Floats = np.cumsum(count) - (count - 1) / 2
    return mean_ranks[place]


def detrend(x: Floats, high_pass: bool) -> Floats:
    """Remove the line, and with `high_pass` also whatever has fewer than about six periods in the record.

    The high pass takes away a Gaussian mean of width n/20: a cycle with ten periods in the record keeps 99 % of its
    amplitude, one with three keeps a third.
    """
    flat = without_line(x)
    if not high_pass:
        return flat
    slow = ndimage.gaussian_filter1d(flat, x.shape[-1] / 20, axis=-1, mode="reflect")
    residual: Floats = flat - slow
    return residual


def autocorrelation(x: Floats) -> Floats:
    """Return the biased autocorrelation of detrended `x` (..., n) at lags 0 .. n//2 - 1; zeros for a flat series."""
    n = x.shape[-1]
    centred = x - x.mean(axis=-1, keepdims=True)
    size = fft.next_fast_len(2 * n, real=True)
    spectrum = fft.rfft(centred, size, axis=-1)
    power = spectrum.real**2 + spectrum.imag**2
    raw = fft.irfft(power, size, axis=-1)[..., : max(n // 2, 2)]
    zero = raw[..., :1]
    result: Floats = np.divide(raw, zero, out=np.zeros_like(raw), where=zero > 0)
    return result


def first_peaks(acf: Floats) -> tuple[Floats, Floats]:
    """Find the top of the first positive lobe after the first negative one, row by row.

    Parameters
    ----------
    acf : ndarray
        Autocorrelations, shape (rows, lags).

    Returns
    -------
    heights, lags : ndarray
        Shape (rows,); height 0 and lag NaN where there is no such lobe. The lag is interpolated by a parabola.
    """
    rows, lags = acf.shape
    index = np.arange(lags)
    below, above = acf < 0, acf > 0
    down = np.where(below.any(axis=1), below.argmax(axis=1), lags)
    after = above & (index >= down[:, None])
    up = np.where(after.any(axis=1), after.argmax(axis=1), lags)
    beyond = below & (index > up[:, None])
    end = np.where(beyond.any(axis=1), beyond.argmax(axis=1), lags)
    lobe = (index >= up[:, None]) & (index < end[:, None])
    top = np.where(lobe, acf, -np.inf).argmax(axis=1)
    heights, places = np.zeros(rows), np.full(rows, np.nan)
    for row in np.flatnonzero(up < lags):
        heights[row], places[row] = vertex(acf[row], int(top[row]), 1)
    return heights, places


def vertex(y: Floats, k: int, half_width: int) -> tuple[float, float]:
    """Return (height, place) of the parabola fitted to `y` around index k, kept within the points that it used."""
    low, high = max(k - half_width, 0), min(k + half_width, len(y) - 1)
    if high - low < 2 or k in (low, high):
        return float(y[k]), float(k)
    at = np.arange(low, high + 1) - k
    # Normal equations of a quadratic fit; the points are few and near zero, so the closed form is well conditioned.
    curve, slope, base = np.polyfit(at, y[low : high + 1], 2)
    if curve >= 0:
        return float(y[k]), float(k)
    place = float(np.clip(-slope / (2 * curve), at[0], at[-1]))
    return float(base + slope * place + curve * place**2), k + place


def peak_train(acf: Floats, lag: float, floor: float) -> tuple[Floats, Floats]:
    """Follow the peaks near lag, 2 lag, 3 lag ... while they stand above `floor`.

    Returns
    -------
    lags, heights : ndarray
        Place and height of each peak found, in order; heights corrected for the overlap lost at long lags.
    """
    n = 2 * len(acf)
    unbiased = acf * (n / (n - np.arange(len(acf))))
    lags: list[float] = []
    heights: list[float] = []
    period, reach = lag, max(int(lag / 4), 1)
    while (guess := (len(lags) + 1) * period) + reach < len(acf):
        low = round(guess) - reach
        k = low + int(np.argmax(unbiased[low : low + 2 * reach + 1]))
        height, place = vertex(unbiased, k, max(int(period / 8), 1))
        # The same peak found again, or one far from where the next should be, ends the train.
        if height < floor or not 0.5 * lag < place - (lags[-1] if lags else 0.0) < 1.5 * lag:
            break
        lags.append(place)
        heights.append(height)
        period = place / len(lags)
    return np.asarray(lags), np.asarray(heights)


def refined_period(lags: Floats) -> float:
    """Return the slope through the origin of peak places against their number: one period, in samples."""
    m = np.arange(1, len(lags) + 1)
    return float(np.dot(m, lags) / np.dot(m, m))


def crossing_regularity(acf: Floats, most: int = 11) -> float | None:
    """Return r = mean / (3 sd) of the gaps between zero crossings; above 1 they are regular (None: too few).

    References
    ----------
    Thornhill, Huang and Zhang, J. Process Control 13 (2003) 91-100.
    """
    places = np.flatnonzero(np.diff(np.signbit(acf)))[:most]
    if len(places) < 4:
        return None
    here = acf[places]
    exact = places + here / (here - acf[places + 1])
    gaps = np.diff(exact)
    spread = float(gaps.std(ddof=1))
    return float(gaps.mean() / (3 * spread)) if spread > 0 else float("inf")
