"""The front door: paced without bursts, within caps, class by class in a stated order; and it says what it did."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.admission import AdmissionLimits, AdmissionQueue, ClassSpec
from orchestrator.clock import TICK
from orchestrator.ledger import FILLING, READY, WAITING, Ledger, Turn
from orchestrator.messages import AdmissionCommand
from orchestrator.turn import EMPTY_CHAIN, ClassName, TurnId, TurnView
from orchestrator.virtual_clock import VirtualClock, run_virtual

A, B, C = ClassName("a"), ClassName("b"), ClassName("c")


class Front:
    """A door with nothing behind it: released turns stay in flight until a test ends them."""

    def __init__(self, clock: VirtualClock, *classes: ClassSpec, **limits: Any) -> None:
        specs = list(classes) or [ClassSpec(name=A)]
        self.clock = clock
        self.ledger = Ledger([spec.name for spec in specs])
        self.released: list[tuple[float, TurnId]] = []
        self.turns: dict[TurnId, Turn] = {}
        self.door = AdmissionQueue(clock, self.ledger, specs, AdmissionLimits(**limits), 77, self._let_in)

    def _let_in(self, turn: Turn) -> None:
        self.released.append((self.clock.now(), turn.view.turn_id))

    def come(self, class_name: ClassName = A, arrived_s: float | None = None) -> str | None:
        turn_id = TurnId(len(self.turns))
        at_s = self.clock.now() if arrived_s is None else arrived_s
        turn = self.ledger.arrive(TurnView(turn_id, turn_id, class_name, turn_id, 0, at_s, 1, EMPTY_CHAIN))
        self.turns[turn_id] = turn
        refusal = self.door.refusal(turn)
        if refusal is not None:
            self.ledger.reject(turn, refusal, self.clock.now())
        else:
            self.door.enter(turn)
        return refusal

    def end(self, turn_id: TurnId) -> None:
        turn, now_s = self.turns[turn_id], self.clock.now()
        self.ledger.move(turn, READY, now_s)
        self.ledger.fail(turn, "done", now_s)
        self.door.pump()

    def set(self, **command: Any) -> None:
        self.door.set(AdmissionCommand(**command))

    def order(self) -> list[int]:
        return [turn_id for _, turn_id in self.released]

    def times(self) -> list[float]:
        return [at_s for at_s, _ in self.released]


def door_test(body: Callable[[VirtualClock], Any]) -> Callable[[], None]:
    """Run a coroutine test on a virtual clock."""

    def test() -> None:
        run_virtual(body)

    test.__name__, test.__doc__ = body.__name__, body.__doc__
    return test


# ------------------------------------------------ pacing
@settings(max_examples=60, deadline=None)
@given(
    schedule=st.lists(
        st.tuples(st.floats(0.01, 2.0), st.sampled_from([0.0, 0.3, 1.0, 7.3, 50.0]), st.booleans()),
        min_size=1,
        max_size=8,
    )
)
def test_paced_release_integrates_the_rate_exactly_whatever_the_schedule(
    schedule: list[tuple[float, float, bool]],
) -> None:
    async def main(clock: VirtualClock) -> None:
        front = Front(clock)
        front.set(gate_open=True, release_per_s=0.0)
        for _ in range(801):
            front.come()
        begun = len(front.released)
        assert begun <= 1, "an idle door had saved up more than one"
        area, start_s, known = 0.0, 0.0, []
        for span_s, rate_per_s, is_open in schedule:
            front.set(release_per_s=rate_per_s, gate_open=is_open)
            known.append((start_s, area, rate_per_s if is_open else 0.0))
            area += span_s * (rate_per_s if is_open else 0.0)
            start_s += span_s
            await clock.sleep_until(start_s, TICK)

        def released_by(at_s: float) -> float:
            from_s, before, rate = next(k for k in reversed(known) if k[0] <= at_s + 1e-12)
            return before + rate * (at_s - from_s)

        assert abs(len(front.released) - (begun + math.floor(area + 1e-9))) <= 1
        paced = [at_s for at_s, _ in front.released[begun:]]
        for number, at_s in enumerate(paced):
            # The phase was full at the start: release k is due when the integral reaches k.
            assert released_by(at_s) == pytest.approx(number + begun, abs=1e-6)

    run_virtual(main)


@settings(max_examples=40, deadline=None)
@given(rate=st.sampled_from([0.7, 3.0, 11.0]), ticks=st.lists(st.floats(0.001, 0.4), min_size=5, max_size=60))
def test_setting_the_same_rate_again_and_again_neither_speeds_nor_slows_the_release(
    rate: float, ticks: list[float]
) -> None:
    async def main(clock: VirtualClock) -> None:
        front = Front(clock)
        front.set(release_per_s=rate)
        for _ in range(1000):
            front.come()
        for span_s in ticks:
            await clock.sleep_until(clock.now() + span_s, TICK)
            front.set(release_per_s=rate)
        assert front.times() == pytest.approx([k / rate for k in range(len(front.released))], abs=1e-9)
        assert abs(len(front.released) - (1 + clock.now() * rate)) <= 1

    run_virtual(main)


@door_test
async def test_an_idle_door_saves_up_one_release_and_no_more(clock: VirtualClock) -> None:
    front = Front(clock)
    front.set(release_per_s=2.0)
    await clock.sleep_until(100.0)
    for _ in range(5):
        front.come()
    await clock.sleep_until(110.0)
    assert front.times() == [100.0, 100.5, 101.0, 101.5, 102.0]


@door_test
async def test_a_gate_that_was_shut_does_not_let_out_what_it_held_back_at_once(clock: VirtualClock) -> None:
    front = Front(clock, max_release_per_s=10.0)
    front.set(gate_open=False)
    for _ in range(50):
        front.come()
    await clock.sleep_until(30.0, TICK)
    front.set(gate_open=True)
    await clock.sleep_until(31.05, TICK)
    gaps = [b - a for a, b in zip(front.times(), front.times()[1:])]
    assert len(front.released) == 11
    assert gaps == pytest.approx([0.1] * 10)


@door_test
async def test_a_cap_that_falls_free_lets_one_turn_go_and_not_the_time_that_passed(clock: VirtualClock) -> None:
    front = Front(clock, max_release_per_s=10.0)
    front.set(in_flight_cap_turns=2)
    for _ in range(9):
        front.come()
    await clock.sleep_until(20.0)
    assert front.times() == pytest.approx([0.0, 0.1])
    front.end(TurnId(0))
    front.end(TurnId(1))
    await clock.sleep_until(30.0)
    assert front.times() == pytest.approx([0.0, 0.1, 20.0, 20.1])


@door_test
async def test_without_a_rate_turns_go_at_once(clock: VirtualClock) -> None:
    front = Front(clock)
    for _ in range(4):
        front.come()
    assert front.times() == [0.0] * 4


@door_test
async def test_a_rate_of_zero_holds_and_a_new_rate_lets_go(clock: VirtualClock) -> None:
    front = Front(clock)
    front.come()
    front.set(release_per_s=0.0)
    for _ in range(3):
        front.come()
    await clock.sleep_until(50.0, TICK)
    front.set(release_per_s=4.0)
    await clock.sleep_until(60.0)
    # One release had been saved up before the rate fell to zero: the first of the three went at once.
    assert front.times()[1:] == pytest.approx([0.0, 50.25, 50.5])


# ------------------------------------------------ what the actuator does to a command
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


# ------------------------------------------------ caps and reserves
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


# ------------------------------------------------ order
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


# ------------------------------------------------ refusals
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
