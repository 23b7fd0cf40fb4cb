"""A rate proportional to free slots: u = u0 + k (r - y).

    u    release rate                             turns/s
    u0   rate at the setpoint                     turns/s
    k    gain                                     1/s
    r    turns wanted                             turns
    y    busy slots, or those and the ready turns turns

Through a dead time L with mean residence T the loop s + 1/T + k e^(-sL) = 0 loses stability at k_c = sqrt(w^2 + 1/T^2),
where w L + atan(w T) = pi. Below k_c noise still drives quasi-cycles. With the ready turns in y a full pool is seen
too, as the integrator that it then is: k_c = pi / (2 L) there. Source: essay, section 18; any text on dead-time loops,
as Astrom and Hagglund, "Advanced PID Control" (2006), chapter 4. Missing data: needs none; u is clipped to what the
door can do.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from orchestrator.messages import AdmissionCommand, AdmissionReading
from orchestrator.ports import Cadence
from policies.design.structure import Smooth
from policies.design.tandem_model import TandemModel, proportional
from policies.parameters import NotNegative


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
        r.
    of : {"busy", "at_decode"}
        Whether the ready turns are in y.
    """

    monotone = (("busy_slots", "release_per_s", -1),)
    example: ClassVar = {"base_per_s": 40, "k_per_s": 0.2, "setpoint_turns": 100}

    def __init__(
        self,
        cadence: Cadence,
        *,
        base_per_s: NotNegative,
        k_per_s: NotNegative,
        setpoint_turns: NotNegative,
        of: Literal["busy", "at_decode"] = "busy",
    ) -> None:
        self.cadence = cadence
        self.base_per_s, self.k_per_s, self.setpoint_turns, self.of = base_per_s, k_per_s, setpoint_turns, of

    def act(self, y: AdmissionReading) -> AdmissionCommand:
        """Set the release rate."""
        u0, k, r = self.base_per_s, self.k_per_s, self.setpoint_turns
        seen = y.busy_slots if self.of == "busy" else y.busy_slots + y.ready_turns
        return AdmissionCommand(release_per_s=max(0.0, u0 + k * (r - seen)))

    def structure(self, model: TandemModel) -> Smooth:
        """Return u = -k y about the setpoint."""
        return Smooth(
            linear=proportional(self.k_per_s, self.of),
            setpoint_turns=self.setpoint_turns,
            rate_per_s=self.base_per_s,
            on=self.of,
        )
