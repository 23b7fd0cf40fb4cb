"""When tokens exist: a plant that tells each reply of its tokens, with one timer per worker step, never one per token.

The first token comes with the end of the fill. From then on the step ends of the worker's batch are asked of the plant,
in its closed form; all tokens of one step are released together.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Mapping
from typing import Protocol

from orchestrator.ports import Filled, Plant, Retired, Staged
from orchestrator.real_clock import RealClock
from orchestrator.turn import KvRef, TurnId, TurnView, WorkerId
from plant.cluster import Cluster
from plant.hidden_turns import HiddenTurns
from plant.theory.tandem import Tandem
from scenarios.serve.replies import Reply

SHORTEST_TICK_S = 0.001  # of the wall: steps shorter than this are released several at a time
IDLE_TICK_S = 0.005  # of the wall: how soon to look again at a worker whose turns are still on their way to it
Generated = tuple[list[tuple[TurnId, int]], float | None]


class TokenSteps(Protocol):
    """What a plant says of the tokens of one worker."""

    def begin(self, turn_id: TurnId, now_s: float) -> None:
        """Note that a turn has come to decode."""
        ...

    def forget(self, turn_id: TurnId) -> None:
        """Note that it has left."""
        ...

    def generated(self, worker: WorkerId, now_s: float) -> Generated:
        """Return (turn, tokens after its first) for the turns that decode, and when there will be more."""
        ...


class ClusterSteps:
    """The steps of a cluster's batches."""

    def __init__(self, cluster: Cluster) -> None:
        self.generated = cluster.generated

    def begin(self, turn_id: TurnId, now_s: float) -> None:
        """The worker knows its batch."""

    def forget(self, turn_id: TurnId) -> None:
        """The worker knows its batch."""


class TandemSteps:
    """Tokens of a tandem plant, which has no steps: evenly over a turn's residence."""

    def __init__(self, tandem: Tandem, hidden_turns: HiddenTurns) -> None:
        self._tandem, self._hidden = tandem, hidden_turns
        self._turns: dict[TurnId, tuple[float, float]] = {}  # since when, and seconds a token

    def begin(self, turn_id: TurnId, now_s: float) -> None:
        """Spread its tokens."""
        hidden = self._hidden[turn_id]
        residence_s = self._tandem.residence.seconds(hidden.draws[0])
        self._turns[turn_id] = now_s, residence_s / max(1, hidden.output_tokens - 1)

    def forget(self, turn_id: TurnId) -> None:
        """Stop."""
        self._turns.pop(turn_id, None)

    def generated(self, worker: WorkerId, now_s: float) -> Generated:
        """Return the tokens of every turn by now, and when the next one comes."""
        rows, next_s = [], None
        for turn_id, (since_s, token_s) in self._turns.items():
            tokens = int((now_s - since_s) / token_s)
            rows.append((turn_id, tokens))
            due_s = since_s + (tokens + 1) * token_s
            if next_s is None or due_s < next_s:
                next_s = due_s
        return rows, next_s


class StreamingPlant:
    """The `Plant` behind, whose fills and decodes are followed token by token.

    Parameters
    ----------
    clock : RealClock
    plant : Plant
    steps : TokenSteps
    replies : mapping of TurnId to Reply
        Of the turns under way; a turn without one is not followed.
    """

    def __init__(self, clock: RealClock, plant: Plant, steps: TokenSteps, replies: Mapping[TurnId, Reply]) -> None:
        self._clock, self._plant, self._steps, self._replies = clock, plant, steps, replies
        self._decoding: dict[WorkerId, dict[TurnId, None]] = {}
        self._ticking: set[WorkerId] = set()
        self.ticks = 0
        self.stage, self.withdraw = plant.stage, plant.withdraw
        self.has_room, self.fits, self.cached_tokens = plant.has_room, plant.fits, plant.cached_tokens
        self.reconfigure, self.evict, self.apply = plant.reconfigure, plant.evict, plant.apply
        self.read, self.facts, self.listen = plant.read, plant.facts, plant.listen
        self.holding, self.cost_s = plant.holding, plant.cost_s

    def fill(self, worker: WorkerId, turn: TurnView, prefix: KvRef) -> Future[Filled]:
        """Fill; the first token exists when that has ended."""
        future = self._plant.fill(worker, turn, prefix)
        reply = self._replies.get(turn.turn_id)
        if reply is not None:
            future.add_done_callback(lambda done: _first_token(done, reply))
        return future

    def decode(self, worker: WorkerId, turn: TurnView, kv: Staged) -> Future[Retired]:
        """Decode, and follow the worker's steps while it does."""
        future = self._plant.decode(worker, turn, kv)
        turn_id = turn.turn_id
        if turn_id in self._replies and not future.done():
            self._steps.begin(turn_id, self._clock.now())
            self._decoding.setdefault(worker, {})[turn_id] = None
            future.add_done_callback(lambda _: self._left(worker, turn_id))
            if worker not in self._ticking:
                self._ticking.add(worker)
                self._tick(worker)
        return future

    def _left(self, worker: WorkerId, turn_id: TurnId) -> None:
        self._steps.forget(turn_id)
        turns = self._decoding[worker]
        del turns[turn_id]
        if not turns:
            del self._decoding[worker]

    def _tick(self, worker: WorkerId) -> None:
        if worker not in self._decoding:
            self._ticking.discard(worker)
            return
        self.ticks += 1
        clock = self._clock
        now_s = clock.now()
        generated, next_s = self._steps.generated(worker, now_s)
        for turn_id, tokens in generated:
            reply = self._replies.get(turn_id)
            if reply is not None:
                reply.reach(tokens + 1)
        wait_s = IDLE_TICK_S if next_s is None and not generated else SHORTEST_TICK_S
        soonest_s = now_s + wait_s * clock.rate
        clock.at(soonest_s if next_s is None else max(next_s, soonest_s), self._tick, worker)


def _first_token(done: Future[Filled], reply: Reply) -> None:
    if not done.cancelled() and done.exception() is None:
        if not reply.tokens:
            reply.cached_tokens = done.result().cached_tokens
        reply.reach(1)
