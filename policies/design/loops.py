"""A linear loop with its dead time kept exact: margins, frequency response, roots, Hopf points.

A loop is a function of complex frequency, evaluated as it is (e^{-sL} and all); its feedback is negative:
1 + G(s) = 0. python-control computes the margins from that exact response. In the time domain it has no exact dead
time: `Rational.system` gives it a Pade approximation for step responses and root loci. Roots and Hopf points are exact.
python-control is imported where it is used: that takes over a second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policies.design.residence import EXPONENTIAL, Shape

Complexes = NDArray[np.complex128]
Floats = NDArray[np.float64]
# The loop gain G at complex frequencies s, 1/s.
Response = Callable[[Complexes], Complexes]
PADE_ORDER = 8
LEAST_GAIN = 0.01
SPLINE_POINTS = 8  # the fewest through which python-control's cubic spline goes


def on_axis(omega_rad_s: Floats) -> Complexes:
    """Return j omega."""
    return np.asarray(1j * omega_rad_s, dtype=np.complex128)


@dataclass(frozen=True, slots=True)
class Rational:
    """num(s)/den(s) e^{-s L}, coefficients from the highest power down: a `Response`, or a python-control system."""

    numerator: Sequence[float]
    denominator: Sequence[float]
    dead_time_s: float = 0.0

    def __call__(self, s: Complexes) -> Complexes:
        """Return the exact value at complex frequencies."""
        value: Complexes = np.polyval(self.numerator, s) / np.polyval(self.denominator, s)
        return value * np.exp(-s * self.dead_time_s)

    def system(self, order: int = PADE_ORDER) -> Any:  # Any: python-control publishes no types
        """Return python-control's transfer function, the dead time as a Pade approximation of this order."""
        import control

        system = control.tf(list(self.numerator), list(self.denominator))
        return system * control.tf(*control.pade(self.dead_time_s, order)) if self.dead_time_s > 0 else system


def pade_error_deg(loop: Response, system: Any, omega_rad_s: Floats) -> float:  # Any: as above
    """Return the largest phase error of a system against the exact loop, degrees, where the loop gain is above 1."""
    exact = loop(on_axis(omega_rad_s))
    inside = np.abs(exact) >= 1
    if not inside.any():
        return 0.0
    return float(np.max(np.abs(np.angle(system(on_axis(omega_rad_s[inside])) / exact[inside], deg=True))))


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


def frequency_grid(slowest_s: float, fastest_s: float, points: int = 1000) -> Floats:
    """Return angular frequencies from a twentieth of 1/slowest to fifty times 1/fastest, logarithmic."""
    return np.geomspace(0.05 / slowest_s, 50 / fastest_s, points)


def frequency_response(loop: Response, omega_rad_s: Floats) -> Any:  # Any: as above
    """Return python-control's frequency response data of a loop, dead time exact."""
    import control

    return control.frd(loop(on_axis(omega_rad_s)), omega_rad_s)


def margins(loop: Response, omega_rad_s: Floats) -> Margins:
    """Return the margins of a loop from its exact response on a grid, the tightest of all crossings.

    python-control finds the crossings; it has no disk margin for a response with dead time, so that is computed here.

    References
    ----------
    Seiler, Packard and Gahinet, IEEE Control Systems 40(5) (2020), for the balanced disk margin.
    """
    import control

    g = loop(on_axis(omega_rad_s))
    # Dead time winds the phase without end; crossings at a loop gain below 1/100 are no margin anyone is near.
    above = np.flatnonzero(np.abs(g) > LEAST_GAIN)
    last = max(int(above[-1]) + 2 if len(above) else 0, SPLINE_POINTS)
    response = control.frd(g[:last], omega_rad_s[:last])
    gains, phases_deg, _, gain_at, phase_at, _ = control.stability_margins(response, returnall=True)
    spare_deg = np.mod(phases_deg, 360.0)
    tightest = int(np.argmin(np.abs(np.log(gains)))) if len(gains) else None
    narrowest = int(np.argmin(spare_deg)) if len(spare_deg) else None
    disk = float(np.min(np.abs((1 + g) / (1 - g)))) if np.all(np.abs(1 - g) > 0) else 0.0
    # |(1-G)/(1+G)| = |S - T|; alpha = 2 / max|S - T| is the disk's size.
    alpha = min(2 * disk, 2.0 - 1e-12)
    return Margins(
        gain_margin=np.inf if tightest is None else float(gains[tightest]),
        gain_crossing_rad_s=np.nan if tightest is None else float(gain_at[tightest]),
        phase_margin_deg=np.inf if narrowest is None else float(spare_deg[narrowest]),
        phase_crossing_rad_s=np.nan if narrowest is None else float(phase_at[narrowest]),
        delay_margin_s=float(np.min(np.radians(spare_deg) / phase_at)) if len(spare_deg) else np.inf,
        modulus_margin=float(np.min(np.abs(1 + g))),
        disk_gain_low=(2 - alpha) / (2 + alpha),
        disk_gain_high=(2 + alpha) / (2 - alpha),
        disk_phase_deg=float(np.degrees(2 * np.arctan(alpha / 2))),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Hopf:
    """The gain at which feedback on busy slots through a dead time starts to swing, and how it swings there."""

    gain_per_s: float
    omega_rad_s: float

    @property
    def period_s(self) -> float:
        """Return the period at the critical gain, seconds."""
        return 2 * np.pi / self.omega_rad_s


def hopf_point(residence_s: float | None, dead_time_s: float, shape: Shape = EXPONENTIAL) -> Hopf:
    """Return the Hopf point of a proportional gate: the smallest k with k e^{-jwL} (1 - F*(jwT)) / (jw) = -1.

    Exponential residence: w L + atan(w T) = pi, k_c = sqrt(w^2 + 1/T^2). Fixed residence: w (L + T/2) = pi,
    k_c = w / (2 sin(w T/2)). `residence_s` None is the integrator (a pool that stays full): k_c L = pi/2, period 4 L.
    """
    if residence_s is None:
        omega = np.pi / 2 / dead_time_s
        return Hopf(gain_per_s=omega, omega_rad_s=omega)
    t, dead = residence_s, dead_time_s
    from scipy.optimize import brentq  # slow to import, and reading a scenario imports this module

    if shape.kind == "exponential":
        omega = float(
            brentq(lambda w: float(np.pi - w * dead - np.arctan(w * t)), 1e-9 / dead, np.pi / dead, xtol=1e-14)
        )
        return Hopf(gain_per_s=float(np.hypot(omega, 1 / t)), omega_rad_s=omega)

    def pool(omega: Floats) -> Complexes:
        value: Complexes = np.exp(-1j * omega * dead) * (1 - shape.transform(1j * omega * t)) / (1j * omega)
        return value

    # The slowest crossing lies below pi/L; later ones matter only where the first falls near a zero of 1 - F*.
    omega_rad_s = np.linspace(1e-3, 6.5 * np.pi, 4001) / (dead + t / 2)
    response = pool(omega_rad_s)
    at = np.flatnonzero((response.imag[:-1] < 0) & (response.imag[1:] >= 0) & (response.real[1:] < 0))
    points = []
    for i in at:
        omega = float(brentq(lambda w: float(pool(np.array([w]))[0].imag), omega_rad_s[i], omega_rad_s[i + 1]))
        size = float(abs(pool(np.array([omega]))[0]))
        if size > 1e-9 * t:
            points.append(Hopf(gain_per_s=1 / size, omega_rad_s=omega))
    return min(points, key=lambda point: point.gain_per_s)


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
