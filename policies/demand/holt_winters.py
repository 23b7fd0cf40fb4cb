"""Holt's double exponential smoothing: a level and a trend, and with a season Holt and Winters' additive form.

    y        arrivals a second in the last span                              turns/s
    l        a (y - c) + (1 - a) (l + b)                                     turns/s
    b        beta (l - l_before) + (1 - beta) phi b                          turns/s per act
    c[i]     g (y - l) + (1 - g) c[i], i the bin of the day                  turns/s
    forecast max(0, l + (phi + ... + phi^h) b + c[i + h])                    turns/s

h = lead / period acts ahead. phi < 1 damps the trend, so that one steep hour does not become a steep day. Source:
Holt (1957, reprinted 2004) and Winters (1960); Gardner and McKenzie, "Forecasting trends in time series" (1985) for
phi. Missing data: no new sample, the last forecast.
"""

from __future__ import annotations

from typing import ClassVar

from orchestrator.messages import DemandCommand, DemandReading
from orchestrator.ports import Cadence
from policies.parameters import CountOrZero, NotNegative, PositiveShare, Share

DAY_S = 86_400.0


class HoltWinters:
    """Level, damped trend and, with `bins` > 0, a season of one day.

    Parameters
    ----------
    cadence : Cadence
    lead_s : float
        How far ahead the forecast looks.
    bins : int
        Bins of the day; 0: no season.
    alpha_ratio, beta_ratio, gamma_ratio, damping_ratio : float
        a, beta, g, phi.
    """

    no_linearisation = "a forecast: it sees arrivals, which it cannot move, so it closes no loop"
    example: ClassVar = {"lead_s": 1200.0, "bins": 24}

    def __init__(
        self,
        cadence: Cadence,
        *,
        lead_s: NotNegative,
        bins: CountOrZero = 0,
        alpha_ratio: PositiveShare = 0.5,
        beta_ratio: Share = 0.1,
        gamma_ratio: Share = 0.3,
        damping_ratio: PositiveShare = 0.9,
    ) -> None:
        self.cadence = cadence
        self.lead_s, self.bins = lead_s, bins
        self.alpha_ratio, self.beta_ratio, self.gamma_ratio = alpha_ratio, beta_ratio, gamma_ratio
        self.damping_ratio = damping_ratio
        self._l: float | None = None
        self._b = 0.0
        self._c = [0.0] * max(bins, 1)
        self._at_s, self._arrived, self._span_s = 0.0, 0, 0.0

    def act(self, y: DemandReading) -> DemandCommand:
        """Forecast the arrivals at `lead_s` from now."""
        span_s = y.at_s - self._at_s
        if span_s > 0.0:
            self._learn(max(0, y.arrived_total - self._arrived) / span_s, y.time_of_day_s)
            self._at_s, self._arrived, self._span_s = y.at_s, y.arrived_total, span_s
        if self._l is None:
            return DemandCommand()
        phi, steps = self.damping_ratio, self.lead_s / self._span_s
        reach = phi * (1.0 - phi**steps) / (1.0 - phi) if phi < 1.0 else steps
        season = self._c[self._bin(y.time_of_day_s + self.lead_s)]
        return DemandCommand(forecast_per_s=max(0.0, self._l + reach * self._b + season))

    def _learn(self, rate: float, time_of_day_s: float) -> None:
        i = self._bin(time_of_day_s)
        if self._l is None:
            self._l = rate
            return
        before, a = self._l, self.alpha_ratio
        self._l = a * (rate - self._c[i]) + (1.0 - a) * (before + self.damping_ratio * self._b)
        self._b = self.beta_ratio * (self._l - before) + (1.0 - self.beta_ratio) * self.damping_ratio * self._b
        if self.bins:
            self._c[i] += self.gamma_ratio * (rate - self._l - self._c[i])

    def _bin(self, time_of_day_s: float) -> int:
        return int(time_of_day_s % DAY_S / DAY_S * len(self._c)) % len(self._c)
