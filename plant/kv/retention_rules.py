"""The retention rules in force: how long a context of each kind may lie in a tier, and who goes first."""

from __future__ import annotations

import math
from typing import Literal

from orchestrator.messages import RetentionCommand


class RetentionRules:
    """What the retention law last commanded; before that, everything is kept while there is room."""

    def __init__(self) -> None:
        self.demote_after_s: dict[str, float] = {}
        self.discard_after_s: dict[str, float] = {}
        self.order: Literal["lru", "value"] = "lru"

    def set(self, command: RetentionCommand) -> None:
        """Take over a command; a kind that it does not name is kept while there is room."""
        if command.rules is not None:
            self.demote_after_s = {rule.kind: rule.demote_after_s for rule in command.rules}
            self.discard_after_s = {rule.kind: rule.discard_after_s for rule in command.rules}
        if command.order is not None:
            self.order = command.order

    def life_s(self, kind: str) -> float:
        """Return how long a context of this kind may lie idle before it is discarded."""
        return self.discard_after_s.get(kind, math.inf)

    def hot_s(self, kind: str) -> float:
        """Return how long it may lie idle before it is sent a tier down."""
        return self.demote_after_s.get(kind, math.inf)
