"""Sessions that arrive by themselves: open loop outside, closed loop inside.

Session n arrives at the n-th time of a process, plays one conversation from its start, and is gone when its tree has
drained. Which conversation it plays is a hash of n.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from orchestrator.rng import mix, stream_key, uniform
from orchestrator.turn import TurnId, TurnView
from scenarios.errors import UserError
from scenarios.workloads.player import Player, Stage, Tree
from scenarios.workloads.script import Script


class SessionArrivals:
    """Sessions at the times of a process; satisfies the `Source` protocol.

    Parameters
    ----------
    stage : Stage
        Clock, hidden halves, birth numbers and class.
    scripts : sequence of Script
        The conversations to draw from, with equal chance.
    times_s : iterator of float
        Arrival times, rising, seconds from the start; see `arrivals.times`.
    seed : int
        The scenario's root seed; `name` names this source's own streams.
    sessions : int, optional
        Stop after this many; None: as long as the times last.
    tree_idle_cap_s, system_idle_cap_s : float, optional
        The two idle caps; see `player`.
    global_scope : bool
        Block ids mean the same in all conversations: one naming scope for all sessions.
    """

    def __init__(
        self,
        stage: Stage,
        scripts: Sequence[Script],
        times_s: Iterator[float],
        *,
        seed: int,
        name: str = "sessions",
        sessions: int | None = None,
        tree_idle_cap_s: float | None = None,
        system_idle_cap_s: float | None = None,
        global_scope: bool = False,
    ) -> None:
        if not scripts:
            raise UserError("the workload has no conversation to draw from")
        self._stage = stage
        self._scripts = list(scripts)
        self._times_s = times_s
        self._sessions = sessions
        self._global = global_scope
        self._draw = stream_key(seed, f"workload.{name}.conversation")
        self._root = stream_key(seed, f"workload.{name}.key")
        self._player = Player(
            stage, self._drained, tree_idle_cap_s=tree_idle_cap_s, system_idle_cap_s=system_idle_cap_s
        )
        self._dry = False
        self.conversations_begun = 0

    @property
    def player(self) -> Player:
        """The player, with its counts of turns abandoned and of idle time cut."""
        return self._player

    def statistics(self) -> dict[str, float]:
        """Return the player's counts."""
        return self._player.statistics()

    def start(self, arrive: Callable[[TurnView], None]) -> None:
        """Begin with the first arrival."""
        self._player.start(arrive)
        self._next(0)

    def admitted(self, turn_id: TurnId, at_s: float) -> None:
        """Sessions do not follow the gate."""

    def ended(self, turn_id: TurnId, at_s: float, outcome: str) -> None:
        """Hear that a turn ended."""
        self._player.ended(turn_id, at_s, outcome)

    def exhausted(self) -> bool:
        """Dry once the last session has arrived and every tree has drained."""
        return self._dry and self._player.trees == 0

    def draw(self, session: int) -> int:
        """Return the index of the conversation that this session plays."""
        return int(uniform(self._draw, session) * len(self._scripts))

    def _next(self, session: int) -> None:
        when_s = None if session == self._sessions else next(self._times_s, None)
        if when_s is None:
            self._dry = True
        else:
            self._stage.clock.at(when_s, self._begin, session)

    def _begin(self, session: int) -> None:
        key = mix(self._root, session)
        scope = self._root if self._global else key
        self.conversations_begun += 1
        self._player.play(self._scripts[self.draw(session)], key=key, scope=scope, play=session)
        self._next(session + 1)

    def _drained(self, tree: Tree, at_s: float) -> None:
        """A session that has drained is gone."""
