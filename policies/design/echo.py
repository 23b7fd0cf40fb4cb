"""Modes of one-for-one release: a ring that carries bunches round, and how pacing wears them down.

A ring of dead time L and Erlang-k residence of mean T returns each retirement as an admission at once:

    (1 + s T / k)^k e^{s L} = 1          s in 1/s

Its roots lie near the multiples of 2 pi / (L + T); they never cross the imaginary axis, and their damping comes from
the dispersion of residence alone: zeta ~ pi cv^2 with cv = sd(residence) / (L + T).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import lambertw

from policies.design.residence import Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """An oscillating mode: its root in 1/s, and what follows from it."""

    root_per_s: complex

    @property
    def period_s(self) -> float:
        """Return the period of the mode, seconds (inf for a real root)."""
        return float(2 * np.pi / abs(self.root_per_s.imag)) if self.root_per_s.imag else float("inf")

    @property
    def damping_ratio(self) -> float:
        """Return zeta: 0 undamped, negative growing."""
        return float(-self.root_per_s.real / abs(self.root_per_s)) if self.root_per_s else 0.0


def ring_mode(*, residence_s: float, dead_time_s: float, stages: int, harmonic: int = 1) -> Mode:
    """Return the slowest-decaying mode of the given harmonic of a ring with Erlang residence.

    Taking the k-th root turns the equation into (1 + sT/k) e^{sL/k} = e^{2 pi i n / k}, which Lambert's W solves.
    """
    t, dead, k = residence_s, dead_time_s, stages
    turn = np.exp(2j * np.pi * harmonic / k)
    if dead == 0:
        return Mode(root_per_s=complex(k / t * (turn - 1)))
    best: complex | None = None
    for branch in range(-2, 3):
        w = complex(lambertw(dead / t * turn * np.exp(dead / t), branch))
        s = k * (w / dead - 1 / t)
        # The equation in logarithms, where a branch that is no solution cannot overflow: zero, up to whole turns.
        rest = k * np.log(1 + s * t / k) + s * dead
        solves = abs(rest - 2j * np.pi * round(rest.imag / (2 * np.pi))) < 1e-6
        if s.imag > 1e-9 and solves and (best is None or s.real > best.real):
            best = s
    if best is None:
        raise ValueError(f"no mode of harmonic {harmonic} for {stages} stages")
    return Mode(root_per_s=best)


def ring_mode_of(*, residence_s: float, dead_time_s: float, shape: Shape) -> Mode:
    """Return the slowest oscillating mode of a ring with residence of any shape, F*(sT) e^{-sL} = 1, by Newton.

    It starts at zeta ~ pi cv^2; where dispersion leaves no oscillation to speak of, the start is the answer.
    """
    if shape.kind in ("exponential", "erlang"):
        return ring_mode(residence_s=residence_s, dead_time_s=dead_time_s, stages=shape.stages)
    lap_s = residence_s + dead_time_s
    omega = 2 * np.pi / lap_s
    zeta = ring_damping(residence_s=residence_s, dead_time_s=dead_time_s, residence_cv=shape.cv)
    start = omega * complex(-min(zeta, 0.9), 1.0)
    s, step = start, 1e-6 * omega
    for _ in range(40):

        def rest(at: complex) -> complex:
            return complex(shape.transform(np.array([at * residence_s]))[0] * np.exp(-at * dead_time_s) - 1)

        slope = (rest(s + step) - rest(s - step)) / (2 * step)
        move = rest(s) / slope if slope != 0 else 0j
        s -= move if abs(move) < 0.1 * omega else 0.1 * omega * move / abs(move)
    solved = abs(rest(s)) < 1e-8 and 0.5 < s.imag / omega < 1.5 and s.real < 1e-9
    return Mode(root_per_s=s if solved else start)


def ring_damping(*, residence_s: float, dead_time_s: float, residence_cv: float) -> float:
    """Return zeta ~ pi cv^2 for any law of residence, cv taken over the whole round trip; valid well below 1."""
    cv = residence_cv * residence_s / (residence_s + dead_time_s)
    return float(np.pi * cv**2)


def ring_utilization(*, slots: float, cap_turns: float, residence_s: float, dead_time_s: float) -> float:
    """Return the mean share of busy slots with `cap_turns` in flight that never queue: min(1, W/N T/(L+T))."""
    return min(1.0, cap_turns / slots * residence_s / (residence_s + dead_time_s))
