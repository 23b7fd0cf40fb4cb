"""The noise of steady flow: variance and spectrum of a proportional gate's pool, by the linear-noise approximation.

    S_x(w) = lambda ((1 - |F*|^2) / w^2 + f |H|^2) / |1 + k H e^{-j w L}|^2          H = (1 - F*(j w T)) / (j w)

with lambda the throughput in turns/s, f the variance-to-mean ratio of releases (1 for Poisson, 0 for even pacing) and
F* the residence's transform: evenly paced turns are noisy only as far as their residences differ. Exponential:
(f + 1) lambda / |j w + 1/T + k e^{-j w L}|^2. Fixed residences make no noise at all.

A door cannot release less than nothing: noise that reaches the clip is answered with a smaller gain. For Gaussian x the
best gain is k P(not clipped), which fixes the variance, which fixes the probability.

References
----------
van Kampen, Stochastic Processes in Physics and Chemistry (2007), ch. X; Booton, Proc. Symp. Nonlinear Circuit Analysis
(1953), and Gelb and Vander Velde, Multiple-Input Describing Functions (1968), ch. 2, for the clip.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from policies.design.loops import Complexes, Floats, hopf_point
from policies.design.residence import EXPONENTIAL, Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyNoise:
    """Variance of busy slots (turns^2), the lag of the autocorrelation's first peak, and the peak's height."""

    variance_turns2: float
    period_s: float | None
    peak: float


@lru_cache(maxsize=16)
def _pool(residence_s: float, dead_time_s: float, shape: Shape) -> tuple[Floats, Complexes, Floats]:
    """Return a grid, H on it, and the noise of residences (1 - |F*|^2) / w^2: 24,001 even points and a tail."""
    # Near its edge the loop's peak is narrow but slow; beyond it the spectrum only falls.
    knee = 12 / min(dead_time_s, residence_s)
    omega = np.concatenate([np.linspace(0, knee, 24_001), np.geomspace(knee, 100 * knee, 8_001)[1:]])
    omega[0] = 1e-3 * omega[1]
    ended = shape.transform(1j * omega * residence_s)
    spread = np.maximum(1 - np.abs(ended) ** 2, 0.0) / omega**2
    spread[0] = spread[1]  # the limit; the quotient itself is lost in rounding
    return omega, (1 - ended) / (1j * omega), spread


def noise_spectrum(
    *,
    residence_s: float,
    dead_time_s: float,
    gain_per_s: float,
    throughput_per_s: float,
    release_fano: float = 1.0,
    shape: Shape = EXPONENTIAL,
) -> tuple[Floats, Floats]:
    """Return (angular frequency in rad/s, two-sided spectrum in turns^2 s)."""
    omega, held, spread = _pool(residence_s, dead_time_s, shape)
    loop = 1 + gain_per_s * held * np.exp(-1j * omega * dead_time_s)
    power = throughput_per_s * (spread + release_fano * np.abs(held) ** 2) / np.abs(loop) ** 2
    return omega, np.asarray(power)


def steady_noise(
    *,
    residence_s: float,
    dead_time_s: float,
    gain_per_s: float,
    throughput_per_s: float,
    release_fano: float = 1.0,
    shape: Shape = EXPONENTIAL,
) -> SteadyNoise:
    """Return what a stable proportional gate's pool does about its set point; meaningful below the Hopf gain only."""
    omega, power = noise_spectrum(
        residence_s=residence_s,
        dead_time_s=dead_time_s,
        gain_per_s=gain_per_s,
        throughput_per_s=throughput_per_s,
        release_fano=release_fano,
        shape=shape,
    )
    variance = _variance(omega, power)
    if variance < 1e-9:  # residences that do not differ
        return SteadyNoise(variance_turns2=0.0, period_s=None, peak=0.0)
    lags = np.linspace(0, 8 * (residence_s + dead_time_s), 600)
    w, s = omega[:24_001:4], power[:24_001:4]
    acf = np.asarray(np.trapezoid(s * np.cos(lags[:, None] * w), w, axis=1)) / np.pi / variance
    below = np.flatnonzero(acf < 0)
    if len(below) == 0:
        return SteadyNoise(variance_turns2=variance, period_s=None, peak=0.0)
    after = below[0] + np.flatnonzero(acf[below[0] :] > 0)
    if len(after) == 0:
        return SteadyNoise(variance_turns2=variance, period_s=None, peak=0.0)
    end = after[0] + int(np.argmax(acf[after[0] :] < 0)) if np.any(acf[after[0] :] < 0) else len(acf)
    top = int(after[0] + np.argmax(acf[after[0] : end]))
    # A parabola through the top and its neighbours places it between the lags.
    near = slice(max(top - 1, 0), top + 2)
    curve = np.polyfit(lags[near], acf[near], 2)
    period = float(-curve[1] / (2 * curve[0])) if curve[0] < 0 else float(lags[top])
    return SteadyNoise(variance_turns2=variance, period_s=period, peak=float(acf[top]))


