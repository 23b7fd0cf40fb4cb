"""Ramps that are known ahead: a launch, a batch window, a customer's move.

    A(t)      sum of the announced ramps at t, each a trapezium                    turns/s
    r         what is not announced: the forecast of another law that is shown the turns without them, or else
              the arrivals a second, mean over tau, less A                         turns/s
    forecast  max(0, r) + A(t + lead)                                              turns/s

Source: essay, section 17, "anticipate known ramps". A forecast from history cannot see a first time; the calendar can.
With a `base` law the two join: the day's own shape from history, the launch from the calendar, and the launch does not
stay in the history as if it came every day. Missing data: no rate yet, what is announced alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from annotated_types import MinLen

from orchestrator.messages import DemandCommand, DemandReading
from orchestrator.ports import Cadence
from policies.blocks import Mean
from policies.demand.holt_winters import HoltWinters
from policies.demand.kalman import Kalman
from policies.demand.seasonal_profile import SeasonalProfile
from policies.parameters import NotNegative, Positive


def _ends_in_order(values: Mapping[str, Any]) -> str:  # Any: a parameter of any type
    ordered = values["begins_s"] < values["full_s"] <= values["falls_s"] < values["ends_s"]
    return "" if ordered else "a ramp needs begins_s < full_s <= falls_s < ends_s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ramp:
    """A trapezium of extra arrivals: times from the start of the run, and the extra rate between full and falls."""

    begins_s: NotNegative
    full_s: NotNegative
    falls_s: NotNegative
    ends_s: Positive
    add_per_s: Positive
    rules: ClassVar = (_ends_in_order,)


def _looks_equally_far(values: Mapping[str, Any]) -> str:  # Any: a parameter of any type
    base, lead_s = values["base"], values["lead_s"]
    if base is None or base.lead_s == lead_s:
        return ""
    return f"base.lead_s = {base.lead_s:g} must be lead_s = {lead_s:g}"


class Announced:
    """What is announced for `lead_s` from now, on top of the present rate or of another forecast.

    Parameters
    ----------
    cadence : Cadence
    lead_s : float
        How far ahead the forecast looks.
    ramps : tuple of Ramp
        What is announced.
    tau_s : float
        Span of the mean of r, while no base has a forecast.
    base : HoltWinters, SeasonalProfile or Kalman, optional
        A demand law with the same lead: it forecasts what is not announced.
    """

    no_linearisation = "a forecast: it sees arrivals, which it cannot move, so it closes no loop"
    example: ClassVar = {
        "lead_s": 600.0,
        "base": {"kind": "holt_winters", "lead_s": 600.0},
        "ramps": [{"begins_s": 3600, "full_s": 5400, "falls_s": 9000, "ends_s": 9600, "add_per_s": 20}],
    }
    rules = (_looks_equally_far,)

    def __init__(
        self,
        cadence: Cadence,
        *,
        lead_s: NotNegative,
        ramps: Annotated[tuple[Ramp, ...], MinLen(1)],
        tau_s: NotNegative = 600.0,
        base: HoltWinters | SeasonalProfile | Kalman | None = None,
    ) -> None:
        self.cadence, self.base = cadence, base
        self.lead_s, self.ramps = lead_s, ramps
        self._r = Mean(tau_s)
        self._at_s, self._rest = 0.0, 0.0

    def act(self, y: DemandReading) -> DemandCommand:
        """Forecast the arrivals at `lead_s` from now."""
        rest = y.arrived_total - self._announced_turns(y.at_s)
        span_s = y.at_s - self._at_s
        if span_s > 0.0:
            self._r.update(max(0.0, rest - self._rest) / span_s, y.at_s)
            self._at_s, self._rest = y.at_s, rest
        command = DemandCommand()
        if self.base is not None:
            command = self.base.act(replace(y, arrived_total=max(0, round(rest))))
        r = self._r.value or 0.0 if command.forecast_per_s is None else command.forecast_per_s
        return replace(command, forecast_per_s=max(0.0, r) + self._announced(y.now_s + self.lead_s))

    def _announced(self, t: float) -> float:
        total = 0.0
        for ramp in self.ramps:
            if ramp.begins_s < t < ramp.ends_s:
                rise = (t - ramp.begins_s) / (ramp.full_s - ramp.begins_s) if t < ramp.full_s else 1.0
                fall = (ramp.ends_s - t) / (ramp.ends_s - ramp.falls_s) if t > ramp.falls_s else 1.0
                total += ramp.add_per_s * min(rise, fall)
        return total

    def _announced_turns(self, t: float) -> float:
        """Integrate what is announced up to t."""
        total = 0.0
        for ramp in self.ramps:
            rise_s, flat_s, fall_s = ramp.full_s - ramp.begins_s, ramp.falls_s - ramp.full_s, ramp.ends_s - ramp.falls_s
            risen, fallen = min(max(t - ramp.begins_s, 0.0), rise_s), min(max(t - ramp.falls_s, 0.0), fall_s)
            flat = min(max(t - ramp.full_s, 0.0), flat_s)
            total += ramp.add_per_s * (0.5 * risen**2 / rise_s + flat + fallen)
            total -= ramp.add_per_s * 0.5 * fallen**2 / fall_s
        return total
