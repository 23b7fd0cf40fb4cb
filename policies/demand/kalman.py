"""A level and a trend, each weighed by how sure of it the counts allow one to be: a Kalman filter on arrivals.

    state    l, the rate; b, its change                                      turns/s, turns/s^2
    predict  l + b dt; P + Q, Q = diag((w l)^2, (v l / hour)^2) dt / hour
    observe  y, arrivals a second in the last dt, of variance R = l / dt      turns/s
    correct  K = P[:, l] / (P[l, l] + R);  (l, b) + K (y - l)
    forecast max(0, l + b lead)                                              turns/s

R is what counting gives by itself (Poisson), so quiet hours are believed less and busy ones more, and no gain is tuned;
w and v say how far rate and trend wander in an hour, as shares of the rate. Source: Kalman, "A new approach to linear
filtering and prediction problems" (1960); the local linear trend of Harvey, "Forecasting, Structural Time Series Models
and the Kalman Filter" (1989), ch. 2; Dynamo's planner has one too, silent for its first five points. Missing data: no
new sample, the last state, carried on; before `least_points` samples, no forecast.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from orchestrator.messages import DemandCommand, DemandReading
from orchestrator.ports import Cadence
from policies.parameters import Count, NotNegative

HOUR_S = 3600.0
LEAST_PER_S = 1e-6  # below this a rate counts as none, and its variance as this one's


def _something_moves(values: Mapping[str, Any]) -> str:  # Any: a parameter of any type
    still = values["level_ratio"] == 0.0 and values["trend_ratio"] == 0.0
    return "level_ratio and trend_ratio are both 0: nothing could ever move; one must exceed 0" if still else ""


class Kalman:
    """Level and trend of the arrivals, filtered.

    Parameters
    ----------
    cadence : Cadence
    lead_s : float
        How far ahead the forecast looks.
    level_ratio, trend_ratio : float
        w, v: wandering of the level and of the trend within an hour.
    least_points : int
        Samples before the first forecast.
    """

    no_linearisation = "a forecast: it sees arrivals, which it cannot move, so it closes no loop"
    example: ClassVar = {"lead_s": 1200.0}
    rules = (_something_moves,)

    def __init__(
        self,
        cadence: Cadence,
        *,
        lead_s: NotNegative,
        level_ratio: NotNegative = 0.1,
        trend_ratio: NotNegative = 0.2,
        least_points: Count = 5,
    ) -> None:
        self.cadence = cadence
        self.lead_s, self.level_ratio, self.trend_ratio = lead_s, level_ratio, trend_ratio
        self.least_points = least_points
        self._l = self._b = 0.0
        self._P = (0.0, 0.0, 0.0)  # variances of l and b around their covariance: (ll, lb, bb)
        self._points = 0
        self._at_s, self._arrived = 0.0, 0

    def act(self, y: DemandReading) -> DemandCommand:
        """Forecast the arrivals at `lead_s` from now."""
        dt = y.at_s - self._at_s
        if dt > 0.0:
            self._learn(max(0, y.arrived_total - self._arrived) / dt, dt)
            self._at_s, self._arrived = y.at_s, y.arrived_total
        if self._points < self.least_points:
            return DemandCommand()
        return DemandCommand(forecast_per_s=max(0.0, self._l + self._b * (y.now_s - self._at_s + self.lead_s)))

    def _learn(self, rate: float, dt: float) -> None:
        self._points += 1
        if self._points == 1:
            size = max(rate, LEAST_PER_S)
            self._l, self._P = rate, (size / dt, 0.0, (self.trend_ratio * size / HOUR_S) ** 2)
            return
        size = max(self._l, LEAST_PER_S)
        ll, lb, bb = self._P
        self._l += self._b * dt
        ll += 2.0 * dt * lb + dt * dt * bb + (self.level_ratio * size) ** 2 * dt / HOUR_S
        lb += dt * bb
        bb += (self.trend_ratio * size / HOUR_S) ** 2 * dt / HOUR_S
        R = max(self._l, LEAST_PER_S) / dt
        Kl, Kb = ll / (ll + R), lb / (ll + R)
        miss = rate - self._l
        self._l += Kl * miss
        self._b += Kb * miss
        self._P = ((1.0 - Kl) * ll, (1.0 - Kl) * lb, bb - Kb * lb)
