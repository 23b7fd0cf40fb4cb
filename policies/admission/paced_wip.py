"""Pace the door around the service rate, corrected by work in flight: u = N/T + k (W* - W).

    u    release rate                             turns/s
    N    decode slots                             turns
    T    mean residence assumed                   s
    L    dead time assumed                        s
    W    turns released and not retired           turns
    W*   N (1 + L/T) + B*, or the setpoint        turns
    B*   ready turns wanted, buffer_ratio N       turns
    k    kappa / (L + T)                          1/s

W holds the pipeline, so the loop is s + k = 0 without its delay; kappa near 1 acts no faster than a lap shows.
A wrong T leaves an offset in the buffer, no oscillation. Source: Deziel and Eilon (1967); APIOBPCS with T_i = T_w,
John, Naim and Towill (1994); pacing with a cap of bandwidth x delay, as BBR (Cardwell et al., 2016).
Missing data: needs none.
"""

from __future__ import annotations

from typing import ClassVar

from orchestrator.messages import AdmissionCommand, AdmissionReading
from orchestrator.ports import Cadence
from policies.design.structure import Smooth
from policies.design.tandem_model import TandemModel, proportional_on_work
from policies.parameters import NotNegative, Positive


class PacedWip:
    """Feed-forward at the assumed service rate, proportional on work in flight.

    Parameters
    ----------
    cadence : Cadence
    residence_s, dead_time_s : float
        T and L as assumed.
    kappa_ratio : float
        k (L + T), about 1.
    buffer_ratio : float
        B* / N, >= 0.
    """

    monotone = (("in_flight_turns", "release_per_s", -1),)
    example: ClassVar = {"residence_s": 2.5, "dead_time_s": 0.5}

    def __init__(
        self,
        cadence: Cadence,
        *,
        residence_s: Positive,
        dead_time_s: NotNegative,
        kappa_ratio: Positive = 1.0,
        buffer_ratio: NotNegative = 0.1,
    ) -> None:
        self.cadence = cadence
        self.residence_s, self.dead_time_s = residence_s, dead_time_s
        self.kappa_ratio, self.buffer_ratio = kappa_ratio, buffer_ratio

    def act(self, y: AdmissionReading) -> AdmissionCommand:
        """Set the release rate."""
        N, T, L, W = y.slots, self.residence_s, self.dead_time_s, y.in_flight_turns
        k = self.kappa_ratio / (L + T)
        W_star = N * (1.0 + L / T) + self.buffer_ratio * N
        if y.setpoint is not None and y.setpoint.in_flight_setpoint_turns is not None:
            W_star = y.setpoint.in_flight_setpoint_turns
        return AdmissionCommand(release_per_s=max(0.0, N / T + k * (W_star - W)))

    def structure(self, model: TandemModel) -> Smooth:
        """Return u = -k W about W*."""
        N, T, L = model.slots, self.residence_s, self.dead_time_s
        return Smooth(
            linear=proportional_on_work(self.kappa_ratio / (L + T)),
            setpoint_turns=N * (1.0 + L / T + self.buffer_ratio),
            rate_per_s=N / T,
            on="in_flight",
        )
