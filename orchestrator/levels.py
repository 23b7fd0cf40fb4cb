"""A counter that knows its time average: what the record's bins are made of.

    integral of v dt over [a, b] = v(b) b - v(a) a - sum of (change x instant)

so a change costs two additions, and a bin closes in constant time, whatever happened inside it.
"""

from __future__ import annotations


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
        value = self.value
        width_s = end_s - start_s
        mean = (value * end_s - self.first * start_s - self.moment) / width_s if width_s > 0.0 else value
        low, high = self.low, self.high
        self.first = self.low = self.high = value
        self.moment = 0.0
        if mean < low:  # by rounding
            mean = low
        elif mean > high:
            mean = high
        return mean, low, high
