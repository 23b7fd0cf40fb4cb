"""Tasks run turns one after another: no more of them than turns were ever under way, and each turn by its name."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.ledger import Turn
from orchestrator.turn import EMPTY_CHAIN, ClassName, TurnId, TurnView
from orchestrator.turn_tasks import AT_REST, TurnTaskPool
from orchestrator.virtual_clock import VirtualClock, run_virtual

STAYS = st.lists(st.tuples(st.integers(0, 20), st.integers(1, 9)), min_size=1, max_size=25)


def turn(number: int) -> Turn:
    view = TurnView(TurnId(number), number, ClassName("all"), number, 0, 0.0, 1, EMPTY_CHAIN)
    return Turn(view, view.turn_id, 1, 0)


@given(stays=STAYS, cancelled=st.sets(st.integers(0, 24)))
def test_each_turn_has_one_task_to_itself_while_it_lasts(stays: list[tuple[int, int]], cancelled: set[int]) -> None:
    tasks: set[Any] = set()
    inside: dict[Any, int] = {}
    most = ended = broken = 0

    async def run_one(turn: Turn, clock: VirtualClock) -> None:
        nonlocal most, ended, broken
        task = asyncio.current_task()
        assert task is turn.task
        assert task not in inside
        assert task.get_name() == f"turn {turn.turn_id}"
        inside[task] = turn.turn_id
        most = max(most, len(inside))
        try:
            await clock.sleep_until(clock.now() + stays[turn.turn_id][1])
            ended += 1
        except asyncio.CancelledError:
            broken += 1
            raise
        finally:
            del inside[task]

    async def main(clock: VirtualClock) -> None:
        async with asyncio.TaskGroup() as group:
            pool = TurnTaskPool(clock, lambda ran: run_one(ran, clock), group)
            turns = [turn(number) for number in range(len(stays))]

            def begin(turn: Turn) -> None:
                pool.start(turn)
                assert turn.task is not None
                tasks.add(turn.task)

            def cancel(turn: Turn) -> None:
                assert turn.task is not None
                turn.task.cancel()

            for ran, (at_s, lasts_s) in zip(turns, stays, strict=True):
                clock.at(at_s, begin, ran)
                if ran.turn_id in cancelled:
                    clock.at(at_s + lasts_s - 0.5, cancel, ran)
            await clock.sleep_until(50.0)
            assert {task.get_name() for task in tasks if not task.done()} <= {AT_REST}
            for task in tasks:
                task.cancel()

    run_virtual(main)
    stopped = len(cancelled & set(range(len(stays))))
    assert (ended, broken) == (len(stays) - stopped, stopped)
    assert len(tasks) <= most + stopped
