"""Gains of a PI controller from a model with dead time, by the SIMC rule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policies.design.loops import Rational


@dataclass(frozen=True, slots=True, kw_only=True)
class Fopdt:
    """First order plus dead time: K e^{-s theta} / (1 + s tau). `tau_s` inf is the integrator K' e^{-s theta} / s.

    For the integrator `gain` is K', per second.
    """

    gain: float
    tau_s: float
    dead_time_s: float

    def response(self) -> Rational:
        """Return the plant's transfer function."""
        return Rational([self.gain], [1.0, 0.0] if np.isinf(self.tau_s) else [self.tau_s, 1.0], self.dead_time_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class PiGains:
    """u = kp (e + integral of e / ti)."""

    kp: float
    ti_s: float

    def response(self) -> Rational:
        """Return the controller's transfer function."""
        return Rational([self.kp * self.ti_s, self.kp], [self.ti_s, 0.0])


def simc(plant: Fopdt, closed_tau_s: float | None = None) -> PiGains:
    """Return SIMC gains: kp = tau / (K (tau_c + theta)), ti = min(tau, 4 (tau_c + theta)), tau_c = theta by default.

    References
    ----------
    Skogestad, J. Process Control 13 (2003) 291-309.
    """
    speed = (plant.dead_time_s if closed_tau_s is None else closed_tau_s) + plant.dead_time_s
    kp = 1 / (plant.gain * speed) if np.isinf(plant.tau_s) else plant.tau_s / (plant.gain * speed)
    return PiGains(kp=kp, ti_s=min(plant.tau_s, 4 * speed))
