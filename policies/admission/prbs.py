"""An excitation: the release rate follows a pseudo-random binary sequence, which stirs all frequencies alike.

    b[n] = b[n-6] xor b[n-7]                the maximal sequence of a 7-bit register: 127 bits, then again
    u(t) = high where b[floor(t / hold)] is 1, else low         u in turns/s, hold in s

Source: Golomb, "Shift Register Sequences" (1967); Ljung, "System Identification" (1999), section 13.3. Missing data:
needs none; it sees nothing.
"""

from __future__ import annotations

from typing import ClassVar

from orchestrator.messages import AdmissionCommand, AdmissionReading
from orchestrator.ports import Cadence
from policies.blocks import maximal_sequence
from policies.parameters import NotNegative, Positive, below


class Prbs:
    """Excite the loop by two release rates in a pseudo-random order.

    Parameters
    ----------
    cadence : Cadence
    low_per_s, high_per_s : float
        The two rates, turns/s.
    hold_s : float
        How long one bit lasts, > 0.
    """

    no_linearisation = "an excitation: it sees nothing, so no loop is closed"
    excitation = True  # it swings on purpose, to be answered by the plant
    example: ClassVar = {"low_per_s": 20.0, "high_per_s": 60.0, "hold_s": 5.0}
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
        self._bits = maximal_sequence()

    def act(self, y: AdmissionReading) -> AdmissionCommand:
        """Set the rate of this bit."""
        bit = self._bits[int(y.now_s / self.hold_s + 1e-9) % len(self._bits)]
        return AdmissionCommand(release_per_s=self.high_per_s if bit else self.low_per_s)
