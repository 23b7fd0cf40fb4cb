"""The noise of steady flow: variance and spectrum of a proportional gate's pool, by the linear-noise approximation.

    dx/dt = -x/T - k x(t - L) + xi         S_x(w) = (F + 1) lambda / |j w + 1/T + k e^{-j w L}|^2

with lambda the throughput in turns/s and F the variance-to-mean ratio of releases (1 for Poisson, 0 for even pacing).

A door cannot release less than nothing: noise that reaches the clip is answered with a smaller gain. For Gaussian x the
best gain is k P(not clipped), which fixes the variance, which fixes the probability.

References
----------
van Kampen, Stochastic Processes in Physics and Chemistry (2007), ch. X; Booton, Proc. Symp. Nonlinear Circuit Analysis
(1953), and Gelb and Vander Velde, Multiple-Input Describing Functions (1968), ch. 2, for the clip.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from policies.design.loops import Floats, hopf_point


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyNoise:
    """Variance of busy slots (turns^2), the lag of the autocorrelation's first peak, and the peak's height."""

    variance_turns2: float
    period_s: float | None
    peak: float


def noise_spectrum(
    *, residence_s: float, dead_time_s: float, gain_per_s: float, throughput_per_s: float, release_fano: float = 1.0
) -> tuple[Floats, Floats]:
    """Return (angular frequency in rad/s, two-sided spectrum in turns^2 s) on a grid: 24,001 even points and a tail."""
    # Near its edge the loop's peak is narrow but slow; beyond it the spectrum only falls.
    knee = 12 / min(dead_time_s, residence_s)
    omega = np.concatenate([np.linspace(0, knee, 24_001), np.geomspace(knee, 100 * knee, 8_001)[1:]])
    loop = 1j * omega + 1 / residence_s + gain_per_s * np.exp(-1j * omega * dead_time_s)
    return omega, np.asarray((1 + release_fano) * throughput_per_s / np.abs(loop) ** 2)


def steady_noise(
    *, residence_s: float, dead_time_s: float, gain_per_s: float, throughput_per_s: float, release_fano: float = 1.0
) -> SteadyNoise:
    """Return what a stable proportional gate's pool does about its set point; meaningful below the Hopf gain only."""
    omega, power = noise_spectrum(
        residence_s=residence_s,
        dead_time_s=dead_time_s,
        gain_per_s=gain_per_s,
        throughput_per_s=throughput_per_s,
        release_fano=release_fano,
    )
    variance = _variance(omega, power)
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
) -> Clipped:
    """Return what u = clip(rate + k (r - x), 0, ceiling) does in a noisy pool, by statistical linearisation.

    The gain that is left lies below the Hopf gain whatever k is: noise never lets the loop grow, it lets it clip.
    """
    t, most = residence_s, 0.999 * hopf_point(residence_s, dead_time_s).gain_per_s

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
                residence_s=t, dead_time_s=dead_time_s, gain_per_s=gain, throughput_per_s=level / t, release_fano=0.0
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
        residence_s=t, dead_time_s=dead_time_s, gain_per_s=left, throughput_per_s=level / t, release_fano=0.0
    )
    return Clipped(gain_per_s=left, level_turns=level, noise=noise_left)
