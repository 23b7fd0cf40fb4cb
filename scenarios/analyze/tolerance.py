"""Tolerances between prediction and run: the error of the theory, and three standard errors of what is measured.

A cycle kept up by noise is a complex Ornstein-Uhlenbeck process of decay g = zeta w. From n periods of it

    g is known to  sqrt(1 / (2 pi n zeta))  of itself            (Fisher information of a decay rate)
    P to           sqrt(zeta / (2 pi n)) e^{2 pi zeta}  of itself    (Bartlett's formula at the first peak)

and a ring's bunches, of amplitude A in noise of a binomial count (variance N p (1 - p), p the share of a lap spent in a
slot), fade at a rate known to 2 sqrt(N p (1 - p)) / A of itself (Girsanov: information A^2 / (2 g) over noise g s^2).

A relay's periods scatter by noise at its switching: ten seeds of 1,050 s give 0.29 % for 512 slots, 1.6 % for 64.

References
----------
Bartlett, J. R. Stat. Soc. Suppl. 8 (1946); Kutoyants, Statistical Inference for Ergodic Diffusion Processes (2004).
"""

from __future__ import annotations

from math import exp, pi, sqrt

from scenarios.verdict.cycle import SAMPLES_GOOD

# What theory itself leaves out. The linear-noise approximation: 10 % of a variance, so 5 % of a damping. Exact orbits:
# 1 % (the gate's sampling is half a period on average, not at each switch). A gate whose band
# is thin beside its noise opens early: 2 % more.
MODEL_DAMPING, MODEL_PERIOD, THIN_PERIOD = 0.05, 0.01, 0.02
THIN_BAND_RATIO = 0.02
SIGMAS = 3.0
# A swing: theory's own error as for the period, and noise at its two ends: the largest of some ten independent draws
# lies 1.5 standard deviations out. What bins and ticks do comes on top (`blunted`, `ticked`).
MODEL_SWING, SWING_NOISE = 0.01, 1.5
QUASI_SWING_SHARE = 0.35


def noise_kept_se(zeta: float, periods: float) -> tuple[float, float]:
    """Return the standard errors of period and damping, each as a share of itself, of one run of so many periods."""
    n = max(periods, 1.0)
    return sqrt(zeta / (2 * pi * n)) * exp(2 * pi * zeta), sqrt(1 / (2 * pi * n * zeta))


def relay_se(slots: float) -> float:
    """Return the standard error of a relay's mean period, as a share of it, for a run of some thirty periods."""
    return float(0.0029 * (512 / slots) ** 0.82)


def relay_utilization_se(slots: float, span_s: float, cv: float) -> float:
    """Return the standard error of a relay's utilisation in one run over a window.

    The ten seeds of 1,050 s give a standard deviation of 0.0015 for 512 slots and 0.004 for 64: 0.034 / sqrt(slots),
    and it falls with the root of the time. Residences that differ less make less of it.
    """
    return float(0.034 * sqrt(1050.0 / (slots * span_s)) * min(max(cv, 0.1), 1.0))


def relay_bias(slots: float, band_turns: float) -> float:
    """Return how far the mean period of turns may lie from the exact orbit, as a share of it."""
    return MODEL_PERIOD + (THIN_PERIOD if band_turns <= THIN_BAND_RATIO * slots else 0.0)


def swing_tolerance(amplitude_ratio: float, noise_sd_ratio: float) -> float:
    """Return how far a run's swing may lie from the noise-free one, as a share of the scale.

    A run's swing is a median of highest minus lowest, which noise widens.
    """
    return MODEL_SWING * amplitude_ratio + SWING_NOISE * noise_sd_ratio


def blunted(amplitude_ratio: float, period_s: float, bin_s: float) -> float:
    """Return by how much a swing may read short because bins blunt its peaks, as a share of the scale.

    A peak between slopes of s a second lies at most s w / 2 above the mean of the highest bin of width w, and a
    triangle of amplitude A has s = 4 A / P, so that its amplitude reads short by at most 2 A w / P (by A w / P where a
    bin is centred at the peak). A wave that rests at one end for up to half of its period has twice the slope at the
    other end alone: the same. The verdict joins bins while a period keeps `SAMPLES_GOOD` of them: w is up to P / 16.
    """
    return 2.0 * amplitude_ratio * max(bin_s / max(period_s, 1e-9), 1.0 / SAMPLES_GOOD)


def ticked(amplitude_ratio: float, period_s: float, tick_s: float) -> float:
    """Return how far ticks of h seconds may move a swing: a switch h / 2 later or sooner moves an end by s h / 2."""
    return 2.0 * amplitude_ratio * tick_s / max(period_s, 1e-9)


def quasi_swing_tolerance(amplitude_ratio: float) -> float:
    """Return the same for a cycle that noise keeps up, whose size is itself a random process."""
    return QUASI_SWING_SHARE * amplitude_ratio


def ring_se(slots: float, in_slot_ratio: float, amplitude_turns: float) -> float:
    """Return the standard error of a ring's damping, as a share of it; `amplitude_turns` where the window begins."""
    return 2 * sqrt(slots * in_slot_ratio * (1 - in_slot_ratio)) / max(amplitude_turns, 1e-9)


def limit(bias: float, se: float, seeds: int) -> float:
    """Return the tolerance on the mean of so many seeds."""
    return bias + SIGMAS * se / sqrt(seeds)
