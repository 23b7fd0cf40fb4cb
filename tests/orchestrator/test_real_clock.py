"""The same orchestrator on the real and on a scaled clock: later by a little, but the same turns."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from orchestrator.clock import Clock
from orchestrator.ports import Every
from orchestrator.real_clock import RealClock, run_real
from orchestrator.virtual_clock import run_virtual
from plant.theory.tandem import Residence
from policies.admission.paced_wip import PacedWip
from tests.orchestrator.kit import Coming, World


def world_on(clock: Clock) -> World:
    coming = [Coming(k * 0.37, draw=(k * 0.618) % 1 or 0.5) for k in range(60)]
    law = PacedWip(Every(period_s=1.0), residence_s=4.0, dead_time_s=3.0, kappa_ratio=1.0, buffer_ratio=0.1)
    laws: dict[Any, Any] = {"admission": law}
    return World(clock, coming, slots=12, dead_time_s=3.0, residence=Residence(mean_s=4.0), laws=laws, horizon_s=90.0)


def test_a_scaled_clock_retires_the_same_turns_as_the_virtual_one() -> None:
    async def main(clock: Any) -> tuple[str, World, float]:
        world = world_on(clock)
        return await world.run(), world, clock.now()

    why, virtual, end_s = run_virtual(main)
    real_why, real, real_end_s = run_real(main, rate=150.0)
    assert why == real_why == "drained"
    assert real.sink.outcomes() == virtual.sink.outcomes()
    assert {row["key"] for row in real.sink.rows} == {row["key"] for row in virtual.sink.rows}
    assert real_end_s >= 0.95 * end_s  # never early; how late is for the machine to say
    arrived = {row["turn_id"]: row["arrived_s"] for row in virtual.sink.rows}
    late = [row["arrived_s"] - arrived[row["turn_id"]] for row in real.sink.rows]
    assert min(late) > -0.3, "a timer may fire early by a hair of the wall clock, no more"


def test_nothing_arrives_or_is_let_in_once_a_real_run_is_over() -> None:
    async def main(clock: RealClock) -> None:
        complaints: list[object] = []
        clock.loop.set_exception_handler(lambda _, what: complaints.append(what))
        world = World(clock, [Coming(k * 0.05) for k in range(400)], horizon_s=5.0, slots=50)
        await world.run()
        arrived = world.ledger.arrived
        await clock.sleep_until(15.0)  # the source's timers go on
        assert world.ledger.arrived == arrived
        assert complaints == []

    run_real(main, rate=100.0)


def test_a_sleep_on_the_real_clock_never_returns_early() -> None:
    async def main(clock: RealClock) -> None:
        for when_s in (1.0, 1.5, 1.25, 3.0):
            await clock.sleep_until(when_s)
            assert clock.now() >= when_s

    run_real(main, rate=100.0)


def test_a_timeout_on_a_scaled_clock_is_in_seconds_of_the_run() -> None:
    async def main(clock: RealClock) -> None:
        with pytest.raises(TimeoutError):
            async with clock.timeout_at(4.0):
                await asyncio.sleep(60.0)
        assert 4.0 <= clock.now() + 0.5 < 60.0

    run_real(main, rate=200.0)


def test_a_cancelled_entry_does_not_run() -> None:
    async def main(clock: RealClock) -> None:
        ran: list[int] = []
        clock.cancel_at(clock.at(1.0, ran.append, 1))
        clock.at(2.0, ran.append, 2)
        await clock.sleep_until(3.0)
        assert ran == [2]

    run_real(main, rate=200.0)


def test_a_loop_that_falls_behind_the_wall_skips_what_it_missed() -> None:
    class Slow:
        cadence = Every(period_s=1.0)

        def __init__(self) -> None:
            self.at: list[float] = []

        def act(self, y: Any) -> Any:
            from orchestrator.messages import AdmissionCommand

            self.at.append(y.now_s)
            if len(self.at) == 2:  # the law takes the wall time of some ten ticks
                deadline = loop.time() + 0.05
                while loop.time() < deadline:
                    pass
            return AdmissionCommand()

    async def main(clock: RealClock) -> None:
        nonlocal loop
        loop = clock.loop
        await World(clock, [Coming(29.0)], laws={"admission": law}, horizon_s=30.0).orchestrator.run()

    loop: Any = None
    law = Slow()
    run_real(main, rate=200.0)
    assert len(law.at) <= 24, "ten missed ticks were not made up for in a burst"


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan")])
def test_a_rate_must_be_positive(rate: float) -> None:
    async def main(clock: RealClock) -> None: ...

    with pytest.raises(ValueError, match="rate must be positive"):
        run_real(main, rate=rate)
