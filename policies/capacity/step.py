"""An excitation: the workers wanted alternate between two numbers, for fitting a start-up and a wind-down.

    n(t) = low while floor(t / hold) is even, else high      n in workers, hold in s

With `hold` of half a run it is one step. It sees nothing, so the loop is open whatever the pool does. Source: any text
on identification, as Ljung, "System Identification" (1999), chapter 13. Missing data: needs none.
"""

from __future__ import annotations

from typing import ClassVar

from orchestrator.messages import CapacityCommand, CapacityReading
from orchestrator.ports import Cadence
from orchestrator.turn import ConfigurationName
from policies.parameters import Count, CountOrZero, Positive, below


class Step:
    """Excite the loop by a square wave of the workers wanted.

    Parameters
    ----------
    cadence : Cadence
    configuration : str
        The pool that is stirred.
    low_workers, high_workers : int
        The two sizes.
    hold_s : float
        How long each lasts, > 0.
    """

    no_linearisation = "an excitation: it sees nothing, so no loop is closed"
    excitation = True  # it swings on purpose, to be answered by the plant
    example: ClassVar = {"configuration": "decode", "low_workers": 10, "high_workers": 20, "hold_s": 600.0}
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

    def act(self, y: CapacityReading) -> CapacityCommand:
        """Ask for the workers of this half."""
        # A tick that float arithmetic puts a hair before its half belongs to that half.
        high = int(y.now_s / self.hold_s + 1e-9) % 2
        return CapacityCommand(target_workers={self.configuration: self.high_workers if high else self.low_workers})
