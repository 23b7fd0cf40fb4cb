"""Admission gated by retirement, read as a relay on the occupancy of the decode pool.

    x     busy slots / slots                      1
    open  x <= open_at_ratio                      opens
          x >= close_at_ratio                     closes
          in between                              stays as it is

The essay (section 18) says that admission to input fill is "gated directly by the retirement of decode queries". That
can be read in three ways, which fail by three mechanisms and need different remedies:

    `retirement_gate`    a threshold on occupancy, blind to the pipeline    -> limit cycle, an exact orbit
    `proportional_gate`  a rate proportional to free slots                  -> Hopf at a computable gain
    `credit`             one release for one retirement                     -> an echo: no cycle of its own, no damping

Source: essay, section 18; relay orbits as in Tsypkin, "Relay Control Systems" (1984), chapter 3. Missing data: with no
slots the gate stays as it is.
"""

from __future__ import annotations

from typing import ClassVar

from orchestrator.messages import AdmissionCommand, AdmissionReading
from orchestrator.ports import Cadence
from policies.design.structure import RelayOnBusy
from policies.design.tandem_model import TandemModel
from policies.parameters import Share, below


class RetirementGate:
    """Relay with hysteresis on decode occupancy; while open, the door releases at its highest rate.

    Parameters
    ----------
    cadence : Cadence
    open_at_ratio, close_at_ratio : float
        Thresholds on busy slots / slots, 0 <= open_at_ratio < close_at_ratio <= 1.
    """

    example: ClassVar = {"open_at_ratio": 0.95, "close_at_ratio": 1.0}
    rules = (below("open_at_ratio", "close_at_ratio"),)

    def __init__(
        self,
        cadence: Cadence,
        *,
        open_at_ratio: Share,
        close_at_ratio: Share,
    ) -> None:
        self.cadence = cadence
        self.open_at_ratio, self.close_at_ratio = open_at_ratio, close_at_ratio
        self._open = True

    def act(self, y: AdmissionReading) -> AdmissionCommand:
        """Open or close the gate."""
        if y.slots > 0:
            x = y.busy_slots / y.slots
            if x <= self.open_at_ratio:
                self._open = True
            elif x >= self.close_at_ratio:
                self._open = False
        return AdmissionCommand(gate_open=self._open)

    def structure(self, model: TandemModel) -> RelayOnBusy:
        """Return the relay that this law is."""
        N = model.slots
        return RelayOnBusy(open_at_turns=self.open_at_ratio * N, close_at_turns=self.close_at_ratio * N)
