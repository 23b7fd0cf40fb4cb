"""An excitation: the release rate alternates between two levels, for fitting a lag with dead time.

    u(t) = low while floor(t / hold) is even, else high      u in turns/s, hold in s

With `hold` of half a run it is one step. It sees nothing, so the loop is open whatever the plant does. Source: any
text on identification, as Ljung, "System Identification" (1999), chapter 13. Missing data: needs none.
"""

from __future__ import annotations

from typing import ClassVar

from orchestrator.messages import AdmissionCommand, AdmissionReading
from orchestrator.ports import Cadence
from policies.parameters import NotNegative, Positive, below


class Step:
    """Excite the loop by a square wave of the release rate.

    Parameters
    ----------
    cadence : Cadence
    low_per_s, high_per_s : float
        The two rates, turns/s.
    hold_s : float
        How long each lasts, > 0.
    """

    no_linearisation = "an excitation: it sees nothing, so no loop is closed"
    excitation = True  # it swings on purpose, to be answered by the plant
    example: ClassVar = {"low_per_s": 20.0, "high_per_s": 60.0, "hold_s": 60.0}
    rules = (below("low_per_s", "high_per_s"),)

    def __init__(
        self,
        cadence: Cadence,
        *,
        low_per_s: NotNegative,
        high_per_s: Positive,
        hold_s: Positive,
    ) -> None:
        self.cadence = cadence
        self.low_per_s, self.high_per_s, self.hold_s = low_per_s, high_per_s, hold_s

    def act(self, y: AdmissionReading) -> AdmissionCommand:
        """Set the rate of this half."""
        # A tick that float arithmetic puts a hair before its half belongs to that half.
        half = int(y.now_s / self.hold_s + 1e-9)
        return AdmissionCommand(release_per_s=self.high_per_s if half % 2 else self.low_per_s)
