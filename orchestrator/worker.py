"""One worker as the orchestrator knows it: its load, and the line for its slots and its memory."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from orchestrator.clock import Clock
from orchestrator.errors import Evicted
from orchestrator.ledger import Turn
from orchestrator.messages import Role
from orchestrator.ports import Plant, WorkerInfo
from orchestrator.turn import TurnId, TurnView

if TYPE_CHECKING:
    from orchestrator.dispatch import Pool


class Worker:
    """A worker as the orchestrator knows it: what it was given, and who waits for its slots and its memory."""

    __slots__ = (
        "_clock",
        "_emptied",
        "_plant",
        "aggregated",
        "asking",
        "draining",
        "hands_over",
        "id",
        "info",
        "inside",
        "line",
        "load_tokens",
        "load_turns",
        "places",
        "pools",
        "room",
        "since_s",
        "slots",
    )

    def __init__(self, clock: Clock, plant: Plant, info: WorkerInfo) -> None:
        self._clock, self._plant = clock, plant
        self.info = info
        self.id, self.aggregated = info.worker, info.role is Role.AGGREGATED
        self.since_s = clock.now()
        self.pools: list[Pool] = []
        self.load_turns = self.load_tokens = self.inside = 0
        self.draining = self.hands_over = False  # hands_over: turns that decode move to other workers as it drains
        self.asking: dict[TurnId, asyncio.Future[Worker]] = {}  # while it hands over: turns in line for another worker
        self.places: dict[TurnId, Worker] = {}  # and the places found, until the turn comes or no longer needs one
        self.line: deque[tuple[TurnView, asyncio.Future[None]]] = deque()
        self._emptied: asyncio.Future[None] | None = None
        self.slots: int | None = None
        self.room: int | None = None
        self.set_slots(info.slots)

    def set_slots(self, slots: int | None) -> None:
        """Take a new number of slots; what is staged ahead of them comes on top."""
        self.info = self.info._replace(slots=slots)
        self.slots = slots
        self.room = None if slots is None else slots + self.info.staging_turns
        self.serve()

    def open(self) -> bool:
        """Tell whether one more turn may be given."""
        return not self.draining and (self.room is None or self.load_turns < self.room)

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
        if self.draining:
            self._let_go(turn)
            self._check_empty()

    def _let_go(self, turn: Turn) -> None:
        """Give up the place that a turn looked for, or found, elsewhere."""
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
        return not inside or ((slots is None or inside < slots) and self._plant.room(self.id, view))

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
