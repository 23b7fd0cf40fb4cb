"""A linear loop with its dead time kept exact: margins, Nyquist and Bode data, roots, Hopf points.

A loop is a function of complex frequency, evaluated as it is (e^{-sL} and all); nothing is approximated by Pade.
The feedback is negative: the characteristic equation is 1 + G(s) = 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Complexes = NDArray[np.complex128]
Floats = NDArray[np.float64]
# The loop gain G at complex frequencies s, 1/s.
Response = Callable[[Complexes], Complexes]


def on_axis(omega_rad_s: Floats) -> Complexes:
    """Return j omega."""
    return np.asarray(1j * omega_rad_s, dtype=np.complex128)


def rational(numerator: list[float], denominator: list[float], dead_time_s: float = 0.0) -> Response:
    """Return s -> num(s)/den(s) e^{-s L}, coefficients from the highest power down."""

    def at(s: Complexes) -> Complexes:
        value: Complexes = np.polyval(numerator, s) / np.polyval(denominator, s) * np.exp(-s * dead_time_s)
        return value

    return at


@dataclass(frozen=True, slots=True, kw_only=True)
class Margins:
    """How far a loop is from the edge; inf where nothing is crossed.

    `gain_margin` is the factor on the gain (below 1: it must fall), `delay_margin_s` the extra dead time and
    `phase_margin_deg` the extra lag that bring it to the edge. `modulus_margin` = min |1 + G|. `disk_gain_low`,
    `disk_gain_high` and `disk_phase_deg` are the balanced disk margin: any simultaneous gain within the two and phase
    within the third keeps it stable.
    """

    gain_margin: float
    gain_crossing_rad_s: float
    phase_margin_deg: float
    phase_crossing_rad_s: float
    delay_margin_s: float
    modulus_margin: float
    disk_gain_low: float
    disk_gain_high: float
    disk_phase_deg: float


def frequency_grid(slowest_s: float, fastest_s: float, points: int = 20_000) -> Floats:
    """Return angular frequencies from a twentieth of 1/slowest to fifty times 1/fastest, logarithmic."""
    return np.geomspace(0.05 / slowest_s, 50 / fastest_s, points)


def margins(loop: Response, omega_rad_s: Floats) -> Margins:
    """Return the margins of a loop from its response on a grid, crossings refined by interpolation.

    Dead time winds the phase without end, so all crossings in the grid are looked at and the tightest is kept.

    References
    ----------
    Seiler, Packard and Gahinet, IEEE Control Systems 40(5) (2020), for the balanced disk margin.
    """
    g = loop(on_axis(omega_rad_s))
    size, phase = np.abs(g), np.unwrap(np.angle(g))
    # The phase crosses an odd multiple of pi where the loop gain is a negative real number.
    turns = (phase - np.pi) / (2 * np.pi)
    at = np.flatnonzero(np.floor(turns[1:]) != np.floor(turns[:-1]))
    gain_margin, gain_crossing = np.inf, np.nan
    for i in at:
        level = max(np.floor(turns[i]), np.floor(turns[i + 1]))
        share = (level - turns[i]) / (turns[i + 1] - turns[i])
        height = float(np.exp(np.interp(share, [0, 1], np.log(size[i : i + 2]))))
        if abs(np.log(height)) < abs(np.log(gain_margin)):
            gain_margin, gain_crossing = 1 / height, float(np.interp(share, [0, 1], omega_rad_s[i : i + 2]))
    phase_margin, phase_crossing, delay_margin = np.inf, np.nan, np.inf
    for i in np.flatnonzero((size[1:] < 1) != (size[:-1] < 1)):
        share = -np.log(size[i]) / np.log(size[i + 1] / size[i])
        omega = float(np.interp(share, [0, 1], omega_rad_s[i : i + 2]))
        lag = float(np.interp(share, [0, 1], phase[i : i + 2]))
        spare = float(np.mod(lag + np.pi, 2 * np.pi))
        delay_margin = min(delay_margin, spare / omega)
        if spare < phase_margin:
            phase_margin, phase_crossing = spare, omega
    disk = float(np.min(np.abs((1 + g) / (1 - g)))) if np.all(np.abs(1 - g) > 0) else 0.0
    # |(1-G)/(1+G)| = |S - T|; alpha = 2 / max|S - T| is the disk's size.
    alpha = min(2 * disk, 2.0 - 1e-12)
    return Margins(
        gain_margin=float(gain_margin),
        gain_crossing_rad_s=gain_crossing,
        phase_margin_deg=float(np.degrees(phase_margin)),
        phase_crossing_rad_s=phase_crossing,
        delay_margin_s=delay_margin,
        modulus_margin=float(np.min(np.abs(1 + g))),
        disk_gain_low=(2 - alpha) / (2 + alpha),
        disk_gain_high=(2 + alpha) / (2 - alpha),
        disk_phase_deg=float(np.degrees(2 * np.arctan(alpha / 2))),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Hopf:
    """The gain at which dx/dt = -x/T - k x(t - L) starts to swing, and how it swings there."""

    gain_per_s: float
    omega_rad_s: float

    @property
    def period_s(self) -> float:
        """Return the period at the critical gain, seconds."""
        return 2 * np.pi / self.omega_rad_s


def hopf_point(residence_s: float | None, dead_time_s: float) -> Hopf:
    """Return the Hopf point of a proportional gate: w L + atan(w T) = pi, k_c = sqrt(w^2 + 1/T^2).

    `residence_s` None is the integrator (a pool that stays full): k_c L = pi/2, period 4 L.
    """
    if residence_s is None:
        omega = np.pi / 2 / dead_time_s
        return Hopf(gain_per_s=omega, omega_rad_s=omega)
    t, dead = residence_s, dead_time_s

    def lag(omega: float) -> float:
        return float(np.pi - omega * dead - np.arctan(omega * t))

    from scipy.optimize import brentq  # slow to import, and reading a scenario imports this module

    omega = float(brentq(lag, 1e-9 / dead, np.pi / dead, xtol=1e-14))
    return Hopf(gain_per_s=float(np.hypot(omega, 1 / t)), omega_rad_s=omega)


def lag_root(*, residence_s: float, dead_time_s: float, gain_per_s: float, branch: int = 0) -> complex:
    """Return a root of s + 1/T + k e^{-sL} = 0: s = W_n(-k L e^{L/T}) / L - 1/T. Branch 0 is the rightmost."""
    t, dead = residence_s, dead_time_s
    from scipy.special import lambertw

    return complex(lambertw(-gain_per_s * dead * np.exp(dead / t), branch) / dead - 1 / t)


def discrete_roots(plant: list[float], gain: float, delay: int) -> Complexes:
    """Return closed-loop roots in z of the plant A(z) under gain z^{-d}: A(z) z^d + gain = 0. Exact, no Pade.

    `plant` holds the coefficients of A from the highest power down.
    """
    characteristic = np.concatenate([plant, np.zeros(delay)])
    characteristic[-1] += gain
    return np.asarray(np.roots(characteristic), dtype=np.complex128)


def rightmost_root(loop: Response, *, fastest_s: float, slowest_s: float) -> complex:
    """Return the rightmost root of 1 + G(s) = 0 with |Im s| below 12/fastest, found by Newton from a grid of starts.

    `fastest_s` is the shortest delay or lag of the loop, `slowest_s` the longest; roots further left than
    8/fastest are not looked for. Conjugates are the same root: Im s >= 0.
    """
    re = np.concatenate([-np.geomspace(8 / fastest_s, 0.02 / slowest_s, 24), np.linspace(0, 2 / fastest_s, 9)])
    im = np.concatenate([[0.0], np.geomspace(0.05 / slowest_s, 12 / fastest_s, 56)])
    s = (re[:, None] + 1j * im[None, :]).ravel().astype(np.complex128)
    step = 1e-6 / slowest_s
    with np.errstate(all="ignore"):
        for _ in range(60):
            here = 1 + loop(s)
            slope = (loop(s + step) - loop(s - step)) / (2 * step)
            move = here / slope
            far = np.abs(move) > 0.5 / fastest_s
            move[far] *= 0.5 / fastest_s / np.abs(move[far])
            s = np.where(np.isfinite(move), s - move, np.nan)
        residue = np.abs(1 + loop(s))
    good = s[(residue < 1e-8) & (s.imag >= -1e-9) & (s.imag < 13 / fastest_s) & (s.real < 4 / fastest_s)]
    if len(good) == 0:
        raise ValueError("no root of the loop near the axis")
    best = good[np.argmax(good.real)]
    return complex(best.real, abs(best.imag))


def root_locus(make: Callable[[float], Response], gains: Floats, *, fastest_s: float, slowest_s: float) -> Complexes:
    """Return the rightmost root for each gain, shape (gains,): what a gain does to the slowest mode."""
    return np.array([rightmost_root(make(float(k)), fastest_s=fastest_s, slowest_s=slowest_s) for k in gains])


def unstable_roots(loop: Response, *, open_loop_unstable: int = 0, omega_rad_s: Floats) -> int:
    """Count closed-loop roots right of the axis by Nyquist: windings of 1 + G about 0, plus open-loop unstable poles.

    The loop must be proper and free of poles on the axis. `omega_rad_s` is a fine grid that reaches where |G| < 1
    for good.
    """
    both = np.concatenate([-omega_rad_s[::-1], omega_rad_s])
    angle = np.unwrap(np.angle(1 + loop(on_axis(both))))
    clockwise = -(angle[-1] - angle[0]) / (2 * np.pi)
    return round(float(clockwise)) + open_loop_unstable


def to_control(numerator: list[float], denominator: list[float], dead_time_s: float, order: int = 6) -> object:
    """Return python-control's transfer function with the dead time as Pade of this order, for its plots and norms.

    Raises
    ------
    ValueError
        When the approximation is off by more than a degree where the loop gain crosses 1: then raise the order.
    """
    import control

    pade = control.tf(*control.pade(dead_time_s, order)) if dead_time_s > 0 else control.tf([1], [1])
    system = control.tf(numerator, denominator) * pade
    omega = np.geomspace(1e-3, 1e3, 4000) / max(dead_time_s, 1e-9)
    exact = rational(numerator, denominator, dead_time_s)(on_axis(omega))
    inside = omega[np.abs(exact) >= 1]
    if len(inside):
        worst = np.angle(system(1j * inside[-1]) / exact[np.abs(exact) >= 1][-1], deg=True)
        if abs(worst) > 1:
            raise ValueError(f"Pade of order {order} is off by {worst:.2f} degrees at the crossing: raise the order")
    return system
