"""What a virtual loop refuses: deadlocks, livelocks, executors and foreign threads, each with the tasks' names."""

from __future__ import annotations

import asyncio
import threading

import pytest

from orchestrator.errors import Deadlock, ForeignThread, Livelock
from orchestrator.virtual_clock import VirtualClock, run_virtual
from tests.orchestrator.kit import on_loop


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


def test_executors_are_refused_and_the_message_says_what_to_do() -> None:
    async def main(clock: VirtualClock) -> None:
        with pytest.raises(ForeignThread, match=r"run_in_executor\(.*sum\).*model its duration"):
            await clock.loop.run_in_executor(None, sum, [1])
        with pytest.raises(ForeignThread):
            await asyncio.to_thread(sum, [1])
        with pytest.raises(ForeignThread):
            await clock.loop.getaddrinfo("localhost", 80)

    run_virtual(main)


def test_another_thread_is_refused_and_the_loops_thread_is_not() -> None:
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
