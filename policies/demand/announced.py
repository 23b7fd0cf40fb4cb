"""Ramps that are known ahead: a launch, a batch window, a customer's move.

    r         arrivals a second, mean over tau, less what is announced for now    turns/s
    A(t)      sum of the announced ramps at t, each a trapezium                    turns/s
    forecast  max(0, r) + A(t + lead)                                              turns/s

Source: essay E17, "anticipate known ramps". A forecast from history cannot see a first time; the calendar can. Missing
data: no rate yet, what is announced alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.ports import Cadence
from orchestrator.signals import DemandCommand, DemandReading
from policies.blocks import Mean


class Announced:
    """The present rate, and what is announced for `lead_s` from now.

    Parameters
    ----------
    cadence : Cadence
    lead_s : float
        How far ahead the forecast looks.
    ramps : sequence of (begins_s, full_s, falls_s, ends_s, add_per_s)
        Trapezia in time from the start of the run.
    tau_s : float
        Span of the mean of r.
    """

    no_linearisation = "a forecast: it sees arrivals, which it cannot move, so it closes no loop"

    def __init__(
        self,
        cadence: Cadence,
        *,
        lead_s: float,
        ramps: Sequence[tuple[float, float, float, float, float]],
        tau_s: float = 600.0,
    ) -> None:
        self.cadence = cadence
        self.lead_s, self.ramps = lead_s, tuple(ramps)
        self._r = Mean(tau_s)
        self._at_s, self._arrived = 0.0, 0

    def act(self, y: DemandReading) -> DemandCommand:
        """Forecast the arrivals at `lead_s` from now."""
        span_s = y.at_s - self._at_s
        if span_s > 0.0:
            seen = max(0, y.arrived_total - self._arrived) / span_s
            self._r.update(max(0.0, seen - self._announced(y.at_s - 0.5 * span_s)), y.at_s)
            self._at_s, self._arrived = y.at_s, y.arrived_total
        return DemandCommand(forecast_per_s=(self._r.value or 0.0) + self._announced(y.now_s + self.lead_s))

    def _announced(self, t: float) -> float:
        total = 0.0
        for begins_s, full_s, falls_s, ends_s, add_per_s in self.ramps:
            if begins_s < t < ends_s:
                rise = (t - begins_s) / (full_s - begins_s) if t < full_s else 1.0
                fall = (ends_s - t) / (ends_s - falls_s) if t > falls_s else 1.0
                total += add_per_s * min(rise, fall)
        return total
