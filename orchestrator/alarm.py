"""A live alarm for oscillation: a few additions a sample, for use while a run is under way.

Between two sign changes of the control error e(t) the absolute error is summed; a half-period that gathers more than a
sine of amplitude a at the loop's own period P would,

    integral |e| dt  >  2 a / w,    w = 2 pi / P          a in units of e, P in s

counts as one disturbance. Disturbances come and go in any loop; ten of them within fifty periods are an oscillation.
Noise that crosses zero quickly gathers little area, so it must be far larger than the sine to count.

References
----------
Hagglund, Control Engineering Practice 3 (1995) 1543-1551; 13 (2005) 1383-1390.
"""

from __future__ import annotations

from collections import deque
from math import pi


class OscillationAlarm:
    """Count half-periods whose error is too large; ring when too many fall within the supervision time.

    Parameters
    ----------
    amplitude : float
        Smallest amplitude of a sine that should count, in the error's own unit.
    period_s : float
        The loop's expected period of oscillation, seconds.
    needed : int
        Half-periods that make an alarm.
    periods : float
        Supervision time, in periods.
    """

    def __init__(self, amplitude: float, period_s: float, needed: int = 10, periods: float = 50.0) -> None:
        if amplitude <= 0 or period_s <= 0 or needed < 1:
            raise ValueError(f"amplitude {amplitude}, period {period_s} s and count {needed} must be positive")
        self._limit = 2 * amplitude * period_s / (2 * pi)
        self._span_s = periods * period_s
        self._hits: deque[float] = deque(maxlen=needed)
        self._area = 0.0
        self._last_s: float | None = None
        self._last = 0.0

    @property
    def ringing(self) -> bool:
        """Tell whether the alarm rings, as of the last sample."""
        full = len(self._hits) == self._hits.maxlen
        return full and self._last_s is not None and self._last_s - self._hits[0] <= self._span_s

    @property
    def period_s(self) -> float | None:
        """Return the period that the counted half-periods suggest, seconds (None before two of them)."""
        if len(self._hits) < 2:
            return None
        return 2 * (self._hits[-1] - self._hits[0]) / (len(self._hits) - 1)

    def feed(self, now_s: float, error: float) -> bool:
        """Take one sample of the control error at an instant not before the last; tell whether the alarm rings."""
        if self._last_s is not None:
            self._add(self._last_s, self._last, now_s, error)
        self._last_s, self._last = now_s, error
        return self.ringing

    def _add(self, from_s: float, one: float, to_s: float, two: float) -> None:
        width = to_s - from_s
        if one * two >= 0:
            self._area += width * (abs(one) + abs(two)) / 2
            return
        # The straight line between the samples crosses zero here: close one half-period and begin the next.
        share = one / (one - two)
        self._area += share * width * abs(one) / 2
        if self._area > self._limit:
            self._hits.append(from_s + share * width)
        self._area = (1 - share) * width * abs(two) / 2
