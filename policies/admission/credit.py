"""One release for one retirement: a constant number of turns in flight.

    W   turns released and not retired            turns
    W <= cap_turns                                the door releases at once while this holds

The loop has no gain to tune and no limit cycle of its own, but it copies every bunch: damping about pi cv^2, cv the
spread of the lap time. A cap of N starves the pool by T/(L+T); N(1 + L/T) feeds it. Source: CONWIP in production,
Spearman, Woodruff and Hopp (1990). Missing data: needs none.
"""

from __future__ import annotations

from typing import ClassVar

from orchestrator.messages import AdmissionCommand, AdmissionReading
from orchestrator.ports import Cadence
from policies.design.structure import OneForOne
from policies.design.tandem_model import TandemModel
from policies.parameters import Count


class Credit:
    """Cap the turns in flight; each retirement releases one turn.

    Parameters
    ----------
    cadence : Cadence
    cap_turns : int
        The cap, >= 1.
    """

    acts_on = "retirement"  # the event that samples it, in place of a period
    example: ClassVar = {"cap_turns": 120}

    def __init__(
        self,
        cadence: Cadence,
        *,
        cap_turns: Count,
    ) -> None:
        self.cadence = cadence
        self.cap_turns = cap_turns
        self._command = AdmissionCommand(in_flight_cap_turns=cap_turns)

    def act(self, y: AdmissionReading) -> AdmissionCommand:
        """State the cap; the door does the rest."""
        return self._command

    def structure(self, model: TandemModel) -> OneForOne:
        """Return the ring that this law makes."""
        return OneForOne(cap_turns=self.cap_turns)
