"""What sources share that play conversations drawn by a hash: the draw's streams, the player, and what it hears."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.rng import stream_key
from orchestrator.turn import TurnId
from scenarios.errors import UserError
from scenarios.workloads.player import Player, SessionPlay, SourceContext
from scenarios.workloads.script import Script


class DrawnConversations:
    """The common part of `lanes` and `sessions`.

    Parameters
    ----------
    stage : SourceContext
        Clock, hidden halves, birth numbers and class.
    scripts : sequence of Script
        The conversations to draw from.
    seed : int
        The scenario's root seed; `name` names this source's own streams.
    tree_idle_cap_s, system_idle_cap_s : float or None
        The two idle caps; see `player`.
    global_scope : bool
        Block ids mean the same in all conversations.

    Raises
    ------
    UserError
        There is no conversation.
    """

    def __init__(
        self,
        stage: SourceContext,
        scripts: Sequence[Script],
        *,
        seed: int,
        name: str,
        tree_idle_cap_s: float | None,
        system_idle_cap_s: float | None,
        global_scope: bool,
    ) -> None:
        if not scripts:
            raise UserError("the workload has no conversation to draw from")
        self._stage, self._scripts, self._global = stage, list(scripts), global_scope
        self._draw = stream_key(seed, f"workload.{name}.conversation")
        self._root = stream_key(seed, f"workload.{name}.key")
        self._player = Player(
            stage, self._drained, tree_idle_cap_s=tree_idle_cap_s, system_idle_cap_s=system_idle_cap_s
        )
        self.conversations_begun = 0

    @property
    def player(self) -> Player:
        """The player, with its counts of turns abandoned and of idle time cut."""
        return self._player

    def statistics(self) -> dict[str, float]:
        """Return the player's counts."""
        return self._player.statistics()

    def admitted(self, turn_id: TurnId, at_s: float) -> None:
        """Conversations do not follow the gate."""

    def ended(self, turn_id: TurnId, at_s: float, outcome: str) -> None:
        """Hear that a turn ended."""
        self._player.ended(turn_id, at_s, outcome)

    def _drained(self, tree: SessionPlay, at_s: float) -> None:
        """A conversation that has drained is gone."""
