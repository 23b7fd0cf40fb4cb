"""Several cycles in one signal: two tones close together, and a cycle beside the harmonics of another."""

from __future__ import annotations

import numpy as np
from scipy import fft

from scenarios.verdict import acf as correlation
from scenarios.verdict import shape
from scenarios.verdict.cycle import FEW_SURROGATES, Candidate, best_candidate, red_noise_p
from scenarios.verdict.thresholds import Thresholds
from scenarios.verdict.types import Floats, Series

# Two tones in the band of the cycle leave this share of its power at most; one alone leaves more; each holds so much.
LEFT_BY_TWO, LEFT_BY_ONE, EACH = 0.15, 0.25, 0.1
# Half of the band about the cycle's frequency in which a second tone is looked for, as a ratio; tones elsewhere share a
# common period at which there is nothing: they must hold this share of all the power, the common period this at most.
NEAR, HELD, AT_COMMON = 1.45, 0.6, 0.02
# What is taken out about each harmonic, as a share of the fundamental's frequency; nearer periods are the same cycle.
NOTCH, SAME, SMALLEST = 0.15, 0.3, 0.2


def periods(series: Series, candidate: Candidate, limits: Thresholds) -> tuple[float, ...]:
    """Return the periods of all cycles that were found, the strongest first, seconds; empty: the candidate's alone."""
    step_s = candidate.factor * series.step_s
    two = two_tones(candidate.x, candidate.lag)
    if two is not None:
        return two[0] * step_s, two[1] * step_s
    beside = _beside(series, candidate, limits)
    return () if beside is None else (candidate.lag * step_s, beside)


def two_tones(x: Floats, lag: float) -> tuple[float, float] | None:
    """Return the periods of two tones that together make up a cycle, the stronger first, samples (None: there is one).

    A cycle kept up by noise spreads its power over its band; two tones hold nearly all of it between them. Two tones
    with no power at their common period (20 and 30 at 60) are two cycles, and not one with harmonics.
    """
    band = np.real(shape.fundamental(x, lag, NEAR))
    near = _pair(band, 1 / (lag * NEAR), NEAR / lag)
    if near is not None and near[2] < LEFT_BY_TWO and abs(near[0] - near[1]) * len(x) > 1.5:
        return 1 / near[0], 1 / near[1]
    flat = x - x.mean()
    common = _fitted(flat, (1 / lag,))
    if float(np.sum(common**2)) > AT_COMMON * float(np.sum(flat**2)):
        return None
    far = _pair(flat, max(LEAST_PERIODS / len(x), 0.2 / lag), 0.45)
    if far is None or far[2] > 1 - HELD:
        return None
    ratio = max(far[0] / far[1], far[1] / far[0])
    return None if abs(ratio - round(ratio)) < 0.03 else (1 / far[0], 1 / far[1])


LEAST_PERIODS = 9.0


def _pair(x: Floats, low: float, high: float) -> tuple[float, float, float] | None:
    # Frequencies of the two strongest tones, the stronger first, and the share of power that they leave.
    power = float(np.sum(x**2))
    if power <= 0:
        return None
    first = _peak(x, low, high)
    left = x - _fitted(x, (first,))
    if float(np.sum(left**2)) < LEFT_BY_ONE * power:
        return None
    second = _peak(left, low, high)
    for _ in range(3):  # each is placed again with the other taken out
        first = _peak(x - _fitted_part(x, (first, second), 1), low, high)
        second = _peak(x - _fitted_part(x, (first, second), 0), low, high)
    rest = float(np.sum((x - _fitted(x, (first, second))) ** 2)) / power
    parts = [float(np.sum(_fitted_part(x, (first, second), k) ** 2)) for k in (0, 1)]
    if min(parts) < EACH * max(parts):
        return None
    return (first, second, rest) if parts[0] >= parts[1] else (second, first, rest)


def _peak(x: Floats, low: float, high: float) -> float:
    # Frequency of the highest point of the periodogram within the band, cycles a sample; padded to an eighth of a bin.
    size = fft.next_fast_len(8 * len(x), real=True)
    power = np.abs(fft.rfft(x * np.hanning(len(x)), size)) ** 2
    start, end = int(size * low), min(int(np.ceil(size * high)) + 1, len(power))
    k = start + int(np.argmax(power[start:end]))
    return correlation.vertex(power, k, 1)[1] / size


def _basis(n: int, frequencies: tuple[float, ...]) -> Floats:
    t = 2 * np.pi * np.arange(n)
    return np.stack([part(f * t) for f in frequencies for part in (np.cos, np.sin)], axis=1)


def _fitted(x: Floats, frequencies: tuple[float, ...]) -> Floats:
    basis = _basis(len(x), frequencies)
    return np.asarray(basis @ np.linalg.lstsq(basis, x, rcond=None)[0])


def _fitted_part(x: Floats, frequencies: tuple[float, ...], which: int) -> Floats:
    basis = _basis(len(x), frequencies)
    weights = np.linalg.lstsq(basis, x, rcond=None)[0]
    part = slice(2 * which, 2 * which + 2)
    return np.asarray(basis[:, part] @ weights[part])


def _beside(series: Series, candidate: Candidate, limits: Thresholds) -> float | None:
    # The fundamental and its harmonics are taken out of the signal; a cycle in the rest must pass the same tests.
    lag = candidate.lag * candidate.factor
    flat = correlation.detrend(series.mean, candidate.high_pass)
    frequency = fft.rfftfreq(len(flat))
    order = frequency * lag
    far = (np.abs(order - np.round(order)) > NOTCH) | (np.round(order) < 1)
    rest = np.asarray(fft.irfft(fft.rfft(flat) * far, len(flat)))
    other = best_candidate(rest, candidate.high_pass)
    if other is None or other.height <= limits.acf_peak:
        return None
    ratio = lag / (other.lag * other.factor)
    floor = max(limits.amplitude_ratio * series.scale, SMALLEST * shape.size(candidate.x, candidate.lag))
    if (
        abs(ratio - 1) < SAME
        or (ratio > 1 and abs(ratio - round(ratio)) < 1.2 * NOTCH)
        or len(other.x) / other.lag < limits.min_periods
        or shape.size(other.x, other.lag) <= floor
        or red_noise_p(other, FEW_SURROGATES) >= limits.p_value
        or shape.envelope(other.x, other.lag).cv >= limits.envelope_cv
    ):
        return None
    return other.lag * other.factor * series.step_s
