"""No turn is lost, doubled or forgotten, whatever befalls it and whenever; and a drain ends."""

from __future__ import annotations

import asyncio

import pytest

from orchestrator.clock import PLANT, TICK
from orchestrator.errors import LawFailed
from orchestrator.messages import AdmissionCommand, AdmissionReading
from orchestrator.turn import TurnId
from orchestrator.virtual_clock import VirtualClock, run_virtual
from plant.theory.tandem import Residence
from tests.orchestrator.kit import Coming, Scripted, World, burst, is_nan


def test_a_turn_lives_by_its_four_instants() -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock, [Coming(1.0)], dead_time_s=3.0, residence=Residence(mean_s=4.0, shape="fixed"))
        assert await world.run() == "drained"
        (row,) = world.sink.rows
        times = [row[name] for name in ("arrived_s", "released_s", "fill_started_s", "filled_s", "joined_s", "ended_s")]
        assert times == [1.0, 1.0, 1.0, 4.0, 4.0, 8.0]
        assert (row["outcome"], row["output_tokens"], row["preemptions"]) == ("retired", 10, 0)
        assert (row["fill_worker"], row["decode_worker"], row["key"]) == (0, 1, 1000)

    run_virtual(main)


def test_a_full_pool_keeps_turns_in_the_ready_buffer_in_the_order_of_their_fill() -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock, burst(5), slots=1)
        await world.run()
        assert [row["joined_s"] for row in world.sink.rows] == [1.0, 3.0, 5.0, 7.0, 9.0]
        assert [row["turn_id"] for row in world.sink.rows] == list(range(5))

    run_virtual(main)


def test_a_full_ready_buffer_holds_its_turns_in_fill() -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock, burst(6), slots=1, ready_capacity_turns=2)
        peaks: list[tuple[int, int]] = []

        def look(_: object) -> None:
            peaks.append((world.ledger.count(2), world.ledger.count(1)))
            clock.at(clock.now() + 0.5, look, None, TICK)

        clock.at(1.5, look, None, TICK)
        await world.run()
        assert max(ready for ready, _ in peaks) == 2
        assert peaks[0] == (2, 3), "one decodes, two are ready, three are held back"
        assert world.ledger.retired == 6

    run_virtual(main)


def test_a_preempted_turn_goes_first_and_is_counted() -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock, burst(3), slots=1, troubles={0: ["preempt", "preempt"]})
        await world.run()
        assert [row["turn_id"] for row in world.sink.rows] == [0, 1, 2]
        assert [row["preemptions"] for row in world.sink.rows] == [2, 0, 0]
        assert [row["ended_s"] for row in world.sink.rows] == [5.0, 7.0, 9.0]
        assert world.ledger.preempted == 2

    run_virtual(main)


def test_a_turn_that_loses_its_worker_is_filled_again_and_fails_when_its_retries_are_spent() -> None:
    async def main(clock: VirtualClock) -> None:
        troubles = {0: ["lose"], 1: ["lose_fill", "lose", "lose_fill"], 2: ["lose"] * 4}
        world = World(clock, burst(3), slots=4, troubles=troubles, retries=3)
        await world.run()
        assert world.sink.outcomes() == {0: "retired", 1: "retired", 2: "failed:worker_lost"}
        rows = {row["turn_id"]: row for row in world.sink.rows}
        assert rows[0]["filled_s"] == 1.0, "the first token was given before the loss"
        assert rows[0]["ended_s"] == 1.0 + 1.0 + 1.0 + 2.0
        assert world.sink.kinds().count("retry") == 1 + 3 + 3
        assert world.plant.idle

    run_virtual(main)


def test_a_context_that_fits_no_worker_fails_in_its_own_bucket() -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock, burst(2), troubles={1: ["overflow"]})
        await world.run()
        assert world.sink.outcomes() == {0: "retired", 1: "failed:context_overflow"}
        assert world.ledger.failed == {"context_overflow": 1}

    run_virtual(main)


def test_no_turn_is_let_in_before_the_law_has_spoken() -> None:
    async def main(clock: VirtualClock) -> None:
        law = Scripted(AdmissionCommand(in_flight_cap_turns=2))
        world = World(clock, burst(5), laws={"admission": law})
        await world.run()
        assert law.seen[0].backlog_turns == 5
        assert max(world.sink.bins["in_flight_turns_max"]) == 2
        assert world.source.admissions[:2] == [(0, 0.0), (1, 0.0)]

    run_virtual(main)


