"""Shed when even the shortest wait has been too long for a while: controlled delay.

    d      age of the oldest waiting turn                                    s
    first  the instant since when d has been above target without a break    s
    drop   begins once that has lasted an interval; ends when d < target     -
    f      sqrt(count) / interval, count growing by f dt                     turns/s
    shed   f / arrival rate, at most 1                                       1

Between "drop each interval/sqrt(count)" and a rate f lies only sampling: the law acts at ticks, not at dequeues. A
line that empties between bursts is left alone; only a standing one is cut. Source: RFC 8289, sections 3 and 4 (there
5 ms and 100 ms; the target is 5 to 10 % of the interval, the interval a worst-case round trip). Missing data: without
an arrival rate, the last one.
"""

from __future__ import annotations

import math

from orchestrator.messages import AdmissionCommand, AdmissionReading
from orchestrator.ports import Cadence
from policies.parameters import Positive


class Codel:
    """Shed arrivals while even the shortest wait stands above its target.

    Parameters
    ----------
    cadence : Cadence
    target_s, interval_s : float
        Acceptable standing wait, and how long it must stand before turns are shed.
    """

    no_linearisation = (
        "a timer and a square-root schedule: it sheds nothing until a wait has stood for an interval, so there "
        "is no rate to vary a little"
    )

    def __init__(
        self,
        cadence: Cadence,
        *,
        target_s: Positive = 0.5,
        interval_s: Positive = 10.0,
    ) -> None:
        self.cadence = cadence
        self.target_s, self.interval_s = target_s, interval_s
        self._above_s: float | None = None
        self._count = 1.0
        self._arrival_per_s = 0.0
        self._at_s = 0.0

    def act(self, y: AdmissionReading) -> AdmissionCommand:
        """Set the share of arrivals to shed."""
        if y.arrival_per_s is not None:
            self._arrival_per_s = y.arrival_per_s
        dt, self._at_s = max(0.0, y.at_s - self._at_s), max(y.at_s, self._at_s)
        shed = 0.0
        if y.wait_s < self.target_s:
            self._above_s, self._count = None, 1.0
        elif self._above_s is None:
            self._above_s = y.at_s
        elif y.at_s - self._above_s >= self.interval_s:
            f = math.sqrt(self._count) / self.interval_s
            most = (self.interval_s * self._arrival_per_s) ** 2
            self._count = min(self._count + f * dt, max(1.0, most))
            shed = min(1.0, f / self._arrival_per_s) if self._arrival_per_s > 0.0 else 1.0
        return AdmissionCommand(shed_ratio=dict.fromkeys(y.by_class, shed))
