"""One worker on the orchestrator's side: its life, its load, and the line for its slots and its memory.

A worker is ABSENT until the plant announces it, ACTIVE while it takes turns, DRAINING while its turns leave it before a
change of configuration, LOADING until the plant announces it again, and ABSENT once lost. `TRANSITIONS` is the table.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Sized
from enum import StrEnum
from typing import Protocol

from orchestrator.clock import Clock
from orchestrator.errors import Evicted, InvalidTransition
from orchestrator.ledger import Turn
from orchestrator.messages import Role
from orchestrator.ports import Plant, WorkerInfo
from orchestrator.turn import ConfigurationName, TurnId, TurnView, WorkerId

STORY_MOVES = 8  # of its moves a worker remembers the last few, for the story of an illegal one


class State(StrEnum):
    """Where a worker is in its life."""

    ABSENT = "absent"
    ACTIVE = "active"
    DRAINING = "draining"
    LOADING = "loading"


TRANSITIONS: dict[State, tuple[State, ...]] = {
    State.ABSENT: (State.ACTIVE,),
    State.ACTIVE: (State.DRAINING, State.ABSENT),
    State.DRAINING: (State.LOADING, State.ABSENT),
    State.LOADING: (State.ACTIVE, State.ABSENT),
}


class LoadListener(Protocol):
    """A pool, as its workers see it: who is to hear that a worker's load has fallen, and who waits for that."""

    heap: list[tuple[int, WorkerId]] | None

    @property
    def line(self) -> Sized:
        """The turns that wait for a worker."""
        ...

    def changed(self, worker: Worker) -> None:
        """Note that a worker's load has fallen, or its slots changed."""
        ...

    def serve(self) -> None:
        """Give the head of the line to a worker while one takes it."""
        ...


