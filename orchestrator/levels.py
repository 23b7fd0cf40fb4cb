"""Values weighted by time: what the bins of a record are made of.

    integral of v dt over [a, b] = v(b) b - v(a) a - sum of (change x instant)

so a change costs two additions, and a bin closes in constant time, whatever happened inside it.
"""

from __future__ import annotations

import math


class TimeWeightedLevel:
    """A piecewise constant value with its mean, minimum and maximum since the bin began."""

    __slots__ = ("first", "high", "low", "moment", "value")

    def __init__(self, value: float = 0) -> None:
        self.value = self.first = self.low = self.high = value
        self.moment = 0.0

    def add(self, change: float, now_s: float) -> None:
        """Change the value at `now_s`."""
        self.value = value = self.value + change
        self.moment += change * now_s
        if value > self.high:
            self.high = value
        elif value < self.low:
            self.low = value

    def set(self, value: float, now_s: float) -> None:
        """Set the value at `now_s`."""
        if value != self.value:
            self.add(value - self.value, now_s)

    def close(self, start_s: float, end_s: float) -> tuple[float, float, float]:
        """Return mean, low and high in the bin `[start_s, end_s]`, and begin the next one.

        A bin of no width has the present value.
        """
        value, low, high = self.value, self.low, self.high
        if low == high:  # nothing has changed
            return value, value, value
        width_s = end_s - start_s
        mean = (value * end_s - self.first * start_s - self.moment) / width_s if width_s > 0.0 else value
        self.first = self.low = self.high = value
        self.moment = 0.0
        if mean < low:  # by rounding
            mean = low
        elif mean > high:
            mean = high
        return mean, low, high


class TimeWeightedRamp:
    """A value that is a straight line of time between its changes, with mean, minimum and maximum since the bin began.

    value(t) = (base + rate_per_s x t) x scale; each stretch between two changes is integrated as it ends.
    """

    __slots__ = ("area", "base", "high", "last_s", "low", "rate_per_s", "scale")

    def __init__(self, scale: float = 1.0) -> None:
        self.base = self.rate_per_s = self.area = self.last_s = 0.0
        self.low, self.high = math.inf, -math.inf
        self.scale = scale

    def change(self, base: float, rate_per_s: float, now_s: float) -> None:
        """Add to base and rate at `now_s`."""
        last_s = self.last_s
        if now_s > last_s:  # as in `_pass`, without the call: a batch changes the ramp at every step that matters
            held, rate, scale = self.base, self.rate_per_s, self.scale
            start, end = (held + rate * last_s) * scale, (held + rate * now_s) * scale
            self.area += (now_s - last_s) * 0.5 * (start + end)
            if start > end:
                start, end = end, start
            if start < self.low:
                self.low = start
            if end > self.high:
                self.high = end
            self.last_s = now_s
        self.base += base
        self.rate_per_s += rate_per_s

    def set_scale(self, scale: float, now_s: float) -> None:
        """Set the scale at `now_s`."""
        if now_s > self.last_s:
            self._pass(now_s)
        self.scale = scale

    def _pass(self, now_s: float) -> None:
        last_s, rate, scale = self.last_s, self.rate_per_s, self.scale
        start, end = (self.base + rate * last_s) * scale, (self.base + rate * now_s) * scale
        self.area += (now_s - last_s) * 0.5 * (start + end)
        if start > end:
            start, end = end, start
        if start < self.low:
            self.low = start
        if end > self.high:
            self.high = end
        self.last_s = now_s

    def close(self, start_s: float, end_s: float) -> tuple[float, float, float]:
        """Return mean, low and high in the bin `[start_s, end_s]`, and begin the next one.

        What lasts no time does not count; a bin of no width has the present value.
        """
        if end_s > self.last_s:
            self._pass(end_s)
        width_s = end_s - start_s
        if self.low > self.high or width_s <= 0.0:
            mean = low = high = (self.base + self.rate_per_s * end_s) * self.scale
        else:
            low, high = self.low, self.high
            mean = min(max(self.area / width_s, low), high)
        self.area, self.low, self.high = 0.0, math.inf, -math.inf
        return max(mean, 0.0), max(low, 0.0), max(high, 0.0)
