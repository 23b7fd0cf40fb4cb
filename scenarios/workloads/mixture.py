"""Combine several sources into one; every source receives all events and ignores the turns of others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from orchestrator.ports import Source
from orchestrator.turn import TurnId, TurnView
from scenarios.workloads.player import Counted


class Mixture:
    """Concurrent sources; they share one turn counter (`SourceContext.births`), so that ids are unique."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = list(sources)

    def statistics(self) -> dict[str, float]:
        """Return the sums of the sources' counts."""
        total: dict[str, float] = {}
        for source in self._sources:
            if isinstance(source, Counted):
                for name, value in source.statistics().items():
                    total[name] = total.get(name, 0) + value
        return total

    def start(self, arrive: Callable[[TurnView], None]) -> None:
        """Start all sources, in order."""
        for source in self._sources:
            source.start(arrive)

    def admitted(self, turn_id: TurnId, at_s: float) -> None:
        """Forward to every source."""
        for source in self._sources:
            source.admitted(turn_id, at_s)

    def ended(self, turn_id: TurnId, at_s: float, outcome: str) -> None:
        """Forward to every source."""
        for source in self._sources:
            source.ended(turn_id, at_s, outcome)

    def exhausted(self) -> bool:
        """Return True when all sources are exhausted."""
        return all(source.exhausted() for source in self._sources)
