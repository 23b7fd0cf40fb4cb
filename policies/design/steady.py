"""How full a steady loop keeps the pool: the chance that noise empties the ready buffer.

Pacing releases evenly, so the only noise is retirement's own: N renewal processes of rate lambda together, of spectrum
lambda (1 - |F*|^2) / |1 - F*|^2 (exponential: lambda). With u = -k W about the set point and departures d:

    W = -d / (s + k)            y = (u e^{-sL} - d) / s = (k e^{-sL} / (s + k) - 1) d / s       y: turns at decode

The pool loses what y falls short of N: utilisation = 1 - E[(N - y)+] / N, y normal about N + B*.

A ring of W turns over a dead time and N exponential slots is a closed network with a product form, so its utilisation
is exact: p(n) ~ L^(W-n) / (W-n)! x T^n / (1 2 .. min(n, N) N ..).
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln
from scipy.stats import norm

from policies.design.loops import Floats, Response
from policies.design.residence import EXPONENTIAL, Shape

ATOMIC = ("lognormal", "measured")
"""Shapes whose transform is a sum over points, so that fewer frequencies are affordable; the integrand is smooth."""


def retirement_spectrum(omega_rad_s: Floats, residence_s: float, shape: Shape) -> Floats:
    """Return the spectrum of a full pool's retirements over their rate: 1 for exponential residence, cv^2 at 0."""
    if shape.kind == "exponential":
        return np.ones_like(omega_rad_s)
    ended = shape.transform(1j * omega_rad_s * residence_s)
    # Near-fixed residences retire in bunches for ever: a line that no steady flow starts, and no noise between lines.
    return np.asarray(np.maximum(1 - np.abs(ended) ** 2, 0.0) / np.maximum(np.abs(1 - ended) ** 2, 1e-6))


def buffer_sd_turns(
    *,
    gain_per_s: float,
    dead_time_s: float,
    throughput_per_s: float,
    residence_s: float = 1.0,
    shape: Shape = EXPONENTIAL,
) -> float:
    """Return the standard deviation of turns at decode under paced work in flight with a full pool."""
    k, dead = gain_per_s, dead_time_s
    slow = 1e-4 * min(k, 1 / max(dead, 1e-9))
    omega = np.geomspace(slow, 2000 * max(k, 1 / max(dead, 1e-9)), 6_000 if shape.kind in ATOMIC else 60_000)
    s = 1j * omega
    gain = np.abs((k * np.exp(-s * dead) / (s + k) - 1) / s) ** 2 * retirement_spectrum(omega, residence_s, shape)
    area = float(np.trapezoid(gain, omega)) + gain[0] * omega[0] + 1 / omega[-1]
    return float(np.sqrt(throughput_per_s * area / np.pi))


def paced_utilization(
    *,
    slots: float,
    buffer_turns: float,
    gain_per_s: float,
    dead_time_s: float,
    throughput_per_s: float,
    shape: Shape = EXPONENTIAL,
) -> float:
    """Return the mean share of busy slots when a buffer of mean `buffer_turns` meets the noise of retirement."""
    sd = buffer_sd_turns(
        gain_per_s=gain_per_s,
        dead_time_s=dead_time_s,
        throughput_per_s=throughput_per_s,
        residence_s=slots / throughput_per_s,
        shape=shape,
    )
    return short_of(slots, buffer_turns, sd)


def at_decode_sd_turns(
    controller: Response,
    *,
    loop_delay_s: float,
    throughput_per_s: float,
    residence_s: float = 1.0,
    shape: Shape = EXPONENTIAL,
) -> float:
    """Return the standard deviation of turns at decode under feedback on them, with a full pool: y = -d / (s + C z).

    C is the controller and z its dead time; only retirement is noisy. Meaningful for a stable loop only.
    """
    omega = np.geomspace(
        1e-4 / max(loop_delay_s, 1e-3), 2000 / max(loop_delay_s, 1e-3), 6_000 if shape.kind in ATOMIC else 60_000
    )
    s = np.asarray(1j * omega, dtype=np.complex128)
    gain = 1 / np.abs(s + controller(s) * np.exp(-s * loop_delay_s)) ** 2
    gain = gain * retirement_spectrum(omega, residence_s, shape)
    area = float(np.trapezoid(gain, omega)) + gain[0] * omega[0] + 1 / omega[-1]
    return float(np.sqrt(throughput_per_s * area / np.pi))


def short_of(slots: float, buffer_turns: float, sd_turns: float) -> float:
    """Return the mean share of busy slots behind a buffer of this mean and standard deviation, by the normal law."""
    if sd_turns == 0.0:
        return 1.0 + min(buffer_turns, 0.0) / slots
    z = buffer_turns / sd_turns
    short = sd_turns * (norm.pdf(z) - z * norm.sf(z))
    return float(max(1 - short / slots, 0.0))


def ring_utilization(*, slots: int, cap_turns: int, residence_s: float, dead_time_s: float) -> float:
    """Return the exact share of busy slots of a closed ring with exponential residence.

    The dead time's own law does not matter, only its mean; for other residence laws this is near, not exact.
    """
    n = np.arange(cap_turns + 1)
    served = np.where(n <= slots, gammaln(n + 1), gammaln(slots + 1) + (n - slots) * np.log(slots))
    if dead_time_s == 0:
        return min(1.0, cap_turns / slots)
    weight = n * np.log(residence_s) - served + (cap_turns - n) * np.log(dead_time_s) - gammaln(cap_turns - n + 1)
    p = np.exp(weight - weight.max())
    return float(np.sum(np.minimum(n, slots) * p) / np.sum(p) / slots)
