"""Replay session trees in closed loop: a request starts its gap after its predecessors have ended in the simulation.

A turn's key is a hash of (play, stream, ordinal), where the play is a lane and its recycle number, or a session's
number: never the order of arrival. Prompt, output length and gap are looked up by that position, so two policies on one
seed see the same turn under the same key.

There are two idle caps: the tree's (when no turn of a tree is in flight, its next start is at most `tree_idle_cap_s`
away, and all timers of the tree shift together), and the system's (when no turn at all is in flight, all timers of all
trees shift together). Neither opens a gate: a request that waits for others has no timer yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from orchestrator.clock import Clock
from orchestrator.rng import mix, uniform
from orchestrator.turn import ClassName, TurnId, TurnView, new
from plant.hidden_turns import HiddenTurn, HiddenTurns
from scenarios.workloads.script import Node, Script
from scenarios.workloads.session_play import SessionPlay

SESSION_MASK = (1 << 63) - 1
"""Session ids are positive 64-bit integers."""
REFUSED_WAIT_S = 1.0
"""Seconds that a session waits after a turn that was refused, before it goes on as if the turn had ended: the default
first backoff of gRPC's connection protocol. Without a wait, a lane of refused turns would never let time pass."""
ENDS_SESSION = frozenset({"context_overflow", "failed:context_overflow", "rejected:context_overflow"})
"""A context overflow ends its session, as in AgentX; after any other failure the session continues."""


@dataclass(slots=True, kw_only=True)
class SourceContext:
    """What every source receives: the clock, the hidden turns, the turn counter, and the class of its turns.

    `births` numbers the turns of all sources of a run; `draws` is the number of uniforms that each turn passes to the
    plant, from the stream `draw_stream`.
    """

    clock: Clock
    hidden_turns: HiddenTurns
    births: Iterator[int]
    class_name: ClassName
    draw_stream: int = 0
    draws: int = 0


@runtime_checkable
class Counted(Protocol):
    """A source with counts for the record."""

    def statistics(self) -> dict[str, float]:
        """Return counts by name."""
        ...


