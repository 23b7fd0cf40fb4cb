"""The shape of a cycle that was found: amplitude, envelope, growth or decay, damping, spectrum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import fft

from scenarios.verdict import acf as correlation
from scenarios.verdict.types import Floats

# Half-width of the band around the fundamental: wide enough for a jittering period, short of the second harmonic.
BAND = 1.4
# From the third quarter of the window to the last one a growing envelope gains more than this factor.
GROWS = 1.15
# A pulse train has a high kurtosis (d (1 - d) is its variance at duty d), and little of its power in its fundamental.
# Two tones of 2 and 3 cycles in a period have nothing at all at that period.
PULSE_KURTOSIS, PULSE_SHARE, NOTHING_SHARE = 4.5, 0.35, 0.02
# Of the windows of one period, those with the most power, in this share, are left out to see whether the rest repeats.
LARGEST = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """The fundamental's envelope: its values, mean, coefficient of variation and exponential trend.

    `growth` is in 1/sample (negative: decay), `log_change` the change of ln(envelope) from the window's first tenth to
    its last (0 where the trend disagrees), `clean` the share of the variance of ln(envelope) that the trend explains.
    `decay`, `decay_clean` are growth and share again, each sample weighted by its power. `still_grows` tells whether
    the last quarter is clearly larger than the third.
    """

    values: Floats
    mean: float
    cv: float
    growth: float
    log_change: float
    clean: float
    decay: float
    decay_clean: float
    still_grows: bool


def fundamental(x: Floats, period: float, band: float = BAND) -> Floats:
    """Return the analytic signal of `x` in the band [f/band, band f], f = 1/period, with raised-cosine edges."""
    pad = min(int(2 * period), len(x) - 1)
    padded = np.concatenate([2 * x[0] - x[pad:0:-1], x, 2 * x[-1] - x[-2 : -pad - 2 : -1]])
    n = fft.next_fast_len(len(padded))
    frequency = fft.fftfreq(n)
    octaves = np.abs(np.log(np.maximum(np.abs(frequency), 1e-300) * period)) / np.log(band)
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
        still_grows=_still_grows(values),
    )


def _still_grows(values: Floats) -> bool:
    # A growth of 2.5 over the window is one of 1.26 from each quarter to the next; one that has ended stays level.
    third, last = np.array_split(values, 4)[2:]
    return bool(last.mean() > GROWS * third.mean())


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


def size(x: Floats, period: float, strongest: bool = False) -> float:
    """Return the amplitude of a cycle: that of its fundamental, or half of the swing where the fundamental
    holds little: a train of short pulses, two tones.

    With `strongest`, the fundamental's 0.95 quantile, else its root mean square.
    """
    around = np.abs(fundamental(x, period))
    variance = float(x.var())
    share = float(np.mean(around**2)) / (2 * variance) if variance > 0 else 1.0
    kurtosis = float(np.mean((x - x.mean()) ** 4)) / variance**2 if variance > 0 else 0.0
    if share < NOTHING_SHARE or (share < PULSE_SHARE and kurtosis > PULSE_KURTOSIS):
        return swing(x, period)
    return float(np.quantile(around, 0.95)) if strongest else float(np.sqrt(np.mean(around**2)))


def repeats_without_the_largest(x: Floats, period: float) -> float:
    """Return the correlation a period apart when the windows with the most power are left out; 0 where none is left.

    A few great bursts have none without them; pulses that come every period keep it.
    """
    best = 0.0
    for lag in (int(period), int(np.ceil(period))):
        count = len(x) // lag - 1 if lag > 0 else 0
        if count < 4:
            continue
        here = x[: count * lag].reshape(count, lag)
        after = x[lag : (count + 1) * lag].reshape(count, lag)
        power = np.sum(here**2, axis=1) + np.sum(after**2, axis=1)
        kept = np.argsort(power, kind="stable")[: count - max(int(np.ceil(LARGEST * count)), 2)]
        a, b = here[kept], after[kept]
        middle = (a.mean() + b.mean()) / 2
        norm = float(np.sum((a - middle) ** 2) + np.sum((b - middle) ** 2)) / 2
        if norm > 1e-12 * float(np.sum(x**2)):
            best = max(best, float(np.sum((a - middle) * (b - middle))) / norm)
    return best


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
    """Return (hertz, power density) by Welch's method, for pictures.

    Half-overlapping segments under a Hann window, each less its mean: scipy.signal.welch on `x` without its line, whose
    import alone costs more than a short run.
    """
    length = min(len(x), max(256, len(x) // 4))
    step = max(length - length // 2, 1)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / length)
    segments = np.lib.stride_tricks.sliding_window_view(correlation.without_line(x), length)[::step]
    transforms = np.fft.rfft((segments - segments.mean(axis=1, keepdims=True)) * window, axis=1)
    power: Floats = np.mean(np.abs(transforms) ** 2, axis=0) * step_s / float(window @ window)
    power[1 : (length + 1) // 2] *= 2  # a frequency and its mirror; nothing mirrors zero, nor the highest of an even n
    return np.asarray(np.fft.rfftfreq(length, step_s), dtype=np.float64), power
