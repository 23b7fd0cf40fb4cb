"""Time on the virtual loop: it stands exactly at the instant asked for, and no task, error or generator is lost."""

from __future__ import annotations

import asyncio
import contextvars
import gc
from collections.abc import AsyncIterator
from contextvars import ContextVar

import pytest

from orchestrator.errors import Deadlock
from orchestrator.virtual_clock import VirtualClock, run_virtual
from orchestrator.virtual_loop import PURGE_FLOOR, VirtualLoop


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


def test_tasks_of_the_home_context_share_it_and_others_keep_theirs() -> None:
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
