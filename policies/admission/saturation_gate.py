"""A gate on saturation that knows how old its reading is, and fails open or closed when it is too old.

    x      busy slots / slots                                                1
    age    now - sampled                                                     s
    open   x < limit                     while age <= stale_after            -
           as when_stale says            otherwise

Closed is safe for the pool and fatal for the traffic when the limit of age lies below the period of the telemetry; open
is the reverse. Source: the utilisation detector of llm-d's endpoint picker (stale after 200 ms counts as saturated) and
llm-d-router issues 2408 and 2547. Missing data: with no slots the gate stays as it is.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from orchestrator.messages import AdmissionCommand, AdmissionReading
from orchestrator.ports import Cadence
from policies.design.structure import RelayOnBusy
from policies.design.tandem_model import TandemModel
from policies.parameters import Positive, PositiveShare


class SaturationGate:
    """Open below a limit of occupancy, with a rule for stale readings.

    Parameters
    ----------
    cadence : Cadence
    limit_ratio : float
        Occupancy at which the gate closes, a share of the slots up to 1.
    stale_after_s : float
        Age above which a reading is not believed.
    when_stale : {"open", "closed", "hold"}
        What the gate then does.
    """

    no_linearisation = (
        "readings may be older than it believes: then it follows the clock of the telemetry and not the pool"
    )
    example: ClassVar = {"limit_ratio": 0.95, "stale_after_s": 2.0, "when_stale": "closed"}

    def __init__(
        self,
        cadence: Cadence,
        *,
        limit_ratio: PositiveShare,
        stale_after_s: Positive,
        when_stale: Literal["open", "closed", "hold"],
    ) -> None:
        self.cadence = cadence
        self.limit_ratio, self.stale_after_s, self.when_stale = limit_ratio, stale_after_s, when_stale
        self._open = True

    def act(self, y: AdmissionReading) -> AdmissionCommand:
        """Open or close the gate."""
        if y.now_s - y.at_s > self.stale_after_s:
            if self.when_stale != "hold":
                self._open = self.when_stale == "open"
        elif y.slots > 0:
            self._open = y.busy_slots < self.limit_ratio * y.slots
        return AdmissionCommand(gate_open=self._open)

    def structure(self, model: TandemModel) -> RelayOnBusy | None:
        """Return the relay without a band that it is on fresh readings; None where they may be too old for it."""
        level = self.limit_ratio * model.slots
        if 2 * model.observation_s > self.stale_after_s:
            return None
        return RelayOnBusy(open_at_turns=level, close_at_turns=level)
