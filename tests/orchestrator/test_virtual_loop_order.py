"""The order of a virtual loop: the rule for ties, timeouts against completions, and sets of tasks."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.clock import DEADLINE, PLANT, SLEEP, TICK
from orchestrator.virtual_clock import VirtualClock, run_virtual


@given(st.permutations([PLANT, SLEEP, DEADLINE, TICK] * 3))
def test_at_one_instant_facts_precede_sleeps_precede_deadlines_precede_ticks_and_each_is_first_come_first(
    scheduled: list[int],
) -> None:
    async def main(clock: VirtualClock) -> None:
        ran: list[tuple[int, int]] = []
        for number, priority in enumerate(scheduled):
            clock.at(2.0, ran.append, (priority, number), priority)
        await clock.sleep_until(3.0)
        assert ran == sorted(ran)
        assert len(ran) == 12

    run_virtual(main)


def test_work_that_a_tick_schedules_for_the_same_instant_runs_after_it_in_the_same_order() -> None:
    async def main(clock: VirtualClock) -> None:
        ran: list[str] = []

        def tick(_: object) -> None:
            ran.append("tick")
            for name, priority in (("tick 2", TICK), ("sleep", SLEEP), ("fact", PLANT)):
                clock.at(clock.now(), ran.append, name, priority)

        clock.at(1.0, tick, None, TICK)
        clock.at(1.0, ran.append, "old tick", TICK)
        await clock.sleep_until(2.0)
        assert ran == ["tick", "fact", "sleep", "old tick", "tick 2"]

    run_virtual(main)


def test_equal_deadlines_fire_in_the_order_in_which_they_were_set() -> None:
    async def main(clock: VirtualClock) -> None:
        woken: list[int] = []

        async def sleeper(number: int) -> None:
            await (asyncio.sleep(1.0) if number % 2 else clock.sleep_until(1.0))
            woken.append(number)

        async with asyncio.TaskGroup() as group:
            for number in range(9):
                group.create_task(sleeper(number))
        assert woken == list(range(9))

    run_virtual(main)


def test_timers_a_hair_apart_fire_at_their_instants() -> None:
    async def main(clock: VirtualClock) -> None:
        seen: list[float] = []
        whens = [1.0, 1.0 + 2**-52, 1.0 + 2**-40]
        for when in reversed(whens):
            clock.at(when, lambda _: seen.append(clock.now()), None)
        await clock.sleep_until(2.0)
        assert seen == whens

    run_virtual(main)


@pytest.mark.parametrize("deadline_first", [True, False])
@pytest.mark.parametrize("by", ["plant fact", "sleep", "asyncio.sleep"])
def test_a_completion_at_the_instant_of_the_timeout_wins(deadline_first: bool, by: str) -> None:
    async def work(clock: VirtualClock) -> str:
        if by == "plant fact":
            future = clock.future()
            clock.at(5.0, future.set_result, "done")
            return str(await future)
        await (clock.sleep_until(5.0) if by == "sleep" else asyncio.sleep(5.0))
        return "done"

    async def main(clock: VirtualClock) -> None:
        task = None if deadline_first else asyncio.create_task(work(clock))
        await asyncio.sleep(0)
        async with clock.timeout_at(5.0):
            assert await (task or work(clock)) == "done"
        assert clock.now() == 5.0

    run_virtual(main)


def test_a_timeout_that_nothing_meets_fires_at_its_instant() -> None:
    async def main(clock: VirtualClock) -> None:
        with pytest.raises(TimeoutError):
            async with clock.timeout_at(5.0):
                await clock.sleep_until(5.0 + 1e-9)
        assert clock.now() == 5.0

    run_virtual(main)


def test_a_cancellation_at_the_deadline_is_a_cancellation() -> None:
    async def main(clock: VirtualClock) -> None:
        async def waits() -> None:
            async with clock.timeout_at(5.0):
                await clock.sleep_until(100.0)

        task = asyncio.create_task(waits())
        clock.at(5.0, lambda _: task.cancel(), None, DEADLINE)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()
        assert clock.now() == 5.0

    run_virtual(main)


def test_a_cancellation_that_meets_a_completion_is_not_swallowed() -> None:
    async def main(clock: VirtualClock) -> None:
        future = clock.future()

        async def waits() -> None:
            async with clock.timeout_at(9.0):
                await future
            raise AssertionError("the cancellation was swallowed")

        task = asyncio.create_task(waits())
        clock.at(5.0, future.set_result, None)
        clock.at(5.0, lambda _: task.cancel(), None)
        with pytest.raises(asyncio.CancelledError):
            await task

    run_virtual(main)


def orders_of_tasks() -> tuple[list[int], list[str]]:
    async def main(clock: VirtualClock) -> tuple[list[int], list[str]]:
        aborted: list[int] = []

        async def child(number: int) -> None:
            try:
                await clock.future()
            except asyncio.CancelledError:
                aborted.append(number)
                raise

        async def fails() -> None:
            await clock.sleep_until(1.0)
            raise LookupError

        async def family() -> None:
            async with asyncio.TaskGroup() as group:
                for number in range(300):
                    group.create_task(child(number))
                group.create_task(fails())

        with pytest.raises(ExceptionGroup):
            await family()
        sleepers = [asyncio.create_task(clock.sleep_until(2.0), name=f"s{n}") for n in range(50)]
        done, _ = await asyncio.wait(sleepers)
        return aborted, [task.get_name() for task in done]

    result: tuple[list[int], list[str]] = run_virtual(main)
    return result


def test_sets_of_tasks_iterate_alike_in_every_run_whatever_their_addresses() -> None:
    first = orders_of_tasks()
    scattered = [bytearray(n % 977) for n in range(5000)]
    two = orders_of_tasks()
    del scattered[::2]
    assert first == two == orders_of_tasks()
    assert sorted(first[0]) == list(range(300))
