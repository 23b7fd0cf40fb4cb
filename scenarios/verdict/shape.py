"""The shape of a cycle that was found: amplitude, envelope, growth or decay, damping, spectrum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import fft, signal

from scenarios.verdict.types import Floats

# Half-width of the band around the fundamental: wide enough for a jittering period, short of the second harmonic.
BAND = 1.4


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """The fundamental's envelope: its values, mean, coefficient of variation and exponential trend.

    `growth` is in 1/sample (negative: decay), `log_change` the change of ln(envelope) from the window's first tenth to
    its last (0 where the trend disagrees), `clean` the share of the variance of ln(envelope) that the trend explains.
    `decay`, `decay_clean` are growth and share again, each sample weighted by its power.
    """

    values: Floats
    mean: float
    cv: float
    growth: float
    log_change: float
    clean: float
    decay: float
    decay_clean: float


def fundamental(x: Floats, period: float) -> Floats:
    """Return the analytic signal of `x` in the band [f/1.4, 1.4 f], f = 1/period, with raised-cosine edges."""
    pad = min(int(2 * period), len(x) - 1)
    padded = np.concatenate([2 * x[0] - x[pad:0:-1], x, 2 * x[-1] - x[-2 : -pad - 2 : -1]])
    n = fft.next_fast_len(len(padded))
    frequency = fft.fftfreq(n)
    octaves = np.abs(np.log(np.maximum(frequency, 1e-300) * period)) / np.log(BAND)
    weight = np.where(octaves < 0.8, 1.0, np.where(octaves < 1.2, 0.5 + 0.5 * np.cos(np.pi * (octaves - 0.8) / 0.4), 0))
    # The Nyquist frequency is its own conjugate: it is kept, once.
    sides = np.where(frequency > 0, 2.0, np.where(frequency == -0.5, 1.0, 0.0))
    analytic = fft.ifft(fft.fft(padded, n) * sides * weight)
    return np.asarray(analytic[pad : pad + len(x)])


def envelope(x: Floats, period: float) -> Envelope:
    """Return the envelope of the fundamental, a period trimmed from either end."""
    values = np.abs(fundamental(x, period))
    trim = min(int(period), len(values) // 8)
    values = values[trim : len(values) - trim]
    mean = float(values.mean())
    cv = float(values.std() / mean) if mean > 0 else 0.0
    growth, clean = _exponential(values)
    tenth = max(len(values) // 10, 1)
    ends = float(np.log(max(values[-tenth:].mean(), 1e-300) / max(values[:tenth].mean(), 1e-300)))
    log_change = ends if ends * growth > 0 else 0.0
    # The band's own ringing from the ends lasts some two periods, and the strong end weighs most: leave it out.
    ends_out = min(int(2 * period), len(values) // 8)
    decay, decay_clean = _weighted_exponential(values[ends_out : len(values) - ends_out])
    return Envelope(
        values=values,
        mean=mean,
        cv=cv,
        growth=growth,
        log_change=log_change,
        clean=clean,
        decay=decay,
        decay_clean=decay_clean,
    )


def _exponential(values: Floats) -> tuple[float, float]:
    # A decay is followed only until it sinks into its floor, at a seventh of the peak; so is a growth, mirrored.
    half = len(values) // 2
    falling = values[:half].mean() >= values[half:].mean()
    ordered = values if falling else values[::-1]
    low = np.flatnonzero(ordered < ordered.max() / 7)
    end = int(low[0]) if len(low) and low[0] > len(ordered) // 20 else len(ordered)
    y = np.log(np.maximum(ordered[:end], 1e-300))
    t = np.arange(len(y)) - (len(y) - 1) / 2
    slope = float(np.dot(t, y) / max(np.dot(t, t), 1e-300))
    spread = float(np.dot(y - y.mean(), y - y.mean()))
    clean = slope**2 * float(np.dot(t, t)) / spread if spread > 0 else 0.0
    return (slope if falling else -slope), clean


def _weighted_exponential(values: Floats) -> tuple[float, float]:
    # Noise of a fixed size moves ln(envelope) by its share of the envelope, so that a sample counts by its square: the
    # floor into which a decay sinks has no say. The weights come from the fit itself, first from the data.
    if len(values) < 3:
        return 0.0, 0.0
    t, y = np.arange(len(values), dtype=np.float64), np.log(np.maximum(values, 1e-300))
    weight = (values / max(float(values.max()), 1e-300)) ** 2
    slope, spread = 0.0, 0.0
    for _ in range(4):
        total = max(float(weight.sum()), 1e-300)
        middle, level = float(weight @ t) / total, float(weight @ y) / total
        along = float(weight @ (t - middle) ** 2)
        slope = float(weight @ ((t - middle) * (y - level))) / max(along, 1e-300)
        spread = float(weight @ (y - level) ** 2)
        clean = slope**2 * along / spread if spread > 0 else 0.0
        rate = 2 * slope * (t - middle)
        weight = np.exp(rate - rate.max())
    return slope, clean


def swing(x: Floats, period: float) -> float:
    """Return half of the median peak-to-peak over windows of one period."""
    width = max(round(period), 2)
    count = len(x) // width
    if count == 0:
        return float(np.ptp(x)) / 2
    windows = x[: count * width].reshape(count, width)
    return float(np.median(np.ptp(windows, axis=1))) / 2


def damping_of(decrement: float) -> float:
    """Return zeta of a logarithmic decrement a period; negative for growth."""
    return decrement / float(np.hypot(2 * np.pi, decrement))


def spectrum(x: Floats, step_s: float) -> tuple[Floats, Floats]:
    """Return (hertz, power density) by Welch's method, for pictures."""
    frequency, power = signal.welch(signal.detrend(x), 1 / step_s, nperseg=min(len(x), max(256, len(x) // 4)))
    return np.asarray(frequency), np.asarray(power)