@pytest.mark.parametrize(
    ("at_s", "stage"),
    [(0.0, "at its arrival"), (0.5, "in fill"), (1.5, "ready"), (3.5, "decoding"), (1.0, "as fill ends")],
)
@pytest.mark.parametrize("priority", [PLANT, TICK])
def test_a_turn_can_be_cancelled_anywhere_and_its_work_is_withdrawn_at_that_instant(
    at_s: float, stage: str, priority: int
) -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock, burst(4), slots=2)
        answers: list[bool] = []

        def cut(_: object) -> None:
            answers.append(world.orchestrator.cancel(TurnId(3)))
            answers.append(world.orchestrator.cancel(TurnId(3)))

        clock.at(at_s, cut, None, priority)
        await world.run()
        early = at_s == 0.0 and priority == PLANT  # before the run began to hear of it
        assert answers == ([False, False] if early else [True, False])
        assert world.ledger.retired == (4 if early else 3)
        if not early:
            (row,) = (row for row in world.sink.rows if row["turn_id"] == 3)
            assert (row["outcome"], row["ended_s"]) == ("failed:cancelled", at_s)
        assert world.plant.idle

    run_virtual(main)


def test_a_cancelled_waiting_turn_leaves_the_line_and_the_next_goes() -> None:
    async def main(clock: VirtualClock) -> None:
        law = Scripted(AdmissionCommand(in_flight_cap_turns=1))
        world = World(clock, burst(3, at_s=0.5), laws={"admission": law})
        clock.at(1.0, lambda _: world.orchestrator.cancel(TurnId(1), "left"), None)
        await world.run()
        assert world.sink.outcomes() == {0: "retired", 1: "failed:left", 2: "retired"}
        assert [turn for turn, _ in world.source.admissions] == [0, 2]

    run_virtual(main)


def test_cancelling_what_is_unknown_or_ended_says_so() -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock, [Coming(0.0), Coming(50.0)])
        answers: list[bool] = []
        clock.at(20.0, lambda _: answers.extend(world.orchestrator.cancel(TurnId(n)) for n in (0, 1, 99)), None)
        await world.run()
        assert answers == [False, False, False]

    run_virtual(main)


def test_cancelling_the_run_from_outside_is_not_swallowed() -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock, burst(8), laws={"admission": Scripted(AdmissionCommand())})
        task = asyncio.create_task(world.orchestrator.run())
        await clock.sleep_until(2.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert clock.now() == 2.5
        world.ledger.check()

    run_virtual(main)


def test_the_horizon_leaves_turns_where_they_are_and_records_them_so() -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock, burst(4), slots=1, horizon_s=2.5)
        assert await world.run() == "horizon"
        assert clock.now() == 2.5
        outcomes = sorted(world.sink.outcomes().values())
        assert outcomes == ["decoding", "ready", "ready", "ready"]
        assert all(is_nan(row["ended_s"]) for row in world.sink.rows)
        assert all(row["output_tokens"] == 0 for row in world.sink.rows)

    run_virtual(main)


def test_a_drain_lets_turns_end_and_refuses_new_ones() -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock, [*burst(4), Coming(4.0)], slots=2, horizon_s=2.5, drain_s=100.0)
        assert await world.run() == "horizon"
        assert clock.now() == 5.0
        assert world.sink.outcomes() == {**dict.fromkeys(range(4), "retired"), 4: "rejected:draining"}

    run_virtual(main)


def test_a_drain_stops_at_its_deadline_and_fails_what_is_left_in_a_named_bucket() -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock, burst(6), slots=1, horizon_s=2.5, drain_s=3.0)
        await world.run()
        assert clock.now() == 5.5
        outcomes = world.sink.outcomes()
        assert [outcomes[n] for n in range(6)] == ["retired"] * 2 + ["failed:drain_deadline"] * 4
        assert all(not is_nan(row["ended_s"]) for row in world.sink.rows)
        assert world.plant.idle

    run_virtual(main)


def test_a_drain_with_turns_that_only_wait_at_a_closed_door_ends_at_its_deadline() -> None:
    async def main(clock: VirtualClock) -> None:
        law = Scripted(AdmissionCommand(gate_open=False))
        world = World(clock, burst(3, at_s=1.0), laws={"admission": law}, horizon_s=2.5, drain_s=3.0)
        await world.run()
        assert clock.now() == 5.5
        assert set(world.sink.outcomes().values()) == {"failed:drain_deadline"}

    run_virtual(main)


def test_a_run_can_be_stopped_from_within() -> None:
    async def main(clock: VirtualClock) -> None:
        world = World(clock, burst(4), slots=1)
        clock.at(2.0, lambda _: world.orchestrator.stop(), None)
        assert await world.run() == "stopped"
        assert clock.now() == 2.0

    run_virtual(main)


def test_a_fault_in_a_law_ends_the_run_and_names_law_and_fault() -> None:
    class Broken(Scripted):
        def act(self, y: AdmissionReading) -> AdmissionCommand:
            raise ZeroDivisionError("in the law")

    async def main(clock: VirtualClock) -> None:
        world = World(clock, burst(2), laws={"admission": Broken(AdmissionCommand())})
        with pytest.raises(ExceptionGroup) as caught:
            await world.orchestrator.run()
        assert caught.group_contains(LawFailed, match="ZeroDivisionError: in the law")

    run_virtual(main)
