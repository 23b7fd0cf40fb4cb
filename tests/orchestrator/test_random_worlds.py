"""No turn is lost or doubled in any world: random arrivals, faults, commands and cancellations."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.admission import AdmissionLimits, ClassSpec
from orchestrator.clock import PLANT, TICK
from orchestrator.messages import AdmissionCommand
from orchestrator.ports import Every
from orchestrator.turn import TurnId
from orchestrator.virtual_clock import VirtualClock, run_virtual
from plant.theory.tandem import Residence
from tests.orchestrator.kit import BATCH, CHAT, Coming, Scripted, World

GRID = st.integers(0, 12).map(lambda n: n * 0.5)  # few instants, so that much falls on one


TROUBLE = st.lists(st.sampled_from(["preempt", "lose", "lose_fill", "overflow"]), max_size=3)


COMMAND = st.builds(
    AdmissionCommand,
    gate_open=st.sampled_from([None, True, True, False]),
    release_per_s=st.sampled_from([None, 0.0, 1.0, 2.0, 7.0]),
    in_flight_cap_turns=st.sampled_from([None, 1, 3, 6]),
    class_cap_turns=st.sampled_from([None, {CHAT: 1}, {BATCH: 2}]),
    reserve_turns=st.sampled_from([None, {CHAT: 1}, {BATCH: 2}]),
    shed_ratio=st.sampled_from([None, None, {BATCH: 0.5}]),
)


OPEN = AdmissionCommand(
    gate_open=True, release_per_s=3.0, in_flight_cap_turns=5, class_cap_turns={CHAT: 5, BATCH: 5}, reserve_turns={}
)


WORLDS = st.fixed_dictionaries(
    {
        "coming": st.lists(
            st.builds(
                Coming,
                at_s=GRID,
                class_name=st.sampled_from([CHAT, BATCH]),
                draw=st.floats(0.01, 0.99),
                output_tokens=st.integers(1, 3),
            ),
            min_size=1,
            max_size=14,
        ),
        "slots": st.integers(1, 3),
        "dead_time_s": st.sampled_from([0.0, 0.5, 1.0]),
        "residence": st.sampled_from(
            [Residence(mean_s=1.0, shape="fixed"), Residence(mean_s=1.5), Residence(mean_s=0.5, shape="fixed")]
        ),
        "troubles": st.dictionaries(st.integers(0, 13), TROUBLE, max_size=6),
        "ready_capacity_turns": st.sampled_from([None, 1, 2]),
        "door": st.builds(
            AdmissionLimits,
            order=st.sampled_from(["fifo", "priority", "edf", "weighted_fair"]),
            queue_limit_turns=st.sampled_from([None, 1, 3]),
            max_release_per_s=st.sampled_from([float("inf"), 4.0]),
        ),
        "horizon_s": st.sampled_from([3.0, 5.5, 400.0]),
        "drain_s": st.sampled_from([0.0, 2.0, 50.0]),
        "retries": st.integers(0, 2),
    }
)


CUTS = st.lists(st.tuples(st.integers(0, 13), GRID, st.integers(PLANT, TICK)), max_size=8)


CLASSES = (ClassSpec(name=CHAT, ttft_s=2.0, priority=1, weight=2.0), ClassSpec(name=BATCH, ttft_s=9.0))


def played(world: dict[str, Any], commands: list[AdmissionCommand], cuts: list[tuple[int, float, int]]) -> Any:
    async def main(clock: VirtualClock) -> Any:
        law = Scripted(*commands, OPEN, cadence=Every(period_s=0.5))
        played_world = World(clock, laws={"admission": law}, classes=CLASSES, record_moves=True, **world)
        for turn, at_s, priority in cuts:
            clock.at(at_s, lambda n: played_world.orchestrator.cancel(TurnId(n)), turn, priority)

        def check(priority: int) -> None:
            played_world.ledger.check()
            assert played_world.ledger.count(3) <= world["slots"]
            if world["ready_capacity_turns"] and not any(world["troubles"].values()):
                assert played_world.ledger.count(2) <= world["ready_capacity_turns"]
            if clock.now() < 500.0:
                clock.at(clock.now() + 0.25, check, priority, priority)

        for priority in (PLANT, TICK):
            clock.at(0.0, check, priority, priority)
        why = await played_world.run()
        outcomes = played_world.sink.outcomes()
        if why == "drained" or world["drain_s"] > 0.0:
            assert all(word.startswith(("retired", "rejected:", "failed:")) for word in outcomes.values()), outcomes
            assert played_world.plant.idle
        if world["horizon_s"] == 400.0:
            assert why == "drained", "a turn was forgotten"
        assert played_world.ledger.in_flight.value == sum(
            w in ("filling", "ready", "decoding") for w in outcomes.values()
        )
        return (
            played_world.sink.rows,
            played_world.sink.events,
            {k: [repr(x) for x in v] for k, v in played_world.sink.bins.items()},
        )

    return run_virtual(main)


@settings(max_examples=150, deadline=None)
@given(world=WORLDS, commands=st.lists(COMMAND, max_size=8), cuts=CUTS)
def test_turns_are_conserved_in_any_world_and_none_is_lost_or_doubled(
    world: dict[str, Any], commands: list[AdmissionCommand], cuts: list[tuple[int, float, int]]
) -> None:
    played(world, commands, cuts)


@settings(max_examples=25, deadline=None)
@given(world=WORLDS, commands=st.lists(COMMAND, max_size=8), cuts=CUTS)
def test_a_world_played_twice_is_the_same_to_the_last_bit(
    world: dict[str, Any], commands: list[AdmissionCommand], cuts: list[tuple[int, float, int]]
) -> None:
    assert repr(played(world, commands, cuts)) == repr(played(world, commands, cuts))
