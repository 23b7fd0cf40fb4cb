"""What only the plant may know of a turn: its output length, its random draws, its recorded service time.

The workload writes it here when the turn arrives; the orchestrator and the laws have no way to read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from orchestrator.turn import TurnId


class HiddenTurn(NamedTuple):
    """What is hidden of one turn.

    `output_tokens` >= 1. `draws` are uniforms in (0, 1) that belong to the turn (the plant turns them into residence
    times and the like). `service_s` is a recorded server time, where the trace has one. `waits_for` is what the session
    does once the turn has ended, as its answer shows: `tool`, `human`, `ended`, or nothing where that is not known.
    """

    output_tokens: int
    draws: tuple[float, ...] = ()
    service_s: float | None = None
    waits_for: str = ""


class HiddenTurns(dict[TurnId, HiddenTurn]):
    """The hidden part of every live turn; the workload adds it, and removes it when the turn has ended.

    Attributes
    ----------
    beside : list of dict
        What else the plant keeps by turn between calls; `forget` removes a turn from these too.
    """

    def __init__(self, initial: Mapping[TurnId, HiddenTurn] = MappingProxyType({})) -> None:
        super().__init__(initial)
        self.other_tables: list[dict[TurnId, Any]] = []  # Any: instants, counts; nothing here reads them

    def forget(self, turn_id: TurnId, outcome: str) -> None:
        """Remove a turn that has ended; the plant itself clears the other tables for turns that it retires."""
        self.pop(turn_id, None)
        if outcome != "retired":
            for table in self.other_tables:
                table.pop(turn_id, None)
