"""Source of sessions that arrive at the times of a process: open loop between sessions, closed loop within each.

Session n arrives at the n-th time, plays one conversation from its start, and ends when its tree has drained. The
conversation is a hash of n.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from orchestrator.rng import mix, uniform
from orchestrator.turn import TurnView
from scenarios.workloads.player import SourceContext
from scenarios.workloads.sampled_sessions import SampledSessions
from scenarios.workloads.script import Script


class SessionArrivals(SampledSessions):
    """Sessions at the times of a process; satisfies the `Source` protocol.

    Parameters
    ----------
    context : SourceContext
        Clock, hidden turns, turn numbers and class.
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
    """

    def __init__(
        self,
        context: SourceContext,
        scripts: Sequence[Script],
        times_s: Iterator[float],
        *,
        seed: int,
        name: str = "sessions",
        sessions: int | None = None,
        tree_idle_cap_s: float | None = None,
        system_idle_cap_s: float | None = None,
    ) -> None:
        super().__init__(
            context,
            scripts,
            seed=seed,
            name=name,
            tree_idle_cap_s=tree_idle_cap_s,
            system_idle_cap_s=system_idle_cap_s,
        )
        self._times_s, self._sessions = times_s, sessions
        self._dry = False

    def start(self, arrive: Callable[[TurnView], None]) -> None:
        """Begin with the first arrival."""
        self._player.start(arrive)
        self._next(0)

    def exhausted(self) -> bool:
        """Return True once the last session has arrived and every tree has drained."""
        return self._dry and self._player.trees == 0

    def draw(self, session: int) -> int:
        """Return the index of the conversation that this session plays."""
        return int(uniform(self._draw, session) * len(self._scripts))

    def _next(self, session: int) -> None:
        when_s = None if session == self._sessions else next(self._times_s, None)
        if when_s is None:
            self._dry = True
        else:
            self._context.clock.at(when_s, self._begin, session)

    def _begin(self, session: int) -> None:
        key = mix(self._root, session)
        self._player.play(self._scripts[self.draw(session)], key=key, scope=key, known_scope=self._root, play=session)
        self._next(session + 1)
