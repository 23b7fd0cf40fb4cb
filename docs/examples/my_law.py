"""Hold the ready buffer at a share of the pool: release what the pool retires, and a little more or less.

    b     ready turns                                     turns
    B*    share N                                         turns
    r     retirements a second, mean over tau             turns/s
    u     r + k (B* - b)                                  turns/s

The worked example of the guide. It has two weaknesses on purpose, which the guide shows how to find: r believes a
starved pool, and b does not see what is in the pipeline. Missing data: until a first rate, the door stays as it is.
"""

from __future__ import annotations

from orchestrator.messages import AdmissionCommand, AdmissionReading
from orchestrator.ports import Cadence
from policies.blocks import Mean


class MyLaw:
    """Follow the retirements, corrected by the ready buffer.

    Parameters
    ----------
    cadence : Cadence
    share_ratio : float
        Ready turns wanted, as a share of the slots.
    k_per_s : float
        Gain.
    tau_s : float
        Span of the mean of r.
    """

    monotone = (("ready_turns", "release_per_s", -1),)

    def __init__(
        self, cadence: Cadence, *, share_ratio: float = 0.1, k_per_s: float = 0.05, tau_s: float = 10.0
    ) -> None:
        self.cadence = cadence
        self.share_ratio, self.k_per_s = share_ratio, k_per_s
        self._r = Mean(tau_s)

    def act(self, y: AdmissionReading) -> AdmissionCommand:
        """Set the release rate."""
        if y.retire_per_s is not None:
            self._r.update(y.retire_per_s, y.at_s)
        if self._r.value is None:
            return AdmissionCommand()
        u = self._r.value + self.k_per_s * (self.share_ratio * y.slots - y.ready_turns)
        return AdmissionCommand(release_per_s=max(0.0, u))
