"""An excitation: a relay on busy slots that makes the loop show its ultimate point.

    x     busy slots                                       turns
    u     high when x <= threshold - band / 2, low when x >= threshold + band / 2, else as before      turns/s

The cycle's period is the loop's critical period, and K_u = 4 M / (pi A) with M = (high - low) / 2 and A the amplitude
of x. Source: Astrom and Hagglund, Automatica 20 (1984) 645-651. Missing data: needs none.
"""

from __future__ import annotations

from typing import ClassVar

from orchestrator.messages import AdmissionCommand, AdmissionReading
from orchestrator.ports import Cadence
from policies.design.structure import RelayOnBusy
from policies.design.tandem_model import TandemModel
from policies.parameters import NotNegative, Positive, below


class Relay:
    """Excite the loop by two release rates, switched by the busy slots.

    Parameters
    ----------
    cadence : Cadence
    low_per_s, high_per_s : float
        The two rates, turns/s.
    threshold_turns, band_turns : float
        The middle and the width of the switch, busy slots.
    """

    no_linearisation = (
        "an excitation; with a low rate above none it is not a gate, and only the experiment is of interest"
    )
    excitation = True  # it swings on purpose, to be answered by the plant
    example: ClassVar = {"low_per_s": 20.0, "high_per_s": 60.0, "threshold_turns": 50, "band_turns": 5}
    rules = (below("low_per_s", "high_per_s"),)

    def __init__(
        self,
        cadence: Cadence,
        *,
        low_per_s: NotNegative,
        high_per_s: Positive,
        threshold_turns: Positive,
        band_turns: NotNegative,
    ) -> None:
        self.cadence = cadence
        self.low_per_s, self.high_per_s = low_per_s, high_per_s
        self.threshold_turns, self.band_turns = threshold_turns, band_turns
        self._high = True

    def act(self, y: AdmissionReading) -> AdmissionCommand:
        """Switch where the busy slots have left the band."""
        if y.busy_slots <= self.threshold_turns - self.band_turns / 2:
            self._high = True
        elif y.busy_slots >= self.threshold_turns + self.band_turns / 2:
            self._high = False
        return AdmissionCommand(release_per_s=self.high_per_s if self._high else self.low_per_s)

    def structure(self, model: TandemModel) -> RelayOnBusy | None:
        """Return the relay that this law is; None where its low rate is not a closed gate."""
        half = self.band_turns / 2
        if self.low_per_s > 0:
            return None
        return RelayOnBusy(open_at_turns=self.threshold_turns - half, close_at_turns=self.threshold_turns + half)
