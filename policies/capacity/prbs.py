"""An excitation: the workers wanted follow a pseudo-random binary sequence, which stirs all frequencies alike.

    b[n]   one period of a 7-bit register: 127 bits, then again
    n(t) = high where b[floor(t / hold)] is 1, else low         n in workers, hold in s

Source: Golomb, "Shift Register Sequences" (1967); Ljung, "System Identification" (1999), section 13.3. Missing data:
needs none; it sees nothing.
"""

from __future__ import annotations

from typing import ClassVar

from orchestrator.messages import CapacityCommand, CapacityReading
from orchestrator.ports import Cadence
from orchestrator.turn import ConfigurationName
from policies.blocks import maximal_sequence
from policies.parameters import Count, CountOrZero, Positive, below


class Prbs:
    """Excite the loop by two sizes of a pool in a pseudo-random order.

    Parameters
    ----------
    cadence : Cadence
    configuration : str
        The pool that is stirred.
    low_workers, high_workers : int
        The two sizes.
    hold_s : float
        How long one bit lasts, > 0.
    """

    no_linearisation = "an excitation: it sees nothing, so no loop is closed"
    excitation = True  # it swings on purpose, to be answered by the plant
    example: ClassVar = {"configuration": "decode", "low_workers": 10, "high_workers": 20, "hold_s": 120.0}
    rules = (below("low_workers", "high_workers"),)

    def __init__(
        self,
        cadence: Cadence,
        *,
        configuration: str,
        low_workers: CountOrZero,
        high_workers: Count,
        hold_s: Positive,
    ) -> None:
        self.cadence = cadence
        self.configuration = ConfigurationName(configuration)
        self.low_workers, self.high_workers, self.hold_s = low_workers, high_workers, hold_s
        self._bits = maximal_sequence()

    def act(self, y: CapacityReading) -> CapacityCommand:
        """Ask for the workers of this bit."""
        bit = self._bits[int(y.now_s / self.hold_s + 1e-9) % len(self._bits)]
        return CapacityCommand(target_workers={self.configuration: self.high_workers if bit else self.low_workers})
