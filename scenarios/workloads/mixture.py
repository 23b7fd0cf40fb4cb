"""Several sources as one; each hears of all endings and knows its own turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from orchestrator.ports import Source
from orchestrator.turn import TurnId, TurnView
from scenarios.workloads.player import Counted


class Mixture:
    """Sources side by side; they must share one count of births, so that no two turns have one id."""

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
        """Begin all, in their order."""
        for source in self._sources:
            source.start(arrive)

    def admitted(self, turn_id: TurnId, at_s: float) -> None:
        """Tell all."""
        for source in self._sources:
            source.admitted(turn_id, at_s)

    def ended(self, turn_id: TurnId, at_s: float, outcome: str) -> None:
        """Tell all."""
        for source in self._sources:
            source.ended(turn_id, at_s, outcome)

    def exhausted(self) -> bool:
        """Dry when all are."""
        return all(source.exhausted() for source in self._sources)
