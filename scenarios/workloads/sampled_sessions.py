"""Base class of the sources that replay sampled conversations: hash streams, player, and turn events."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.rng import stream_key
from orchestrator.turn import TurnId
from scenarios.errors import UserError
from scenarios.workloads.player import Player, SourceContext
from scenarios.workloads.script import Script
from scenarios.workloads.session_play import SessionPlay


class SampledSessions:
    """The common part of `lanes` and `sessions`.

    Parameters
    ----------
    context : SourceContext
        Clock, hidden turns, turn numbers and class.
    scripts : sequence of Script
        The conversations to draw from.
    seed : int
        The scenario's root seed; `name` names this source's own streams.
    tree_idle_cap_s, system_idle_cap_s : float or None
        The two idle caps; see `player`.

    Raises
    ------
    UserError
        There is no conversation.
    """

    def __init__(
        self,
        context: SourceContext,
        scripts: Sequence[Script],
        *,
        seed: int,
        name: str,
        tree_idle_cap_s: float | None,
        system_idle_cap_s: float | None,
    ) -> None:
        if not scripts:
            raise UserError("the workload has no conversation to draw from")
        self._context, self._scripts = context, list(scripts)
        self._draw = stream_key(seed, f"workload.{name}.conversation")
        self._root = stream_key(seed, f"workload.{name}.key")
        self._player = Player(
            context, self._on_drained, tree_idle_cap_s=tree_idle_cap_s, system_idle_cap_s=system_idle_cap_s
        )

    @property
    def player(self) -> Player:
        """The player, with its counts of turns abandoned and of idle time cut."""
        return self._player

    def statistics(self) -> dict[str, float]:
        """Return the player's counts."""
        return self._player.statistics()

    def admitted(self, turn_id: TurnId, at_s: float) -> None:
        """Ignore admissions: sessions do not depend on them."""

    def ended(self, turn_id: TurnId, at_s: float, outcome: str) -> None:
        """Process the end of a turn."""
        self._player.ended(turn_id, at_s, outcome)

    def _on_drained(self, tree: SessionPlay, at_s: float) -> None:
        """Do nothing: a finished session is not replaced."""
