"""The order in which the front door admits classes, and the turns that it refuses."""

from __future__ import annotations

import math

import pytest

from orchestrator.admission import ClassSpec
from orchestrator.turn import TurnId
from orchestrator.virtual_clock import VirtualClock, run_virtual
from tests.orchestrator.front_door import A, B, C, Front, door_test

CLASSES = (
    ClassSpec(name=A, ttft_s=30.0, weight=1.0, priority=0),
    ClassSpec(name=B, ttft_s=5.0, weight=3.0, priority=1),
    ClassSpec(name=C, weight=1.0, priority=0),
)


@pytest.mark.parametrize(
    ("order", "want"),
    [
        ("fifo", [0, 1, 2, 3, 4, 5]),
        ("priority", [1, 4, 0, 2, 3, 5]),
        # Deadlines: A 30, B 1 + 5, C none, A 3 + 30, B 4 + 5, C none.
        ("edf", [1, 4, 0, 3, 2, 5]),
    ],
)
def test_the_order_of_admission(order: str, want: list[int]) -> None:
    async def main(clock: VirtualClock) -> None:
        front = Front(clock, *CLASSES, order=order)
        front.set(gate_open=False)
        for at_s, name in enumerate((A, B, C, A, B, C)):
            front.come(name, arrived_s=float(at_s))
        front.set(gate_open=True)
        assert front.order() == want

    run_virtual(main)


@door_test
async def test_weighted_fair_order_shares_by_weight_while_all_wait(clock: VirtualClock) -> None:
    front = Front(clock, *CLASSES, order="weighted_fair")
    front.set(gate_open=False)
    for _ in range(100):
        for name in (A, B, C):
            front.come(name)
    front.set(gate_open=True, release_per_s=10.0)
    await clock.sleep_until(10.0)
    counts = {
        name: sum(front.turns[TurnId(n)].view.class_name == name for n in front.order()[:100]) for name in (A, B, C)
    }
    assert counts == {A: 20, B: 60, C: 20}


@door_test
async def test_in_weighted_fair_order_an_idle_class_saves_up_no_turns(clock: VirtualClock) -> None:
    front = Front(clock, *CLASSES, order="weighted_fair")
    front.set(release_per_s=10.0)
    for _ in range(400):
        front.come(A)
    await clock.sleep_until(10.0)
    for _ in range(60):
        front.come(C)
    begun = len(front.released)
    await clock.sleep_until(14.0)
    later = [front.turns[TurnId(n)].view.class_name for n in front.order()[begun:]]
    assert abs(later.count(C) - later.count(A)) <= 2, "C came late and gets its half, not all that it missed"


@door_test
async def test_a_class_is_fifo_within_itself_in_every_order(clock: VirtualClock) -> None:
    for order in ("fifo", "priority", "edf", "weighted_fair"):
        front = Front(clock, *CLASSES, order=order)
        front.set(gate_open=False)
        for number in range(30):
            front.come((A, B, C)[number % 3 if number % 5 else 0])
        front.set(gate_open=True)
        for name in (A, B, C):
            mine = [n for n in front.order() if front.turns[TurnId(n)].view.class_name == name]
            assert mine == sorted(mine)


@door_test
async def test_a_turn_over_the_queue_limit_is_refused_whatever_its_class(clock: VirtualClock) -> None:
    front = Front(clock, ClassSpec(name=A), ClassSpec(name=B), queue_limit_turns=3)
    front.set(gate_open=False)
    assert [front.come(name) for name in (A, A, A, A, B)] == [None, None, None, "queue_full", "queue_full"]
    front.set(gate_open=True)
    assert front.come(B) is None
    assert len(front.released) == 4


@door_test
async def test_a_burst_at_an_open_door_is_not_refused(clock: VirtualClock) -> None:
    front = Front(clock, queue_limit_turns=1)
    assert [front.come() for _ in range(20)] == [None] * 20
    assert len(front.released) == 20


@door_test
async def test_a_full_queue_does_not_keep_out_a_class_that_goes_straight_through(clock: VirtualClock) -> None:
    front = Front(clock, ClassSpec(name=A), ClassSpec(name=B), queue_limit_turns=2)
    front.set(class_cap_turns={A: 0})
    assert [front.come(name) for name in (A, A, A, B, B)] == [None, None, "queue_full", None, None]
    assert front.order() == [3, 4]


@door_test
async def test_shedding_refuses_the_stated_share_of_one_class_and_always_the_same_turns(clock: VirtualClock) -> None:
    fates = []
    for _ in range(2):
        front = Front(clock, ClassSpec(name=A), ClassSpec(name=B))
        front.set(shed_ratio={B: 0.3})
        fates.append([front.come(name) for name in (A, B) * 2000])
    assert fates[0] == fates[1]
    assert set(fates[0][0::2]) == {None}
    shed = fates[0][1::2].count("shed")
    assert abs(shed - 600) < 4 * math.sqrt(2000 * 0.3 * 0.7)


@door_test
async def test_the_age_of_the_line_is_that_of_its_oldest_waiting_turn(clock: VirtualClock) -> None:
    front = Front(clock, ClassSpec(name=A), ClassSpec(name=B))
    front.set(gate_open=False)
    assert front.door.oldest_s() is None
    front.come(B, arrived_s=2.0)
    front.come(A, arrived_s=1.0)
    assert front.door.oldest_s() == 1.0
    front.ledger.fail(front.turns[TurnId(1)], "left", 3.0)
    assert front.door.oldest_s() == 2.0
