"""Contexts in the order of their last use, tier by tier, so that the right one goes when room is needed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping

from plant.kv.context import AT_REST, KINDS, Context
from plant.kv.spec import TIER_NAMES


class LruQueue:
    """The contexts of one tier, oldest first within each kind. Those in use or on their way are passed over."""

    def __init__(self) -> None:
        self.rows: dict[str, OrderedDict[int, Context]] = {kind: OrderedDict() for kind in KINDS}

    def evictable(self, kind: str) -> Iterator[Context]:
        """Yield the contexts of a kind that may go, oldest first."""
        return (context for context in self.rows[kind].values() if context.phase == AT_REST and not context.pins)

    def oldest(self) -> Context | None:
        """Return the context that has lain longest, of any kind."""
        best: Context | None = None
        for kind in KINDS:
            context = next(self.evictable(kind), None)
            if context is not None and (best is None or context.stamp < best.stamp):
                best = context
        return best

    def least_valued(self, now_s: float, lives_s: Mapping[str, float]) -> Context | None:
        """Return the context that has used up most of the life which its kind is given; the oldest, if none has any."""
        best, most = None, 0.0
        for kind in KINDS:
            context = next(self.evictable(kind), None)
            if context is not None:
                life_s = lives_s.get(kind, float("inf"))
                spent = (now_s - context.since_s) / life_s if life_s > 0.0 else float("inf")
                if spent > most:
                    best, most = context, spent
        return best or self.oldest()


class LruQueues:
    """One queue for each tier; a context stands in that of its home."""

    def __init__(self) -> None:
        self.tiers = [LruQueue() for _ in TIER_NAMES]
        self._stamps = 0

    def touch(self, context: Context, kind: str) -> None:
        """Make a context the youngest of a kind."""
        self._stamps = context.stamp = self._stamps + 1
        rows, key = self.tiers[context.home].rows, context.key
        row = rows[kind]
        if kind == context.kind and key in row:
            row.move_to_end(key)
            return
        rows[context.kind].pop(key, None)
        context.kind = kind
        row[key] = context

    def add(self, context: Context) -> None:
        """Put a context in the queue of its home, as the last of its kind."""
        self.tiers[context.home].rows[context.kind][context.key] = context

    def remove(self, context: Context) -> None:
        """Take a context off; harmless if it stands in no queue."""
        self.tiers[context.home].rows[context.kind].pop(context.key, None)