class Worker:
    """A worker: what it serves, what it was given, and who waits for its slots and its memory.

    Attributes
    ----------
    state : State
    info : WorkerInfo
        As the plant last announced it, with the slots now in force.
    target : ConfigurationName
        What it serves or is going to serve.
    came_from : ConfigurationName or None
        What it served before its last change; None: it has not changed since it joined.
    changed_s, paid_from_s : float
        When its last change began or ended (-inf: never); since when its seconds are not accounted for yet.
    active : bool
        Whether it takes turns: `state` is ACTIVE.
    hands_over : bool
        As it drains, turns that decode move to other workers with their state.
    asking, places : dict
        While it hands over: turns in line for another worker, and the workers granted, until the turn leaves.
    """

    __slots__ = (
        "_clock",
        "_emptied",
        "_moves",
        "_plant",
        "active",
        "aggregated",
        "asking",
        "came_from",
        "changed_s",
        "hands_over",
        "id",
        "info",
        "inside",
        "line",
        "load_tokens",
        "load_turns",
        "paid_from_s",
        "places",
        "pools",
        "room",
        "slots",
        "state",
        "target",
    )

    def __init__(self, clock: Clock, plant: Plant, info: WorkerInfo) -> None:
        self._clock, self._plant = clock, plant
        self.info = info
        self.id, self.aggregated = info.worker, info.role is Role.AGGREGATED
        self.state = State.ABSENT
        self._moves: deque[tuple[float, str]] = deque(maxlen=STORY_MOVES)
        self.target = info.configuration
        self.came_from: ConfigurationName | None = None
        self.changed_s, self.paid_from_s = -math.inf, clock.now()
        self.pools: list[LoadListener] = []
        self.load_turns = self.load_tokens = self.inside = 0
        self.active = self.hands_over = False
        self.asking: dict[TurnId, asyncio.Future[Worker]] = {}
        self.places: dict[TurnId, Worker] = {}
        self.line: deque[tuple[TurnView, asyncio.Future[None]]] = deque()
        self._emptied: asyncio.Future[None] | None = None
        self.slots: int | None = None
        self.room: int | None = None

    # ------------------------------------------------ its life
    @property
    def absent(self) -> bool:
        """Whether it is not there: not announced yet, or lost."""
        return self.state is State.ABSENT

    def _move(self, to: State) -> None:
        """Change the state; raise InvalidTransition where the table does not allow it."""
        if to not in TRANSITIONS[self.state]:
            raise InvalidTransition(f"worker {self.id}", self.state, to, tuple(self._moves))
        self.state = to
        self.active = to is State.ACTIVE
        self._moves.append((self._clock.now(), to))

    def activate(self, info: WorkerInfo) -> None:
        """Take turns as the plant has announced; one that has joined or come back may change at once."""
        now_s = self._clock.now()
        changed = self.state is State.LOADING
        self._move(State.ACTIVE)
        if changed:
            self.came_from, self.changed_s = self.info.configuration, now_s
        else:
            self.came_from, self.changed_s, self.paid_from_s = None, -math.inf, now_s
        self.info, self.target, self.aggregated = info, info.configuration, info.role is Role.AGGREGATED
        self.hands_over, self._emptied = False, None
        self.pools.clear()
        self.set_slots(info.slots)

    def drain(self) -> None:
        """Take no more turns, on the way to another configuration."""
        self._move(State.DRAINING)
        self.changed_s = self._clock.now()

    def load(self) -> None:
        """Begin to load a configuration: every turn has left."""
        self._move(State.LOADING)

    def lose(self) -> None:
        """Be gone; who waited for it to be empty need not any more."""
        self._move(State.ABSENT)
        if self._emptied is not None and not self._emptied.done():
            self._emptied.set_result(None)

    # ------------------------------------------------ its load
    def set_slots(self, slots: int | None) -> None:
        """Take a new number of slots; what is staged ahead of them comes on top."""
        self.info = self.info._replace(slots=slots)
        self.slots = slots
        self.room = None if slots is None else slots + self.info.staging_turns
        for pool in self.pools:
            if pool.heap is not None:
                pool.changed(self)
        self.serve()

    def open(self) -> bool:
        """Tell whether one more turn may be given."""
        return self.active and (self.room is None or self.load_turns < self.room)

    def give(self, turn: Turn) -> None:
        """Add a turn to the load."""
        self.load_turns += 1
        self.load_tokens += turn.prompt_tokens

    def free(self, turn: Turn) -> None:
        """Take a turn off the load, and let the lines of its pools move up."""
        self.load_turns -= 1
        self.load_tokens -= turn.prompt_tokens
        for pool in self.pools:
            if pool.heap is not None:
                pool.changed(self)
            if pool.line:
                pool.serve()
        if not self.active:
            self._let_go(turn)
            self._check_empty()

    def _let_go(self, turn: Turn) -> None:
        """Give up the place that a turn asked for, or was granted, elsewhere."""
        turn_id = turn.view.turn_id
        asked = self.asking.pop(turn_id, None)
        if asked is not None:
            asked.cancel()
        place = self.places.pop(turn_id, None)
        if place is not None:
            place.free(turn)

    def send_away(self) -> None:
        """Send away who waits in line for a slot."""
        line, self.line = self.line, deque()
        for _, waiter in line:
            if not waiter.done():
                waiter.set_exception(Evicted())

    def _takes(self, view: TurnView) -> bool:
        """Tell whether a turn may go in. Where nobody is inside nobody will leave, so the plant says what is wrong."""
        inside, slots = self.inside, self.slots
        return not inside or ((slots is None or inside < slots) and self._plant.has_room(self.id, view))

    def enter_nowait(self, turn: Turn) -> bool:
        """Take a slot if one is free, nobody waits for it and the memory has room; tell whether it was so."""
        if self.line or (self.inside and not self._takes(turn.view)):
            return False
        self.inside += 1
        return True

    async def enter(self, turn: Turn) -> None:
        """Wait, first come first served, until a slot is free and the memory has room; then hold the slot."""
        if self.enter_nowait(turn):
            return
        waiter: asyncio.Future[None] = self._clock.future()
        self.line.append((turn.view, waiter))
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self.exit()
            raise

    def exit(self) -> None:
        """Give the slot back."""
        self.inside -= 1
        if self.line:
            self.serve()

    def serve(self) -> None:
        """Let in the head of the line, one at a time: what it takes of the memory shows only once it is in."""
        line = self.line
        while line and line[0][1].done():
            line.popleft()
        if line and self._takes(line[0][0]):
            self.inside += 1
            line.popleft()[1].set_result(None)

    def emptied(self) -> asyncio.Future[None]:
        """Return a Future that resolves once no turn is assigned here."""
        self._emptied = self._clock.future()
        self._check_empty()
        return self._emptied

    def _check_empty(self) -> None:
        if self._emptied is not None and self.load_turns == 0 and not self._emptied.done():
            self._emptied.set_result(None)
