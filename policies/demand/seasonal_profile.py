"""Yesterday at this hour, scaled to today: a profile of the day and how far today is from it.

    p[i]     rate in bin i of the day, mean over days (weight w for today)     turns/s
    k        today's rate / profile's rate, mean over tau                      1
    forecast k p[i + lead]                                                     turns/s

Source: essay, section 17, "observe customer workloads and time-of-day patterns"; the prior used by SageServe
(2502.14617). A `given` profile starts it off, so that the first day is not blind. Missing data: a bin never seen, the
present rate.
"""

from __future__ import annotations

from typing import ClassVar

from orchestrator.messages import DemandCommand, DemandReading
from orchestrator.ports import Cadence
from policies.blocks import Mean
from policies.parameters import Count, NotNegative, PositiveShare

DAY_S = 86_400.0


class SeasonalProfile:
    """A profile of the day, scaled to today.

    Parameters
    ----------
    cadence : Cadence
    lead_s : float
        How far ahead the forecast looks.
    bins : int
        Bins of the day.
    weight_ratio : float
        w, in (0, 1].
    tau_s : float
        Span of the mean of k.
    given_per_s : sequence of float, optional
        The profile to begin with, one rate a bin.
    """

    no_linearisation = "a forecast: it sees arrivals, which it cannot move, so it closes no loop"
    example: ClassVar = {"lead_s": 1200.0, "bins": 24}

    def __init__(
        self,
        cadence: Cadence,
        *,
        lead_s: NotNegative,
        bins: Count = 48,
        weight_ratio: PositiveShare = 0.5,
        tau_s: NotNegative = 3600.0,
        given_per_s: tuple[NotNegative, ...] = (),
    ) -> None:
        self.cadence = cadence
        self.lead_s, self.bins, self.weight_ratio = lead_s, bins, weight_ratio
        given = list(given_per_s)
        self._p: list[float | None] = [given[i * len(given) // bins] if given else None for i in range(bins)]
        self._k = Mean(tau_s)
        self._at_s, self._arrived = 0.0, 0
        self._rate: float | None = None
        self._now_bin, self._sum, self._span_s = -1, 0.0, 0.0

    def act(self, y: DemandReading) -> DemandCommand:
        """Forecast the arrivals at `lead_s` from now."""
        span_s = y.at_s - self._at_s
        if span_s > 0.0:
            self._learn(max(0, y.arrived_total - self._arrived), span_s, y)
            self._at_s, self._arrived = y.at_s, y.arrived_total
        if self._rate is None:
            return DemandCommand()
        ahead = self._p[self._bin(y.time_of_day_s + self.lead_s)]
        k = 1.0 if self._k.value is None else self._k.value
        return DemandCommand(forecast_per_s=self._rate if ahead is None else k * ahead)

    def _learn(self, arrived: int, span_s: float, y: DemandReading) -> None:
        self._rate = arrived / span_s
        i = self._bin(y.time_of_day_s - 0.5 * span_s)  # the middle of what was counted
        if i != self._now_bin:
            self._close()
            self._now_bin, self._sum, self._span_s = i, 0.0, 0.0
        self._sum += arrived
        self._span_s += span_s
        known = self._p[i]
        if known is not None and known > 0.0:
            self._k.update(min(max(self._rate / known, 0.2), 5.0), y.at_s)

    def _close(self) -> None:
        """Take the finished bin into the profile."""
        i = self._now_bin
        if i >= 0 and self._span_s > 0.0:
            seen, known = self._sum / self._span_s, self._p[i]
            self._p[i] = seen if known is None else known + self.weight_ratio * (seen - known)

    def _bin(self, time_of_day_s: float) -> int:
        return int(time_of_day_s % DAY_S / DAY_S * self.bins) % self.bins
