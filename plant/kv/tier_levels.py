"""What the tiers hold over time, for the record: containers that keep a time-weighted level of their size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from orchestrator.clock import Clock
from orchestrator.levels import TimeWeightedLevel

K = TypeVar("K")
V = TypeVar("V")
_set_item = list.__setitem__


class TimedDict(dict[K, V]):
    """A dict whose number of entries is a level; entries are set and deleted by key alone."""

    __slots__ = ("_clock", "level")

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock, self.level = clock, TimeWeightedLevel()

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.level.set(len(self), self._clock.now())

    def __delitem__(self, key: K) -> None:
        super().__delitem__(key)
        self.level.set(len(self), self._clock.now())


class TimedBytes(list[int]):
    """Bytes by index, each with the level that it counts in; `used[i] += n` keeps the level."""

    __slots__ = ("_clock", "levels")

    def __init__(self, clock: Clock, levels: Sequence[TimeWeightedLevel]) -> None:
        super().__init__([0] * len(levels))
        self._clock, self.levels = clock, levels

    def __setitem__(self, index: int, value: int) -> None:  # type: ignore[override]  # slices are never set
        # TimeWeightedLevel.add, without the call: this runs for every move of every context.
        level = self.levels[index]  # several indices may count in one level
        change = value - self[index]
        level.value = total = level.value + change
        level.moment += change * self._clock.now()
        if total > level.high:
            level.high = total
        elif total < level.low:
            level.low = total
        _set_item(self, index, value)
