"""An excitation: a relay on the ready workers that makes the capacity loop show its ultimate point.

    n     ready workers                                        workers
    want  high when n <= threshold - band / 2, low when n >= threshold + band / 2, else as before      workers

Its cycle lasts as long as starting and winding down take together, each seen half a period late. Source: Astrom and
Hagglund, Automatica 20 (1984) 645-651. Missing data: a pool that is not there is asked for nothing.
"""

from __future__ import annotations

from typing import ClassVar

from orchestrator.messages import CapacityCommand, CapacityReading
from orchestrator.ports import Cadence
from orchestrator.turn import ConfigurationName
from policies.parameters import Count, CountOrZero, NotNegative, Positive, below


class Relay:
    """Excite the loop by two sizes of a pool, switched by the workers that are ready.

    Parameters
    ----------
    cadence : Cadence
    configuration : str
        The pool that is stirred.
    low_workers, high_workers : int
        The two sizes.
    threshold_workers, band_workers : float
        The middle and the width of the switch, ready workers.
    """

    no_linearisation = "an excitation: its cycle is the experiment"
    excitation = True  # it swings on purpose, to be answered by the plant
    example: ClassVar = {"configuration": "decode", "low_workers": 10, "high_workers": 20, "threshold_workers": 15}
    rules = (below("low_workers", "high_workers"),)

    def __init__(
        self,
        cadence: Cadence,
        *,
        configuration: str,
        low_workers: CountOrZero,
        high_workers: Count,
        threshold_workers: Positive,
        band_workers: NotNegative = 0.0,
    ) -> None:
        self.cadence = cadence
        self.configuration = ConfigurationName(configuration)
        self.low_workers, self.high_workers = low_workers, high_workers
        self.threshold_workers, self.band_workers = threshold_workers, band_workers
        self._high = True

    def act(self, y: CapacityReading) -> CapacityCommand:
        """Switch where the ready workers have left the band."""
        pool = y.pools.get(self.configuration)
        if pool is None:
            return CapacityCommand()
        if pool.active_workers <= self.threshold_workers - self.band_workers / 2:
            self._high = True
        elif pool.active_workers >= self.threshold_workers + self.band_workers / 2:
            self._high = False
        return CapacityCommand(
            target_workers={self.configuration: self.high_workers if self._high else self.low_workers}
        )
