"""A rate proportional to free slots (the essay's M2): u = u0 + k (r - x).

    u    release rate                             turns/s
    u0   rate at the setpoint                     turns/s
    k    gain                                     1/s
    r    busy slots wanted                        turns
    x    busy slots                               turns

Through a dead time L with mean residence T the loop s + 1/T + k e^(-sL) = 0 loses stability at
k_c = sqrt(w^2 + 1/T^2), where w L + atan(w T) = pi. Below k_c noise still drives quasi-cycles.
Source: essay E18; any text on dead-time loops, as Astrom and Hagglund, "Advanced PID Control" (2006), chapter 4.
Missing data: needs none; u is clipped to what the door can do.
"""

from __future__ import annotations

from orchestrator.ports import Cadence
from orchestrator.signals import AdmissionCommand, AdmissionReading
from policies.design.admission import TandemModel, proportional_on_busy
from policies.design.structure import Smooth


class ProportionalGate:
    """Proportional control of the busy slots by the release rate.

    Parameters
    ----------
    cadence : Cadence
    base_per_s : float
        u0, turns a second.
    k_per_s : float
        k, 1/s, >= 0.
    setpoint_turns : float
        r, busy slots.
    """

    monotone = (("busy_slots", "release_per_s", -1),)

    def __init__(self, cadence: Cadence, *, base_per_s: float, k_per_s: float, setpoint_turns: float) -> None:
        self.cadence = cadence
        self.base_per_s, self.k_per_s, self.setpoint_turns = base_per_s, k_per_s, setpoint_turns

    def act(self, y: AdmissionReading) -> AdmissionCommand:
        """Set the release rate."""
        u0, k, r, x = self.base_per_s, self.k_per_s, self.setpoint_turns, y.busy_slots
        u = u0 + k * (r - x)
        return AdmissionCommand(release_per_s=max(0.0, u))

    def structure(self, model: TandemModel) -> Smooth:
        """Return u = -k x about the setpoint."""
        return Smooth(
            linear=proportional_on_busy(self.k_per_s),
            setpoint_turns=self.setpoint_turns,
            rate_per_s=self.base_per_s,
            on="busy",
        )
