"""Closed-loop source of N lanes, each one live session tree, as in AgentX (InferenceX `agentx` preset, agentx-harness).

`lanes` counts live session TREES, never requests or a rate. A lane is held until its whole tree has drained, then draws
its next conversation and plays it from the start under a fresh naming scope (AgentX's cache-bust mark). The first
conversation of each lane is cut at t*, uniform in `start_window` of its recorded run. The draw of a lane is a hash of
(lane, recycle number): a policy cannot change which conversation comes next, only when. With `order = "in_turn"` lane i
plays conversations i, i + N, i + 2N ... instead, each once before any comes again; a second round is another scope.

Where ids are global, those that several conversations have keep one scope for all plays of a round, and the rest are
fresh on every play. Independent rows are sessions of one request:
N lanes of them are a load of fixed concurrency.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from orchestrator.rng import mix, stream_key, uniform
from orchestrator.turn import TurnView
from scenarios.workloads.player import SourceContext
from scenarios.workloads.sampled_sessions import SampledSessions
from scenarios.workloads.script import Script
from scenarios.workloads.session_play import SessionPlay


class LanesSource(SampledSessions):
    """N lanes of live session trees; satisfies the `Source` protocol.

    Parameters
    ----------
    context : SourceContext
        Clock, hidden turns, turn numbers and class.
    scripts : sequence of Script
        The conversations to draw from, with equal chance.
    lanes : int
        Live session trees.
    seed : int
        The scenario's root seed; `name` names this source's own streams.
    start_window : (float, float)
        Where in the recorded run the first conversation of each lane is cut, as shares of its length; (0, 0) starts
        every lane at the beginning.
    primer : bool
        Send the one request before the cut first, so that its context exists when the measured ones come.
    tree_idle_cap_s, system_idle_cap_s : float, optional
        The two idle caps; see `player`.
    ramp_s : float
        Spread the lanes' starts evenly over this time.
    recycle : bool
        False: a drained lane stays empty.
    warmup_turns : int
        After the primer, send its prompt so many times more for one token each, as AgentX does.
    order : {"drawn", "in_turn"}
        How a lane selects its next conversation.
    """

    def __init__(
        self,
        context: SourceContext,
        scripts: Sequence[Script],
        *,
        lanes: int,
        seed: int,
        name: str = "lanes",
        start_window: tuple[float, float] = (0.25, 0.75),
        primer: bool = True,
        tree_idle_cap_s: float | None = 300.0,
        system_idle_cap_s: float | None = None,
        ramp_s: float = 0.0,
        recycle: bool = True,
        warmup_turns: int = 0,
        order: Literal["drawn", "in_turn"] = "drawn",
    ) -> None:
        super().__init__(
            context,
            scripts,
            seed=seed,
            name=name,
            tree_idle_cap_s=tree_idle_cap_s,
            system_idle_cap_s=system_idle_cap_s,
        )
        self._lanes = lanes
        self._window = start_window
        self._primer = primer
        self._ramp_s = ramp_s
        self._recycle = recycle
        self._warmup_turns = warmup_turns
        self._in_turn = order == "in_turn"
        self._cut = stream_key(seed, f"workload.{name}.cut")
        self._waiting = lanes

    def start(self, arrive: Callable[[TurnView], None]) -> None:
        """Schedule the start of every lane along the ramp."""
        self._player.start(arrive)
        now_s = self._context.clock.now()
        for lane in range(self._lanes):
            self._context.clock.at(now_s + self._ramp_s * lane / self._lanes, self._begin, (lane, 0))

    def exhausted(self) -> bool:
        """Return True when every tree has drained and lanes do not recycle."""
        return not self._recycle and self._waiting == 0 and self._player.trees == 0

    def draw(self, lane: int, recycle: int) -> int:
        """Return the index of the conversation that this lane plays at this recycle number."""
        if self._in_turn:
            return (lane + recycle * self._lanes) % len(self._scripts)
        return int(uniform(self._draw, mix(lane, recycle)) * len(self._scripts))

    def _known_scope(self, lane: int, recycle: int) -> int:
        """Return the scope of blocks that several conversations have: one for all plays of a round."""
        round_number = (lane + recycle * self._lanes) // len(self._scripts) if self._in_turn else 0
        return mix(self._root, round_number)

    def _begin(self, play: tuple[int, int]) -> None:
        lane, recycle = play
        script = self._scripts[self.draw(lane, recycle)]
        key = mix(mix(self._root, lane), recycle)
        cut_s = None
        if recycle == 0:
            self._waiting -= 1
            low, high = self._window
            share = low + (high - low) * uniform(self._cut, lane)
            cut_s = share * script.duration_s if share > 0.0 else None
        self._player.play(
            script,
            key=key,
            scope=key,
            known_scope=self._known_scope(lane, recycle),
            play=play_number(lane, recycle),
            cut_s=cut_s,
            primer=self._primer,
            warmup_turns=self._warmup_turns,
        )

    def _on_drained(self, tree: SessionPlay, at_s: float) -> None:
        if self._recycle:
            lane, recycle = divmod(tree.play, PLAYS)
            self._context.clock.at(at_s, self._begin, (lane, recycle + 1))


PLAYS = 1 << 32
"""The number of recycles per lane that a play number can encode."""


def play_number(lane: int, recycle: int) -> int:
    """Return the play number of (lane, recycle); `divmod(play, PLAYS)` is the inverse."""
    return lane * PLAYS + recycle