class Player:
    """Replays any number of trees on one clock; calls `drained(tree, at_s)` when the last turn of a tree has ended."""

    def __init__(
        self,
        context: SourceContext,
        drained: Callable[[SessionPlay, float], None],
        *,
        tree_idle_cap_s: float | None = None,
        system_idle_cap_s: float | None = None,
    ) -> None:
        self._context = context
        self._on_drained = drained
        self._tree_cap_s = tree_idle_cap_s
        self._system_cap_s = system_idle_cap_s
        self._arrive: Callable[[TurnView], None] = lambda turn: None
        self._live: dict[int, tuple[SessionPlay, int, int]] = {}
        self._trees: dict[int, SessionPlay] = {}
        self.sessions_begun = 0
        self.sessions_overflowed = 0
        self.abandoned_turns = 0
        self.idle_cut_s = 0.0

    def start(self, arrive: Callable[[TurnView], None]) -> None:
        """Set the receiver of arrivals."""
        self._arrive = arrive

    @property
    def trees(self) -> int:
        """The number of live trees."""
        return len(self._trees)

    def statistics(self) -> dict[str, float]:
        """Return sessions begun, sessions ended by an overflow and their abandoned turns, and idle time cut."""
        return {
            "sessions_begun": self.sessions_begun,
            "sessions_overflowed": self.sessions_overflowed,
            "turns_abandoned": self.abandoned_turns,
            "idle_cut_s": round(self.idle_cut_s, 6),
        }

    def play(
        self,
        script: Script,
        *,
        key: int,
        scope: int,
        known_scope: int = 0,
        play: int = 0,
        cut_s: float | None = None,
        primer: bool = False,
        warmup_turns: int = 0,
    ) -> None:
        """Start a tree now, from its beginning or from `cut_s` of its recorded run.

        With `primer` the request before the cut is sent first, then its prompt `warmup_turns` times more for one token
        each; its successors wait for them. `scope` names the blocks of this play, `known_scope` those of others too.
        """
        tree = SessionPlay(script, key, scope, play, known_scope)
        self.sessions_begun += 1
        self._trees[key] = tree
        first = [0] * len(script.streams)
        if cut_s is not None:
            first = [next((k for k, t in enumerate(p.t_s) if t >= cut_s), len(p.t_s)) for p in script.streams]
        begin_s = 0.0 if cut_s is None else cut_s
        primer_node = _primer(script, first) if primer and cut_s is not None else None
        if primer_node is not None:
            first[primer_node[0]] -= 1
            tree.primer, tree.warmup_left = primer_node, warmup_turns
        tree.first_played = first
        tree.turns_left += tree.warmup_left - sum(first)
        now_s = self._context.clock.now()
        ready: list[tuple[float, Node]] = []
        for node, waits in script.gates.items():
            still_open = sum(k >= first[s] for s, k in waits)
            tree.open_waits[node] = still_open + (node[1] > first[node[0]])
        for s, stream in enumerate(script.streams):
            k = first[s]
            if k < len(stream.t_s) and not tree.open_waits.get((s, k)):
                delay_s = 0.0 if (s, k) == primer_node else stream.t_s[k] - begin_s
                ready.append((now_s + max(0.0, delay_s), (s, k)))
        if primer_node is not None:
            s, k = primer_node
            followers = [(s, k + 1)] if k + 1 < len(script.streams[s].t_s) else []
            for fs, fk in followers + script.streams[s].after.get(k, []):
                tree.earliest_s[fs, fk] = now_s + script.streams[fs].t_s[fk] - begin_s
        if tree.turns_left == 0:
            self._context.clock.at(now_s, self._finish, tree)
        self._schedule(tree, ready, now_s)

    def ended(self, turn_id: TurnId, at_s: float, outcome: str) -> None:
        """Process the end of a turn and start its successors; turns of other sources are ignored."""
        live = self._live.pop(turn_id, None)
        if live is None:
            return
        self._context.hidden_turns.forget(turn_id, outcome)
        tree, s, k = live
        tree.in_flight -= 1
        tree.turns_left -= 1
        refused = tree.arrived_s == at_s and outcome != "retired"
        if refused:
            at_s += REFUSED_WAIT_S
        if outcome in ENDS_SESSION and not tree.abandoned:
            self._abandon(tree)
        if tree.warmup_left and not tree.abandoned and (s, k) == tree.primer:
            tree.warmup_left -= 1
            tree.warmup_sent += 1
            self._schedule(tree, [(at_s, (s, k))], at_s)
        elif not tree.abandoned:
            stream = tree.script.streams[s]
            ready: list[tuple[float, Node]] = []
            if k + 1 < len(stream.gap_s):
                self._release(tree, (s, k + 1), at_s, ready)
            if stream.after:
                for node in stream.after.get(k, ()):
                    self._release(tree, node, at_s, ready)
            self._schedule(tree, ready, at_s)
        if tree.turns_left == 0:
            if refused:
                self._context.clock.at(at_s, self._finish, tree)
            else:
                self._finish(tree)
        elif self._system_cap_s is not None and not self._live:
            self._cut_system_idle(at_s)

    def _release(self, tree: SessionPlay, node: Node, at_s: float, ready: list[tuple[float, Node]]) -> None:
        """Count an ended predecessor of `node`; after the last, its gap begins. Requests before the cut stay out."""
        if node[1] < tree.first_played[node[0]]:
            return
        open_waits = tree.open_waits.get(node)
        if open_waits is not None:
            tree.open_waits[node] = open_waits - 1
            if open_waits > 1:
                return
        when_s = at_s + tree.script.streams[node[0]].gap_s[node[1]]
        if tree.earliest_s and node in tree.earliest_s:
            when_s = max(at_s, tree.earliest_s.pop(node))
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
        at = self._context.clock.at
        for when_s, node in ready:
            tree.pending[node] = (when_s, at(when_s, self._fire, (tree, node)))

    def _shift(self, tree: SessionPlay, cut_s: float) -> None:
        clock = self._context.clock
        for node, (when_s, entry) in list(tree.pending.items()):
            clock.cancel_at(entry)
            tree.pending[node] = (when_s - cut_s, clock.at(when_s - cut_s, self._fire, (tree, node)))
        for node, floor_s in tree.earliest_s.items():
            tree.earliest_s[node] = floor_s - cut_s

    def _cut_system_idle(self, now_s: float) -> None:
        """No turn is in flight: bring the next start to the cap, and shift all others by as much."""
        whens = [when for tree in self._trees.values() for when, _ in tree.pending.values()]
        if whens and self._system_cap_s is not None:
            cut_s = min(whens) - now_s - self._system_cap_s
            if cut_s > 0.0:
                self.idle_cut_s += cut_s
                for tree in self._trees.values():
                    self._shift(tree, cut_s)

    def _fire(self, play_and_node: tuple[SessionPlay, Node]) -> None:
        tree, node = play_and_node
        s, k = node
        del tree.pending[node]
        tree.in_flight += 1
        tree.arrived_s = self._context.clock.now()
        context = self._context
        stream = tree.script.streams[s]
        turn_id = TurnId(next(context.births))
        key, output_tokens = mix(tree.keys[s], k), stream.output_tokens[k]
        if tree.warmup_sent and node == tree.primer:
            key, output_tokens = mix(key, tree.warmup_sent), 1
        self._live[turn_id] = (tree, s, k)
        draws = tuple(uniform(context.draw_stream, key, j) for j in range(context.draws)) if context.draws else ()
        hidden_turn = (output_tokens, draws, stream.service_s[k], stream.waits_for[k])
        context.hidden_turns[turn_id] = new(HiddenTurn, hidden_turn)
        session = tree.key & SESSION_MASK if s == 0 else tree.keys[s] & SESSION_MASK
        chain = stream.chain(k, tree.scope, tree.script.block_tokens, tree.known_scope)
        view = (turn_id, key, context.class_name, session, k, context.clock.now(), stream.prompt_tokens[k], chain)
        self._arrive(new(TurnView, view))

    def _abandon(self, tree: SessionPlay) -> None:
        tree.abandoned = True
        self.sessions_overflowed += 1
        for _, entry in tree.pending.values():
            self._context.clock.cancel_at(entry)
        tree.pending.clear()
        self.abandoned_turns += tree.turns_left - tree.in_flight
        tree.turns_left = tree.in_flight

    def _finish(self, tree: SessionPlay) -> None:
        self._trees.pop(tree.key, None)
        self._on_drained(tree, self._context.clock.now())


def _primer(script: Script, first: list[int]) -> Node | None:
    """Return the request that starts last before the cut."""
    before = [(stream.t_s[first[s] - 1], s) for s, stream in enumerate(script.streams) if first[s] > 0]
    if not before:
        return None
    _, s = max(before)
    return (s, first[s] - 1)
