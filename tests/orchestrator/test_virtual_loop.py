"""Time on the virtual loop: the rule for ties, exactness, and every way in which stock asyncio would lose order."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.clock import DEADLINE, PLANT, SLEEP, TICK
from orchestrator.errors import Deadlock, ForeignThread, Livelock
from orchestrator.virtual_clock import VirtualClock, run_virtual
from orchestrator.virtual_loop import PURGE_FLOOR, VirtualLoop


def on_loop(main: Callable[[VirtualClock], Any], start_s: float = 0.0, **options: Any) -> Any:
    """Run on a loop that a test can give a smaller cap, and close it."""
    loop = VirtualLoop(start_s, **options)
    try:
        return loop.run_until_complete(main(VirtualClock(loop)))
    finally:
        loop.close()


# ------------------------------------------------ order
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


def test_work_that_a_tick_schedules_for_its_own_instant_runs_after_it_in_the_same_order() -> None:
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


def test_timers_a_hair_apart_keep_their_own_instants() -> None:
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
    one = orders_of_tasks()
    scattered = [bytearray(n % 977) for n in range(5000)]
    two = orders_of_tasks()
    del scattered[::2]
    assert one == two == orders_of_tasks()
    assert sorted(one[0]) == list(range(300))


# ------------------------------------------------ exact time
def test_time_stands_exactly_at_what_was_asked_for_and_never_goes_back() -> None:
    async def main(clock: VirtualClock) -> None:
        await clock.sleep_until(0.1 + 0.2)
        assert clock.now() == 0.1 + 0.2
        await clock.sleep_until(0.1)
        assert clock.now() == 0.1 + 0.2
        clock.at(0.0, lambda _: None, None)
        await asyncio.sleep(0.5)
        assert clock.now() == 0.1 + 0.2 + 0.5

    run_virtual(main)


@pytest.mark.parametrize("epoch_s", [1.7e7, 1.7e9, 2.0**40])
def test_a_large_epoch_neither_stalls_nor_skips(epoch_s: float) -> None:
    async def main(clock: VirtualClock) -> int:
        steps = 0
        async with clock.timeout_at(epoch_s + 10.0):
            for k in range(1, 11):
                await clock.sleep_until(epoch_s + k)
                await asyncio.sleep(1e-9)  # less than a bit of this clock: no time passes, and nothing hangs
                steps += clock.now() == epoch_s + k
        return steps

    assert run_virtual(main, start_s=epoch_s) == 10


def test_a_stale_timer_never_moves_the_clock() -> None:
    async def main(clock: VirtualClock) -> None:
        entry = clock.at(50.0, lambda _: None, None)
        clock.cancel_at(entry)
        clock.cancel_at(entry)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0):
                await asyncio.sleep(3600.0)
        task = asyncio.create_task(clock.sleep_until(40.0))
        await clock.sleep_until(2.0)
        task.cancel()
        clock.loop.call_later(30.0, print).cancel()

    loop = VirtualLoop()
    loop.run_until_complete(main(VirtualClock(loop)))
    with pytest.raises(Deadlock):
        loop.run_forever()
    assert loop.time() == 2.0
    loop.close()


def test_cancelled_timers_do_not_pile_up() -> None:
    async def main(clock: VirtualClock) -> None:
        live = [clock.at(10.0, lambda _: None, None) for _ in range(7)]
        for _ in range(20_000):
            clock.loop.call_later(3600.0, print).cancel()
            async with asyncio.timeout(3600.0):
                pass
        heap = clock.loop._heap  # type: ignore[attr-defined]  # the only witness of a leak
        assert len(heap) <= 2 * PURGE_FLOOR + len(live) + 2
        await clock.sleep_until(11.0)
        assert all(entry[3] is None for entry in live), "a purge lost a live timer"

    run_virtual(main)


def test_cancelling_an_entry_that_has_run_is_harmless() -> None:
    async def main(clock: VirtualClock) -> None:
        ran: list[int] = []
        first = clock.at(1.0, ran.append, 1)
        clock.at(2.0, lambda _: clock.cancel_at(first), None)
        clock.at(3.0, ran.append, 3)
        await clock.sleep_until(4.0)
        assert ran == [1, 3]

    run_virtual(main)


# ------------------------------------------------ errors that name their tasks
def test_a_deadlock_names_the_tasks_that_wait() -> None:
    async def main(clock: VirtualClock) -> None:
        task = asyncio.create_task(asyncio.Event().wait(), name="turn 7")
        await clock.sleep_until(3.0)
        await task

    with pytest.raises(Deadlock, match=r"t = 3 s.*turn 7"):
        run_virtual(main)


@pytest.mark.parametrize("how", ["callbacks", "plant events", "tasks"])
def test_a_livelock_is_an_error_that_names_the_tasks(how: str) -> None:
    async def main(clock: VirtualClock) -> None:
        asyncio.current_task().set_name("turn 9")  # type: ignore[union-attr]
        await clock.sleep_until(2.0)

        def again(_: object = None) -> None:
            if how == "callbacks":
                clock.loop.call_soon(again)
            else:
                clock.at(clock.now(), again, None)

        while how == "tasks":
            await asyncio.sleep(0)
        again()
        await clock.future()

    with pytest.raises(Livelock, match=r"t = 2 s.*turn 9"):
        on_loop(main, callbacks_per_instant=1000)


def test_many_instants_are_no_livelock() -> None:
    async def main(clock: VirtualClock) -> None:
        for k in range(500):
            await clock.sleep_until(k * 0.001)

    on_loop(main, callbacks_per_instant=20)


# ------------------------------------------------ no real time, no threads
def test_executors_are_refused_and_the_message_says_what_to_do() -> None:
    async def main(clock: VirtualClock) -> None:
        with pytest.raises(ForeignThread, match=r"run_in_executor\(.*sum\).*model its duration"):
            await clock.loop.run_in_executor(None, sum, [1])
        with pytest.raises(ForeignThread):
            await asyncio.to_thread(sum, [1])
        with pytest.raises(ForeignThread):
            await clock.loop.getaddrinfo("localhost", 80)

    run_virtual(main)


def test_a_foreign_thread_is_refused_and_the_own_one_is_not() -> None:
    async def main(clock: VirtualClock) -> None:
        refused: list[BaseException] = []

        def intrude() -> None:
            try:
                clock.loop.call_soon_threadsafe(print)
            except ForeignThread as error:
                refused.append(error)

        thread = threading.Thread(target=intrude)
        thread.start()
        thread.join()
        assert len(refused) == 1
        done = clock.future()
        clock.loop.call_soon_threadsafe(done.set_result, 1)
        assert await done == 1

    run_virtual(main)


# ------------------------------------------------ nothing lost
def test_a_waiting_task_is_kept_alive_by_its_timer() -> None:
    async def main(clock: VirtualClock) -> None:
        ended: list[float] = []

        async def waits() -> None:
            await clock.sleep_until(5.0)
            ended.append(clock.now())

        asyncio.get_running_loop().create_task(waits())
        await clock.sleep_until(1.0)
        gc.collect()
        await clock.sleep_until(6.0)
        assert ended == [5.0]

    run_virtual(main)


def test_a_fault_of_the_plant_ends_the_run() -> None:
    async def main(clock: VirtualClock) -> None:
        def breaks(_: object) -> None:
            raise ZeroDivisionError("a fault of ours")

        clock.at(1.0, breaks, None)
        await clock.sleep_until(10.0)

    with pytest.raises(ZeroDivisionError):
        run_virtual(main)


def test_context_variables_follow_the_task() -> None:
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")

    async def main(clock: VirtualClock) -> None:
        async def speaks(name: str) -> str:
            who.set(name)
            await clock.sleep_until(1.0)
            await asyncio.sleep(1.0)
            return who.get()

        assert await asyncio.gather(speaks("a"), speaks("b")) == ["a", "b"]
        assert who.get() == "nobody"

    run_virtual(main)


def test_what_is_left_at_the_end_is_cancelled_and_generators_are_closed() -> None:
    closed: list[str] = []

    async def ticks() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            closed.append("generator")

    async def main(clock: VirtualClock) -> None:
        async def left() -> None:
            try:
                await clock.future()
            finally:
                closed.append("task")

        task = asyncio.create_task(left())
        async for _ in ticks():
            break
        await clock.sleep_until(1.0)
        assert not task.done()

    run_virtual(main)
    assert sorted(closed) == ["generator", "task"]


def test_an_interrupt_passes_through() -> None:
    async def main(clock: VirtualClock) -> None:
        def interrupt(_: object) -> None:
            raise KeyboardInterrupt

        clock.at(1.0, interrupt, None)
        await clock.sleep_until(2.0)

    with pytest.raises(KeyboardInterrupt):
        run_virtual(main)


def test_garbage_collection_is_back_on_after_a_run() -> None:
    async def main(clock: VirtualClock) -> bool:
        return gc.isenabled()

    assert not run_virtual(main)
    assert gc.isenabled()


# ------------------------------------------------ contexts
def test_tasks_of_the_home_context_share_it_and_others_keep_to_their_own() -> None:
    seen = ContextVar("seen", default="nothing")

    async def says(word: str) -> str:
        await asyncio.sleep(1.0)
        before = seen.get()
        seen.set(word)
        return before

    async def main(clock: VirtualClock) -> list[str]:
        at_home = [clock.loop.create_task(says(word), context=clock.context) for word in ("one", "two")]
        apart = clock.loop.create_task(says("three"))
        clock.loop.call_later(2.0, seen.set, "four", context=clock.context)
        await clock.sleep_until(3.0)
        return [*(await asyncio.gather(*at_home, apart)), clock.context[seen], seen.get()]

    assert run_virtual(main) == ["nothing", "one", "nothing", "four", "nothing"]
