"""Draws for random worlds: a counter hash of (seed, world), so that world n of a seed is the same for ever."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from orchestrator.rng import stream_key, uniform

T = TypeVar("T")


class Draws:
    """The draws of one world, in order."""

    def __init__(self, seed: int, world: int) -> None:
        self._stream, self._world, self._drawn = stream_key(seed, "fuzz"), world, 0

    def share(self) -> float:
        """Return a number between 0 and 1."""
        self._drawn += 1
        return uniform(self._stream, self._world, self._drawn)

    def chance(self, ratio: float) -> bool:
        """Return True with this probability."""
        return self.share() < ratio

    def integer(self, low: int, high: int) -> int:
        """Return one of low, ..., high."""
        return low + int(self.share() * (high - low + 1))

    def number(self, low: float, high: float) -> float:
        """Return a number of three digits between the two."""
        return float(f"{low + (high - low) * self.share():.3g}")

    def one_of(self, values: Sequence[T]) -> T:
        """Return one of the values."""
        return values[self.integer(0, len(values) - 1)]
