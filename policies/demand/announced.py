"""Ramps that are known ahead: a launch, a batch window, a customer's move.

    A(t)      sum of the announced ramps at t, each a trapezium                    turns/s
    r         what is not announced: the forecast of another law that is shown the turns without them, or else
              the arrivals a second, mean over tau, less A                         turns/s
    forecast  max(0, r) + A(t + lead)                                              turns/s

Source: essay E17, "anticipate known ramps". A forecast from history cannot see a first time; the calendar can. With a
`base` law the two join: the day's own shape from history, the launch from the calendar, and the launch does not stay in
the history as if it came every day. Missing data: no rate yet, what is announced alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from orchestrator.messages import DemandCommand, DemandReading
from orchestrator.ports import Cadence, Policy
from policies.blocks import Mean


class Announced:
    """What is announced for `lead_s` from now, on top of the present rate or of another forecast.

    Parameters
    ----------
    cadence : Cadence
    lead_s : float
        How far ahead the forecast looks.
    ramps : sequence of (begins_s, full_s, falls_s, ends_s, add_per_s)
        Trapezia in time from the start of the run.
    tau_s : float
        Span of the mean of r, while no base has a forecast.
    base : Policy, optional
        A demand law with the same lead: it forecasts what is not announced.
    """

    no_linearisation = "a forecast: it sees arrivals, which it cannot move, so it closes no loop"

    def __init__(
        self,
        cadence: Cadence,
        *,
        lead_s: float,
        ramps: Sequence[tuple[float, float, float, float, float]],
        tau_s: float = 600.0,
        base: Policy[Any, Any] | None = None,  # Any: the readings and commands of a demand law
    ) -> None:
        self.cadence, self.base = cadence, base
        self.lead_s, self.ramps = lead_s, tuple(ramps)
        self._r = Mean(tau_s)
        self._at_s, self._rest = 0.0, 0.0

    def act(self, y: DemandReading) -> DemandCommand:
        """Forecast the arrivals at `lead_s` from now."""
        rest = y.arrived_total - self._announced_turns(y.at_s)
        span_s = y.at_s - self._at_s
        if span_s > 0.0:
            self._r.update(max(0.0, rest - self._rest) / span_s, y.at_s)
            self._at_s, self._rest = y.at_s, rest
        said = DemandCommand()
        if self.base is not None:
            said = self.base.act(replace(y, arrived_total=max(0, round(rest))))
        r = self._r.value or 0.0 if said.forecast_per_s is None else said.forecast_per_s
        return replace(said, forecast_per_s=max(0.0, r) + self._announced(y.now_s + self.lead_s))

    def _announced(self, t: float) -> float:
        total = 0.0
        for begins_s, full_s, falls_s, ends_s, add_per_s in self.ramps:
            if begins_s < t < ends_s:
                rise = (t - begins_s) / (full_s - begins_s) if t < full_s else 1.0
                fall = (ends_s - t) / (ends_s - falls_s) if t > falls_s else 1.0
                total += add_per_s * min(rise, fall)
        return total

    def _announced_turns(self, t: float) -> float:
        """Integrate what is announced up to t."""
        total = 0.0
        for begins_s, full_s, falls_s, ends_s, add_per_s in self.ramps:
            risen, fallen = min(max(t - begins_s, 0.0), full_s - begins_s), min(max(t - falls_s, 0.0), ends_s - falls_s)
            flat = min(max(t - full_s, 0.0), falls_s - full_s)
            total += add_per_s * (0.5 * risen**2 / (full_s - begins_s) + flat + fallen)
            total -= add_per_s * 0.5 * fallen**2 / (ends_s - falls_s)
        return total
