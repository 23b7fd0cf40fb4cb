"""Paced release at the front door: the integral of the rate, without bursts."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.clock import TICK
from orchestrator.turn import TurnId
from orchestrator.virtual_clock import VirtualClock, run_virtual
from tests.orchestrator.front_door import Front, door_test


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
