"""Tasks that carry turns: one that has brought a turn to its end takes up the next.

A turn has a coroutine of its own, but not a task of its own: asyncio makes, registers, names and forgets a task at the
price of three events of the plant. There are as many tasks as turns were ever under way at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

from orchestrator.clock import Clock
from orchestrator.ledger import Turn

AT_REST = "no turn"


class TurnTaskPool:
    """The tasks of turns in one task group.

    Parameters
    ----------
    clock : Clock
    travel : callable
        Makes the coroutine of a turn.
    group : asyncio.TaskGroup
    """

    def __init__(
        self, clock: Clock, travel: Callable[[Turn], Coroutine[None, None, None]], group: asyncio.TaskGroup
    ) -> None:
        self._clock, self._travel, self._group = clock, travel, group
        self._resting: list[tuple[asyncio.Future[Turn], asyncio.Task[None]]] = []

    def carry(self, turn: Turn) -> None:
        """Begin the turn's coroutine at this instant; `turn.task` is its task until it ends.

        A cancelled task ends with its turn, and takes up no other.
        """
        name = f"turn {turn.turn_id}"
        while self._resting:
            waiter, task = self._resting.pop()
            if not waiter.done():
                task.set_name(name)
                turn.task = task
                waiter.set_result(turn)
                return
        turn.task = self._group.create_task(self._life(turn), name=name, context=self._clock.context)

    async def _life(self, turn: Turn) -> None:
        task = turn.task
        assert task is not None  # set where it was made, before its first step
        while True:
            await self._travel(turn)
            task.set_name(AT_REST)
            waiter: asyncio.Future[Turn] = self._clock.future()
            self._resting.append((waiter, task))
            turn = await waiter
