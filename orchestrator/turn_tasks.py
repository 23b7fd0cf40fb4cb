"""A pool of asyncio tasks that run turns: a task whose turn has ended runs the next.

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
    run : callable
        Makes the coroutine of a turn.
    group : asyncio.TaskGroup
    """

    def __init__(
        self, clock: Clock, run: Callable[[Turn], Coroutine[None, None, None]], group: asyncio.TaskGroup
    ) -> None:
        self._clock, self._run, self._group = clock, run, group
        self._resting: list[tuple[asyncio.Future[Turn], asyncio.Task[None]]] = []

    def start(self, turn: Turn) -> None:
        """Begin the turn's coroutine at this instant; `turn.task` is its task until it ends.

        A cancelled task ends with its turn, and runs no other.
        """
        name = f"turn {turn.turn_id}"
        while self._resting:
            waiter, task = self._resting.pop()
            if not waiter.done():
                task.set_name(name)
                turn.task = task
                waiter.set_result(turn)
                return
        turn.task = self._group.create_task(self._serve(turn), name=name, context=self._clock.context)

    async def _serve(self, turn: Turn) -> None:
        task = turn.task
        assert task is not None  # set by `start`, before its first step
        while True:
            await self._run(turn)
            task.set_name(AT_REST)
            waiter: asyncio.Future[Turn] = self._clock.future()
            self._resting.append((waiter, task))
            turn = await waiter
