"""Whether a loop with any residence is stable, and how much more delay, in the pipeline or in the readings, it stands.

A loop through the pipeline is G(s) = A(s) + B(s) e^{-sL}: A is the feedback that does not pass the dead time (turns in
flight are counted from their release on). More age of the readings delays all of G; a longer pipeline delays B alone:

    observation    G(jw) e^{-jwd} = -1         pipeline    B(jw) e^{-jw(L+d)} = -(1 + A(jw))

so the two margins differ wherever A is not zero.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from policies.design.loops import Floats, Response
from policies.design.tandem_model import Linear, Regime, TandemModel

MOST_POINTS = 30_000
"""Frequencies of a grid; a grid that would need more goes on logarithmically where the pipeline's share is small."""
REACH = 4 * np.pi
"""A grid ends this far over the shortest delay: beyond the first crossing of a loop that falls with 1/s (pi/2)."""


def loop_grid(model: TandemModel, slowest_s: float) -> Floats:
    """Return angular frequencies that resolve every delay of a loop and end beyond the shortest of them.

    Logarithmic from a twentieth of 1/slowest, then in even steps of an eighth of a turn of the longest delay.
    """
    longest = model.dead_time_s + model.residence_s + model.observation_s
    delays = [span for span in (model.dead_time_s, model.observation_s, model.residence_s) if span > 0]
    step, reach = np.pi / (8 * longest), REACH / min(delays)
    knee = 16 * step
    slow = np.geomspace(min(0.05 / slowest_s, knee / 10), knee, 2000)
    even = np.arange(knee + step, min(reach, knee + MOST_POINTS * step), step)
    fast = np.geomspace(even[-1], reach, 10_000)[1:] if len(even) and even[-1] < 0.99 * reach else np.empty(0)
    return np.concatenate([slow, even, fast])


def unstable_count(loop: Response, omega_rad_s: Floats) -> int:
    """Count the closed loop's roots right of the axis: turns of 1 + G about 0 on a line just right of the axis.

    The loop has no pole right of the axis, and the grid reaches where |G| < 1 for good; a pole at 0 is allowed.
    """
    s = 1e-3 * float(omega_rad_s[0]) + 1j * omega_rad_s
    value = 1 + loop(np.asarray(s, dtype=np.complex128))
    start = np.angle(value[0])
    turned = float(np.unwrap(np.angle(value))[-1] - start)
    # The half below the real axis mirrors this one; at the grid's ends 1 + G is all but real.
    return int(max(round(-float(turned + start) / np.pi), 0))


def far_gain_margin(loop: Response, omega_rad_s: Floats) -> float:
    """Return the gain margin at the first frequency of lag pi with a loop gain below 1; inf where the grid has none."""
    g = loop(np.asarray(1j * omega_rad_s, dtype=np.complex128))
    for i in np.flatnonzero((g.imag[:-1] * g.imag[1:] < 0) & (g.real[:-1] < 0) & (g.real[1:] < 0)):
        share = g.imag[i] / (g.imag[i] - g.imag[i + 1])
        size = abs(g.real[i] + share * (g.real[i + 1] - g.real[i]))
        if 0 < size < 1:
            return float(1 / size)
    return np.inf


def pipeline_margin_s(linear: Linear, model: TandemModel, regime: Regime, omega_rad_s: Floats) -> float:
    """Return how much longer the true pipeline may be before the loop is at its edge; inf where no length does it.

    The law goes on with the dead time that it was told. 0 where the loop is unstable already.
    """
    s = np.asarray(1j * omega_rad_s, dtype=np.complex128)
    if unstable_count(linear.loop(model, regime), omega_rad_s) > 0:
        return 0.0
    past = linear.loop(replace(model, dead_time_s=0.0), regime)(s)
    around = linear.around(model, regime)(s)
    through = past - around
    size = np.abs(through) / np.maximum(np.abs(1 + around), 1e-300)
    margin_s = np.inf
    for i in np.flatnonzero((size[1:] > 1) != (size[:-1] > 1)):
        share = -np.log(size[i]) / np.log(size[i + 1] / size[i])
        omega = float(np.interp(share, [0, 1], omega_rad_s[i : i + 2]))
        here = np.array([1j * omega], dtype=np.complex128)
        a = linear.around(model, regime)(here)[0]
        b = linear.loop(replace(model, dead_time_s=0.0), regime)(here)[0] - a
        lag = float(np.mod(-np.angle(-(1 + a) / b), 2 * np.pi)) / omega
        turn = 2 * np.pi / omega
        more = float(np.mod(lag - model.dead_time_s, turn))
        margin_s = min(margin_s, more)
    return margin_s
