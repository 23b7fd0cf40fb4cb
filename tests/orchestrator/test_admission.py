"""Commands at the front door, clipped and reported; caps and reserves of classes."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.admission import ClassSpec
from orchestrator.clock import TICK
from orchestrator.ledger import FILLING, WAITING
from orchestrator.turn import ClassName, TurnId
from orchestrator.virtual_clock import VirtualClock, run_virtual
from tests.orchestrator.front_door import A, B, C, Front, door_test


@door_test
async def test_a_rate_is_clipped_and_the_clipped_one_is_reported(clock: VirtualClock) -> None:
    front = Front(clock, max_release_per_s=5.0)
    assert front.door.applied.release_per_s == 5.0
    for wanted, got in ((9.0, 5.0), (3.0, 3.0), (-2.0, 0.0), (math.inf, 5.0)):
        front.set(release_per_s=wanted)
        assert front.door.applied.release_per_s == got


@door_test
async def test_a_rate_moves_no_faster_than_the_slew_allows(clock: VirtualClock) -> None:
    front = Front(clock, max_release_per_s=10.0, slew_per_s2=2.0)
    front.set(release_per_s=0.0)
    assert front.door.applied.release_per_s == 10.0
    rates = []
    for k in range(1, 8):
        await clock.sleep_until(float(k), TICK)
        front.set(release_per_s=0.0)
        rates.append(front.door.applied.release_per_s)
    assert rates == pytest.approx([8.0, 6.0, 4.0, 2.0, 0.0, 0.0, 0.0])
    await clock.sleep_until(7.5, TICK)
    front.set(release_per_s=9.0)
    assert front.door.applied.release_per_s == pytest.approx(1.0)


@door_test
async def test_what_a_command_does_not_name_stays_as_it_is(clock: VirtualClock) -> None:
    front = Front(clock, ClassSpec(name=A), ClassSpec(name=B))
    front.set(gate_open=False, release_per_s=3.0, in_flight_cap_turns=7, class_cap_turns={A: 2})
    front.set(reserve_turns={B: 1}, shed_ratio={B: 0.25}, batch_setpoint_turns=4.0)
    front.set(class_cap_turns={B: 5})
    applied = front.door.applied
    assert (applied.gate_open, applied.release_per_s, applied.in_flight_cap_turns) == (False, 3.0, 7)
    assert applied.class_cap_turns == {A: 2, B: 5}
    assert (applied.reserve_turns, applied.shed_ratio) == ({B: 1}, {B: 0.25})
    assert applied.batch_setpoint_turns == 4.0


@door_test
async def test_a_negative_cap_lets_nobody_in(clock: VirtualClock) -> None:
    front = Front(clock)
    front.set(in_flight_cap_turns=-3)
    front.come()
    assert front.released == []
    assert front.door.applied.in_flight_cap_turns == 0


@door_test
async def test_a_class_cap_holds_back_that_class_alone(clock: VirtualClock) -> None:
    front = Front(clock, ClassSpec(name=A), ClassSpec(name=B))
    front.set(class_cap_turns={A: 1})
    for name in (A, A, B, A, B):
        front.come(name)
    assert front.order() == [0, 2, 4]
    front.end(TurnId(0))
    assert front.order() == [0, 2, 4, 1]


@door_test
async def test_a_reserve_keeps_places_for_its_class(clock: VirtualClock) -> None:
    front = Front(clock, ClassSpec(name=A), ClassSpec(name=B))
    front.set(in_flight_cap_turns=4, reserve_turns={B: 2})
    for _ in range(6):
        front.come(A)
    assert front.order() == [0, 1]
    front.come(B)
    front.come(B)
    front.come(B)
    assert front.order() == [0, 1, 6, 7]
    front.end(TurnId(6))
    assert front.order() == [0, 1, 6, 7, 8], "the place that fell free is still B's"
    front.end(TurnId(7))
    front.end(TurnId(8))
    assert front.order() == [0, 1, 6, 7, 8], "and stays free while no B waits"
    front.end(TurnId(0))
    assert front.order() == [0, 1, 6, 7, 8, 2]


@settings(max_examples=100, deadline=None)
@given(
    comes=st.lists(st.sampled_from([A, B, C, "end"]), min_size=5, max_size=60),
    cap=st.integers(0, 6),
    caps=st.dictionaries(st.sampled_from([A, B, C]), st.integers(0, 4)),
    reserves=st.dictionaries(st.sampled_from([A, B, C]), st.integers(0, 3)),
    order=st.sampled_from(["fifo", "priority", "edf", "weighted_fair"]),
)
def test_caps_hold_at_every_release_and_nothing_waits_that_may_go(
    comes: list[Any], cap: int, caps: dict[ClassName, int], reserves: dict[ClassName, int], order: str
) -> None:
    async def main(clock: VirtualClock) -> None:
        front = Front(
            clock, ClassSpec(name=A), ClassSpec(name=B, priority=2), ClassSpec(name=C, ttft_s=1.0), order=order
        )
        front.set(in_flight_cap_turns=cap, class_cap_turns=caps, reserve_turns=reserves)
        flying: dict[ClassName, int] = {A: 0, B: 0, C: 0}
        seen = 0
        for what in comes:
            if what == "end":
                live = [t for t in front.turns.values() if t.stage is FILLING]
                if live:
                    flying[live[0].view.class_name] -= 1
                    front.end(live[0].view.turn_id)
            else:
                front.come(what)
            for _, turn_id in front.released[seen:]:
                flying[front.turns[turn_id].view.class_name] += 1
                name = front.turns[turn_id].view.class_name
                kept = sum(max(0, n - flying[other]) for other, n in reserves.items() if other != name)
                assert sum(flying.values()) <= cap - kept
                assert flying[name] <= caps.get(name, 99)
            seen = len(front.released)
            assert sum(flying.values()) <= cap
            for name in (A, B, C):
                waits = any(t.stage is WAITING and t.view.class_name == name for t in front.turns.values())
                kept = sum(max(0, n - flying[other]) for other, n in reserves.items() if other != name)
                could = sum(flying.values()) < cap - kept and flying[name] < caps.get(name, 99)
                assert not (waits and could), f"{name} waits and might go"
            assert front.door.backlog() == front.ledger.count(WAITING)

    run_virtual(main)
