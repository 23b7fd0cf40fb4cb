"""Play session trees in closed loop: a request starts only after what it follows has really ended, plus its gap.

A turn's key is a hash of (play, stream, ordinal), where the play is a lane and its recycle number, or a session's
number: never the order of arrival. Prompt, output length and gap are looked up by that place in the recorded run, so
two policies on one seed see the same turn under the same key.

Two idle caps that must not be confused: the tree's (when nothing of a tree is in flight, its next start is at most
`tree_idle_cap_s` away, and all timers of the tree move alike), and the system's (when nothing at all is in flight, all
timers of all trees move alike). Neither can open a gate: a request that waits for others has no timer yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from orchestrator.clock import Clock
from orchestrator.rng import mix, uniform
from orchestrator.turn import ClassName, TurnId, TurnView, new
from plant.hidden_turns import HiddenTurn, HiddenTurns
from scenarios.workloads.script import Node, Script

SESSION_MASK = (1 << 63) - 1
"""Session ids are positive 64-bit integers."""
ENDS_SESSION = frozenset({"context_overflow", "failed:context_overflow", "rejected:context_overflow"})
"""An answer that says the context can never fit ends its session, as in AgentX; any other loss lets it go on."""


@dataclass(slots=True, kw_only=True)
class SourceContext:
    """What every source is handed: the clock, the hidden halves, the birth numbers, and the class of its turns.

    `births` counts turns over all sources of a run; `draws` is how many uniforms each turn carries to the plant, from
    the stream `draw_stream`.
    """

    clock: Clock
    truths: HiddenTurns
    births: Iterator[int]
    class_name: ClassName
    draw_stream: int = 0
    draws: int = 0


@runtime_checkable
class Counted(Protocol):
    """A source that counts what it did, for the record."""

    def statistics(self) -> dict[str, float]:
        """Return counts by name."""
        ...


class SessionPlay:
    """One live play of a script."""

    __slots__ = (
        "abandoned", "first", "floors", "in_flight", "key", "keys", "left", "missing", "pending", "play", "primed",
        "scope", "script", "warm_left", "warm_sent",
    )  # fmt: skip

    def __init__(self, script: Script, key: int, scope: int, play: int) -> None:
        self.script = script
        self.key = key
        self.scope = scope
        self.play = play
        self.keys = [mix(key, s) for s in range(len(script.parts))]
        self.left = script.requests
        self.first = [0] * len(script.parts)  # the first request of each part that is played
        self.in_flight = 0
        self.abandoned = False
        self.pending: dict[Node, tuple[float, Any]] = {}
        self.missing: dict[Node, int] = {}
        self.floors: dict[Node, float] = {}
        self.primed: Node | None = None
        self.warm_left = 0
        self.warm_sent = 0


class Player:
    """Runs any number of trees on one clock; `drained(tree, at_s)` is called when the last turn of one has ended."""

    def __init__(
        self,
        stage: SourceContext,
        drained: Callable[[SessionPlay, float], None],
        *,
        tree_idle_cap_s: float | None = None,
        system_idle_cap_s: float | None = None,
    ) -> None:
        self._stage = stage
        self._drained = drained
        self._tree_cap_s = tree_idle_cap_s
        self._system_cap_s = system_idle_cap_s
        self._arrive: Callable[[TurnView], None] = lambda turn: None
        self._live: dict[int, tuple[SessionPlay, int, int]] = {}
        self._trees: dict[int, SessionPlay] = {}
        self.begun = 0
        self.overflowed = 0
        self.abandoned_turns = 0
        self.idle_cut_s = 0.0

    def start(self, arrive: Callable[[TurnView], None]) -> None:
        """Send arrivals here from now on."""
        self._arrive = arrive

    @property
    def trees(self) -> int:
        """The number of trees alive."""
        return len(self._trees)

    def statistics(self) -> dict[str, float]:
        """Return sessions begun, sessions ended by an overflow with the turns they left, and idle time cut."""
        return {
            "sessions_begun": self.begun,
            "sessions_overflowed": self.overflowed,
            "turns_abandoned": self.abandoned_turns,
            "idle_cut_s": round(self.idle_cut_s, 6),
        }

    def play(
        self,
        script: Script,
        *,
        key: int,
        scope: int,
        play: int = 0,
        cut_s: float | None = None,
        primer: bool = False,
        warmup_turns: int = 0,
    ) -> None:
        """Begin a tree now: whole, or from `cut_s` of its recorded run.

        With `primer` the request before the cut is sent first, then its prompt `warmup_turns` times more for one token
        each; what follows it in the recorded run waits for them.
        """
        tree = SessionPlay(script, key, scope, play)
        self.begun += 1
        self._trees[key] = tree
        first = [0] * len(script.parts)
        if cut_s is not None:
            first = [next((k for k, t in enumerate(p.t_s) if t >= cut_s), len(p.t_s)) for p in script.parts]
        begin_s = 0.0 if cut_s is None else cut_s
        primed = _primer(script, first) if primer and cut_s is not None else None
        if primed is not None:
            first[primed[0]] -= 1
            tree.primed, tree.warm_left = primed, warmup_turns
        tree.first = first
        tree.left += tree.warm_left - sum(first)
        now_s = self._stage.clock.now()
        ready: list[tuple[float, Node]] = []
        for node, waits in script.gates.items():
            open_waits = sum(k >= first[s] for s, k in waits)
            tree.missing[node] = open_waits + (node[1] > first[node[0]])
        for s, part in enumerate(script.parts):
            k = first[s]
            if k < len(part.t_s) and not tree.missing.get((s, k)):
                delay_s = 0.0 if (s, k) == primed else part.t_s[k] - begin_s
                ready.append((now_s + max(0.0, delay_s), (s, k)))
        if primed is not None:
            s, k = primed
            followers = [(s, k + 1)] if k + 1 < len(script.parts[s].t_s) else []
            for fs, fk in followers + script.parts[s].after.get(k, []):
                tree.floors[fs, fk] = now_s + script.parts[fs].t_s[fk] - begin_s
        if tree.left == 0:
            self._stage.clock.at(now_s, self._finish, tree)
        self._schedule(tree, ready, now_s)

    def ended(self, turn_id: TurnId, at_s: float, outcome: str) -> None:
        """Hear that a turn ended, and start what was waiting for it; turns of other sources are ignored."""
        live = self._live.pop(turn_id, None)
        if live is None:
            return
        self._stage.truths.forget(turn_id, outcome)
        tree, s, k = live
        tree.in_flight -= 1
        tree.left -= 1
        if outcome in ENDS_SESSION and not tree.abandoned:
            self._abandon(tree)
        if tree.warm_left and not tree.abandoned and (s, k) == tree.primed:
            tree.warm_left -= 1
            tree.warm_sent += 1
            self._schedule(tree, [(at_s, (s, k))], at_s)
        elif not tree.abandoned:
            part = tree.script.parts[s]
            ready: list[tuple[float, Node]] = []
            if k + 1 < len(part.gap_s):
                self._release(tree, (s, k + 1), at_s, ready)
            if part.after:
                for node in part.after.get(k, ()):
                    self._release(tree, node, at_s, ready)
            self._schedule(tree, ready, at_s)
        if tree.left == 0:
            self._finish(tree)
        elif self._system_cap_s is not None and not self._live:
            self._cut_system_idle(at_s)

    def _release(self, tree: SessionPlay, node: Node, at_s: float, ready: list[tuple[float, Node]]) -> None:
        """Count one predecessor of `node` as ended; with none left, its gap begins. What the cut left out stays out."""
        if node[1] < tree.first[node[0]]:
            return
        missing = tree.missing.get(node)
        if missing is not None:
            tree.missing[node] = missing - 1
            if missing > 1:
                return
        when_s = at_s + tree.script.parts[node[0]].gap_s[node[1]]
        if tree.floors and node in tree.floors:
            when_s = max(at_s, tree.floors.pop(node))
        ready.append((when_s, node))

    def _schedule(self, tree: SessionPlay, ready: list[tuple[float, Node]], now_s: float) -> None:
        cap_s = self._tree_cap_s
        if cap_s is not None and not tree.in_flight and (ready or tree.pending):
            soonest = min([when for when, _ in ready] + [when for when, _ in tree.pending.values()])
            cut_s = soonest - now_s - cap_s
            if cut_s > 0.0:
                self.idle_cut_s += cut_s
                ready = [(when - cut_s, node) for when, node in ready]
                self._shift(tree, cut_s)
        at = self._stage.clock.at
        for when_s, node in ready:
            tree.pending[node] = (when_s, at(when_s, self._fire, (tree, node)))

    def _shift(self, tree: SessionPlay, cut_s: float) -> None:
        clock = self._stage.clock
        for node, (when_s, entry) in list(tree.pending.items()):
            clock.cancel_at(entry)
            tree.pending[node] = (when_s - cut_s, clock.at(when_s - cut_s, self._fire, (tree, node)))
        for node, floor_s in tree.floors.items():
            tree.floors[node] = floor_s - cut_s

    def _cut_system_idle(self, now_s: float) -> None:
        """Nothing is in flight anywhere: bring the next start to the cap, and all others by as much."""
        whens = [when for tree in self._trees.values() for when, _ in tree.pending.values()]
        if whens and self._system_cap_s is not None:
            cut_s = min(whens) - now_s - self._system_cap_s
            if cut_s > 0.0:
                self.idle_cut_s += cut_s
                for tree in self._trees.values():
                    self._shift(tree, cut_s)

    def _fire(self, which: tuple[SessionPlay, Node]) -> None:
        tree, node = which
        s, k = node
        del tree.pending[node]
        tree.in_flight += 1
        stage = self._stage
        part = tree.script.parts[s]
        turn_id = TurnId(next(stage.births))
        key, output_tokens = mix(tree.keys[s], k), part.output_tokens[k]
        if tree.warm_sent and node == tree.primed:
            key, output_tokens = mix(key, tree.warm_sent), 1
        self._live[turn_id] = (tree, s, k)
        draws = tuple(uniform(stage.draw_stream, key, j) for j in range(stage.draws)) if stage.draws else ()
        stage.truths[turn_id] = new(HiddenTurn, (output_tokens, draws, part.service_s[k], part.waits_for[k]))
        session = tree.key & SESSION_MASK if s == 0 else tree.keys[s] & SESSION_MASK
        chain = part.chain(k, tree.scope, tree.script.block_tokens)
        now_s = stage.clock.now()
        view = (turn_id, key, stage.class_name, session, k, now_s, part.prompt_tokens[k], chain)
        self._arrive(new(TurnView, view))

    def _abandon(self, tree: SessionPlay) -> None:
        tree.abandoned = True
        self.overflowed += 1
        for _, entry in tree.pending.values():
            self._stage.clock.cancel_at(entry)
        tree.pending.clear()
        self.abandoned_turns += tree.left - tree.in_flight
        tree.left = tree.in_flight

    def _finish(self, tree: SessionPlay) -> None:
        self._trees.pop(tree.key, None)
        self._drained(tree, self._stage.clock.now())


def _primer(script: Script, first: list[int]) -> Node | None:
    """Return the request that starts last before the cut."""
    before = [(part.t_s[first[s] - 1], s) for s, part in enumerate(script.parts) if first[s] > 0]
    if not before:
        return None
    _, s = max(before)
    return (s, first[s] - 1)
