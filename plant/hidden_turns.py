"""What only the plant knows of a turn: how long its answer is, and how long it would take.

The workload writes it here when the turn arrives; the orchestrator and the laws have no way to read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from orchestrator.turn import TurnId


class HiddenTurn(NamedTuple):
    """The hidden half of a turn.

    `output_tokens` >= 1. `draws` are uniforms in (0, 1) that belong to the turn (the plant turns them into residence
    times and the like). `service_s` is a recorded server time, where the trace has one. `waits_for` is what the session
    does once the turn has ended, as its answer shows: `tool`, `human`, `ended`, or nothing where that is not known.
    """

    output_tokens: int
    draws: tuple[float, ...] = ()
    service_s: float | None = None
    waits_for: str = ""


class HiddenTurns(dict[TurnId, HiddenTurn]):
    """Hidden halves by turn: the workload puts them, and says when a turn has ended.

    Attributes
    ----------
    beside : list of dict
        What else the plant keeps by turn, from one call to the next.
    """

    def __init__(self, known: Mapping[TurnId, HiddenTurn] = MappingProxyType({})) -> None:
        super().__init__(known)
        self.beside: list[dict[TurnId, Any]] = []  # Any: instants, counts; nothing here reads them

    def forget(self, turn_id: TurnId, outcome: str) -> None:
        """Drop what is kept of a turn that has ended; of all ends, the plant hears only of those that it retires."""
        self.pop(turn_id, None)
        if outcome != "retired":
            for kept in self.beside:
                kept.pop(turn_id, None)