def _variance(omega: Floats, power: Floats) -> float:
    # The tail above the grid falls as 1/w^2.
    return float(np.trapezoid(power, omega) / np.pi + power[-1] * omega[-1] / np.pi)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clipped:
    """A clipped gate in its own noise: the gain that is left of the law's, the level it holds, and its noise there."""

    gain_per_s: float
    level_turns: float
    noise: SteadyNoise


def clipped_gate(
    *,
    residence_s: float,
    dead_time_s: float,
    gain_per_s: float,
    setpoint_turns: float,
    rate_per_s: float,
    ceiling_per_s: float,
    shape: Shape = EXPONENTIAL,
) -> Clipped:
    """Return what u = clip(rate + k (r - x), 0, ceiling) does in a noisy pool, by statistical linearisation.

    The gain that is left lies below the Hopf gain whatever k is: noise never lets the loop grow, it lets it clip.
    """
    t, most = residence_s, 0.999 * hopf_point(residence_s, dead_time_s, shape).gain_per_s
    if shape.cv < 1e-6:
        level = (rate_per_s + gain_per_s * setpoint_turns) / (gain_per_s + 1 / t)
        none = SteadyNoise(variance_turns2=0.0, period_s=None, peak=0.0)
        return Clipped(gain_per_s=min(most, gain_per_s), level_turns=level, noise=none)

    def released(mean: float, sd: float) -> float:
        # The mean of a clipped Gaussian: asked for with mean m and deviation s.
        low, high = -mean / sd, (ceiling_per_s - mean) / sd
        inside = norm.cdf(high) - norm.cdf(low)
        full = ceiling_per_s * norm.sf(high) if np.isfinite(ceiling_per_s) else 0.0
        return float(mean * inside + sd * (norm.pdf(low) - norm.pdf(high)) + full)

    def balance(gain: float) -> tuple[float, float]:
        level = setpoint_turns
        for _ in range(3):
            omega, power = noise_spectrum(
                residence_s=t,
                dead_time_s=dead_time_s,
                gain_per_s=gain,
                throughput_per_s=level / t,
                release_fano=0.0,
                shape=shape,
            )
            sd = gain_per_s * float(np.sqrt(_variance(omega, power)))

            def short(x: float, sd: float = sd) -> float:
                return released(rate_per_s + gain_per_s * (setpoint_turns - x), sd) - x / t

            level = float(brentq(short, 0.0, setpoint_turns + rate_per_s / gain_per_s + 40 * sd / gain_per_s))
        asked = rate_per_s + gain_per_s * (setpoint_turns - level)
        return gain_per_s * float(norm.cdf((ceiling_per_s - asked) / sd) - norm.cdf(-asked / sd)), level

    left = min(most, gain_per_s)
    if balance(left)[0] < left:
        left = float(brentq(lambda gain: balance(gain)[0] - gain, 1e-3 * left, left, xtol=1e-6))
    level = balance(left)[1]
    noise_left = steady_noise(
        residence_s=t,
        dead_time_s=dead_time_s,
        gain_per_s=left,
        throughput_per_s=level / t,
        release_fano=0.0,
        shape=shape,
    )
    return Clipped(gain_per_s=left, level_turns=level, noise=noise_left)
