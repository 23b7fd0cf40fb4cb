"""Proportional-integral control of the work at the decode pool, from a smoothed backlog.

    q     x + b - N, mean over tau: ready turns, or minus the free slots      turns
    e     B* - q                                                              turns
    u     u0 + Kc e + I                                                       turns/s
    dI    (Kc / Ti) e + (u_applied - u_said) / Ti                             turns/s2
    u0    predicted service rate of a full pool                               turns/s
    theta L + tau + half a period                                             s
    Kc    1 / (tau_c + theta),  Ti = 4 (tau_c + theta),  tau_c = theta        1/s, s

q integrates the release rate through a dead time, so the tuning is SIMC's for an integrating process. The last term
is back-calculation: what the actuator did not do is taken out of I; and I rests while e > 0 and nobody waits at the
door, when a higher rate would release nothing. So nothing winds up. The first act takes over the rate that stands
(bumpless). Source: essay, section 18; Skogestad, "Simple analytic rules for model reduction and PID controller tuning"
(2003); Astrom and Hagglund, "Advanced PID Control" (2006), section 3.5. Missing data: without a prediction from the
plant, u0 is the scenario's stated rate.
"""

from __future__ import annotations

import math
from typing import ClassVar

from orchestrator.messages import AdmissionCommand, AdmissionReading
from orchestrator.ports import Cadence, Every
from policies.blocks import Mean
from policies.design.structure import Smooth
from policies.design.tandem_model import TandemModel, pi_at_decode
from policies.parameters import NotNegative, Positive


class PiBacklog:
    """PI on the smoothed backlog at the decode pool, around the predicted service rate.

    Parameters
    ----------
    cadence : Cadence
    dead_time_s : float
        L as assumed, >= 0.
    full_per_s : float
        u0 where the plant states no rate, turns/s.
    buffer_ratio : float
        B* / N, >= 0.
    tau_s : float
        Span of the mean of q, >= 0.
    closed_s : float, optional
        tau_c; default theta.
    anti_windup : bool
        Without it I neither rests nor is corrected: kept for the lesson.
    """

    monotone = (("ready_turns", "release_per_s", -1),)
    example: ClassVar = {"dead_time_s": 0.5, "full_per_s": 40}

    def __init__(
        self,
        cadence: Cadence,
        *,
        dead_time_s: NotNegative,
        full_per_s: Positive,
        buffer_ratio: NotNegative = 0.1,
        tau_s: NotNegative = 1.0,
        closed_s: Positive | None = None,
        anti_windup: bool = True,
    ) -> None:
        self.cadence = cadence
        self.full_per_s, self.buffer_ratio, self.anti_windup = full_per_s, buffer_ratio, anti_windup
        half_s = 0.5 * cadence.period_s if isinstance(cadence, Every) else 0.0
        theta = max(dead_time_s + tau_s + half_s, 1e-3)
        span = theta + (theta if closed_s is None else closed_s)
        self.Kc, self.Ti = 1.0 / span, 4.0 * span
        self.tau_s = tau_s
        self._q = Mean(tau_s)
        self._I: float | None = None
        self._asked_per_s = 0.0
        self._at_s = 0.0

    def act(self, y: AdmissionReading) -> AdmissionCommand:
        """Set the release rate."""
        u0 = self.full_per_s if y.service_per_s is None else y.service_per_s
        q = self._q.update(y.busy_slots + y.ready_turns - y.slots, y.at_s)
        e = self.buffer_ratio * y.slots - q
        stands = y.applied.release_per_s
        known = stands is not None and math.isfinite(stands)
        if self._I is None:
            self._I = (stands or 0.0) - u0 - self.Kc * e if known and (stands or 0.0) <= 1.5 * u0 else 0.0
        elif y.at_s > self._at_s:
            dt = min(y.at_s - self._at_s, self.Ti)
            undone = (stands or 0.0) - self._asked_per_s if known and self.anti_windup else 0.0
            idle = self.anti_windup and e > 0.0 and y.backlog_turns <= 0.0
            if not idle:
                self._I += dt / self.Ti * (self.Kc * e + undone)
        self._at_s = max(self._at_s, y.at_s)
        self._asked_per_s = u0 + self.Kc * e + self._I
        return AdmissionCommand(release_per_s=max(0.0, self._asked_per_s))

    def structure(self, model: TandemModel) -> Smooth:
        """Return u = -Kc (1 + 1 / (Ti s)) q / (1 + tau s) about q = B*."""
        return Smooth(
            linear=pi_at_decode(self.Kc, self.Ti, self.tau_s),
            setpoint_turns=model.slots * (1.0 + self.buffer_ratio),
            rate_per_s=self.full_per_s,
            on="at_decode",
        )
