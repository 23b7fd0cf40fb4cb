"""A relay that counts what is under way: the same gate, on work in flight instead of on busy slots.

    W     turns released and not retired          turns
    open  W <= open_at_turns                      opens
          W >= close_at_turns                     closes

The pipeline is inside W, so the dead time leaves the loop and what is left is chatter within the band.
Source: the in-flight credit of llm-d-router issues 2066 and 1186; Deziel and Eilon, "A linear production-inventory
control rule" (1967). Missing data: needs none.
"""

from __future__ import annotations

from typing import ClassVar

from orchestrator.messages import AdmissionCommand, AdmissionReading
from orchestrator.ports import Cadence
from policies.design.structure import RelayOnWork
from policies.design.tandem_model import TandemModel
from policies.parameters import NotNegative, Positive, below


class InflightCreditGate:
    """Relay with hysteresis on turns in flight.

    Parameters
    ----------
    cadence : Cadence
    open_at_turns, close_at_turns : float
        Thresholds, 0 <= open_at_turns < close_at_turns.
    """

    example: ClassVar = {"open_at_turns": 115, "close_at_turns": 125}
    rules = (below("open_at_turns", "close_at_turns"),)

    def __init__(
        self,
        cadence: Cadence,
        *,
        open_at_turns: NotNegative,
        close_at_turns: Positive,
    ) -> None:
        self.cadence = cadence
        self.open_at_turns, self.close_at_turns = open_at_turns, close_at_turns
        self._open = True

    def act(self, y: AdmissionReading) -> AdmissionCommand:
        """Open or close the gate."""
        if y.in_flight_turns <= self.open_at_turns:
            self._open = True
        elif y.in_flight_turns >= self.close_at_turns:
            self._open = False
        return AdmissionCommand(gate_open=self._open)

    def structure(self, model: TandemModel) -> RelayOnWork:
        """Return the relay that this law is."""
        return RelayOnWork(open_at_turns=self.open_at_turns, close_at_turns=self.close_at_turns)
