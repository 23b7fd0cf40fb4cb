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

# What theory itself leaves out. The linear-noise approximation: 10 % of a variance, so 5 % of a damping. Exact orbits:
# 1 % (the gate's sampling is half a period on average, not at each switch). A gate whose band
# is thin beside its noise opens early: 2 % more.
MODEL_DAMPING, MODEL_PERIOD, THIN_PERIOD = 0.05, 0.01, 0.02
THIN_BAND_RATIO = 0.02
SIGMAS = 3.0
# A swing: a tenth of itself, because the verdict reads it from bins that blunt a sharp peak (0.122 of a triangle of
# 0.132), and noise at its two ends: the largest of some ten independent draws lies 1.5 standard deviations out.
SWING_SHARE, SWING_NOISE = 0.1, 1.5
QUASI_SWING_SHARE = 0.35


def noise_kept_se(zeta: float, periods: float) -> tuple[float, float]:
    """Return the standard errors of period and damping, each as a share of itself, of one run of so many periods."""
    n = max(periods, 1.0)
    return sqrt(zeta / (2 * pi * n)) * exp(2 * pi * zeta), sqrt(1 / (2 * pi * n * zeta))


def relay_se(slots: float) -> float:
    """Return the standard error of a relay's mean period, as a share of it, for a run of some thirty periods."""
    return float(0.0029 * (512 / slots) ** 0.82)


def relay_bias(slots: float, band_turns: float) -> float:
    """Return how far the mean period of turns may lie from the exact orbit, as a share of it."""
    return MODEL_PERIOD + (THIN_PERIOD if band_turns <= THIN_BAND_RATIO * slots else 0.0)


def swing_tolerance(amplitude_ratio: float, noise_sd_ratio: float) -> float:
    """Return how far a run's swing may lie from the noise-free one, as a share of the scale.

    A run's swing is a median of highest minus lowest, which noise widens.
    """
    return SWING_SHARE * amplitude_ratio + SWING_NOISE * noise_sd_ratio


def quasi_swing_tolerance(amplitude_ratio: float) -> float:
    """Return the same for a cycle that noise keeps up, whose size is itself a random process."""
    return QUASI_SWING_SHARE * amplitude_ratio


def ring_se(slots: float, in_slot_ratio: float, amplitude_turns: float) -> float:
    """Return the standard error of a ring's damping, as a share of it; `amplitude_turns` where the window begins."""
    return 2 * sqrt(slots * in_slot_ratio * (1 - in_slot_ratio)) / max(amplitude_turns, 1e-9)


def limit(bias: float, se: float, seeds: int) -> float:
    """Return the tolerance on the mean of so many seeds."""
    return bias + SIGMAS * se / sqrt(seeds)
