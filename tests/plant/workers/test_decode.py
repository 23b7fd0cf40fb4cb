"""The batch's closed form against stepping iteration by iteration, preemptions and withdrawals included."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from orchestrator.errors import ContextOverflow, Preempted
from orchestrator.messages import BatchCommand, Role
from orchestrator.ports import Staged
from orchestrator.virtual_clock import VirtualClock, run_virtual
from plant.model.times import LinearTimes, StepTimes
from tests.plant.factory import ANY, TIMES, W0, Turns, cluster, configuration

TIE = 1.0 + 1e-12


@dataclass
class Plan:
    """One turn as the tests plan it: arrival, prompt, output, and when it is cancelled."""

    at_s: float
    prompt: int
    output: int
    cancel_s: float | None = None


@dataclass
class Row:
    """A turn in the reference."""

    number: int
    plan: Plan
    context: int
    left: int
    missing: int = 0
    gained: int = 0


@dataclass
class Reference:
    """Continuous batching one iteration at a time: no closed form anywhere."""

    times: StepTimes
    slots: int
    capacity: float
    headroom: int
    chunk: int
    ends: dict[int, float] = field(default_factory=dict)
    joined: dict[int, float] = field(default_factory=dict)
    preemptions: int = 0
    overflowed: set[int] = field(default_factory=set)
    members: list[Row] = field(default_factory=list)
    filling: deque[Row] = field(default_factory=deque)
    queue: deque[Row] = field(default_factory=deque)
    tight: bool = False

    def run(self, plans: list[Plan]) -> None:
        arrivals = deque(sorted(range(len(plans)), key=lambda i: (plans[i].at_s, i)))
        rows = {i: Row(i, p, p.prompt, p.output - 1) for i, p in enumerate(plans)}
        now = 0.0
        while arrivals or self.queue or self.members or self.filling:
            if arrivals and not (self.queue or self.members or self.filling):
                now = max(now, plans[arrivals[0]].at_s)
            while arrivals and plans[arrivals[0]].at_s <= now * TIE:
                row = rows[arrivals.popleft()]
                if row.context + 1 > self.capacity:
                    self.overflowed.add(row.number)
                elif row.left == 0:
                    self.ends[row.number] = row.plan.at_s
                else:
                    self.queue.append(row)
            for row in list(rows.values()):
                cut = row.plan.cancel_s
                if cut is not None and cut <= now * TIE and row.plan.at_s <= now * TIE:
                    self.drop(row)
            self.form(now)
            if self.members or self.filling:
                now = self.iterate(now)

    def drop(self, row: Row) -> None:
        for place in (self.queue, self.members, self.filling):
            if row in place:
                place.remove(row)
                self.tight = self.tight and place is self.queue

    @property
    def held(self) -> int:
        return sum(r.context + r.gained for r in self.members) + sum(r.context for r in self.filling)

    def form(self, now: float) -> None:
        self.admit(now)
        while self.members and self.held + len(self.members) > self.capacity:
            victim = self.members.pop()
            self.preemptions += 1
            self.tight = bool(self.members)
            self.admit(now)
            victim.context += victim.gained
            victim.missing, victim.gained = victim.context - victim.plan.prompt, 0
            if victim.context >= self.capacity:
                self.overflowed.add(victim.number)
            else:
                self.queue.append(victim)
        self.admit(now)

    def admit(self, now: float) -> None:
        while self.queue and len(self.members) + len(self.filling) < self.slots and not self.tight:
            row = self.queue[0]
            reserved = sum(r.context + self.headroom for r in [*self.members, *self.filling])
            alone = not (self.members or self.filling)
            if self.held + row.context + len(self.members) + 1 > self.capacity:
                return
            if not alone and reserved + row.context + self.headroom > self.capacity:
                return
            self.queue.popleft()
            self.joined[row.number] = now
            (self.filling if row.missing else self.members).append(row)

    def iterate(self, now: float) -> float:
        size, kv = len(self.members), sum(r.context + r.gained for r in self.members)
        done: Row | None = None
        if self.filling:
            head = self.filling[0]
            chunk = min(self.chunk, head.missing)
            now += self.times.mixed_s(size, kv, chunk, head.context - head.missing)
            head.missing -= chunk
            done = head if not head.missing else None
        else:
            now += self.times.step_s(size, kv)
        for row in self.members:
            row.gained += 1
            row.left -= 1
        if done is not None:
            done = self.filling.popleft()
        for row in [r for r in self.members if r.left == 0]:
            cut = row.plan.cancel_s
            self.members.remove(row)
            self.tight = False
            if cut is None or cut > now * TIE or abs(cut - now) <= 1e-12 * now:
                self.ends[row.number] = now
        if done is not None:
            self.joined[done.number] = now
            self.members.append(done)
        return now


def simulate(plans: list[Plan], **spec: Any) -> tuple[dict[int, float], dict[int, float], int, set[int]]:
    """Run the same turns on the plant's decode worker."""
    ends: dict[int, float] = {}
    joined: dict[int, float] = {}
    overflowed: set[int] = set()

    async def main(clock: VirtualClock) -> int:
        turns = Turns()
        plant = cluster(clock, turns.hidden, (configuration("d", Role.DECODE, **spec), 1))

        async def live(i: int, plan: Plan) -> None:
            turn = turns.make(plan.prompt, plan.output)
            await clock.sleep_until(plan.at_s)
            while True:
                future = plant.decode(W0, turn, Staged(ANY, 0.0))
                entry = None if plan.cancel_s is None else clock.at(plan.cancel_s, plant.withdraw, future)
                try:
                    retired = await future
                except Preempted:
                    if entry is not None:
                        clock.cancel_at(entry)
                    continue
                except ContextOverflow:
                    overflowed.add(i)
                except asyncio.CancelledError:
                    pass
                else:
                    ends[i], joined[i] = clock.now(), retired.joined_s
                return

        await asyncio.gather(*(live(i, plan) for i, plan in enumerate(plans)))
        await clock.sleep_until(clock.now() + 1.0)  # a withdrawn member leaves with the step under way
        pool = plant.read().pools["d"]
        assert (pool.busy_slots, pool.queued_turns, pool.queued_tokens) == (0, 0, 0)
        assert pool.kv_used_tokens in (0, None)
        return pool.preempted_total

    return ends, joined, run_virtual(main), overflowed


def check(plans: list[Plan], times: StepTimes, slots: int, capacity: int | None, headroom: int, chunk: int) -> int:
    reference = Reference(times, slots, math.inf if capacity is None else capacity, headroom, chunk)
    reference.run(plans)
    ends, joined, preempted, overflowed = simulate(
        plans,
        times=times,
        slots=slots,
        kv_capacity_tokens=capacity,
        headroom_tokens=headroom,
        chunk_tokens=chunk,
    )
    assert ends.keys() == reference.ends.keys()
    assert overflowed == reference.overflowed
    assert preempted == reference.preemptions
    for i, end in ends.items():
        assert end == pytest.approx(reference.ends[i], rel=1e-9, abs=1e-12)
        if plans[i].output > 1:
            assert joined[i] == pytest.approx(reference.joined[i], rel=1e-9, abs=1e-12)
    return preempted


# Arrivals and cancellations on an irrational grid, so that ties with step boundaries are either exact or far apart.
instants = st.integers(0, 400).map(lambda k: k * 1.4142135623730951e-3)
lengths = st.tuples(st.integers(1, 300), st.integers(1, 120))
plans = st.builds(
    lambda at, sizes, stay: Plan(at, *sizes, None if stay is None else at + stay),
    instants,
    lengths,
    st.none() | instants,
)


@pytest.mark.slow
@given(
    st.lists(plans, min_size=1, max_size=12),
    st.integers(1, 6),
    st.none() | st.integers(120, 900),
    st.integers(0, 60),
    st.integers(7, 200),
)
@settings(max_examples=150, deadline=None)
@example([Plan(0.0, 100, 50), Plan(0.0, 100, 50), Plan(0.001, 100, 90)], 4, 330, 0, 16)
def test_the_closed_form_equals_stepping_preemptions_and_withdrawals_included(
    plans: list[Plan], slots: int, capacity: int | None, headroom: int, chunk: int
) -> None:
    check(plans, TIMES, slots, capacity, headroom, chunk)


def test_a_crowded_batch_preempts_often_and_still_equals_stepping() -> None:
    crowd = [Plan(0.0013 * k, 60 + 7 * k % 90, 150 + 13 * k % 70) for k in range(30)]
    assert check(crowd, TIMES, 6, 700, 0, 64) > 5


def test_steps_without_kv_growth_in_time_are_exact_too() -> None:
    flat = LinearTimes(base_s=0.01, per_sequence_s=0.001, per_kv_token_s=0.0, per_new_token_s=0.0)
    check([Plan(0.0, 10, 5), Plan(0.013, 10, 9), Plan(0.024, 5, 2)], flat, 2, None, 0, 16)


def test_long_runs_cost_events_by_membership_not_by_tokens() -> None:
    async def main(clock: VirtualClock) -> int:
        turns = Turns()
        plant = cluster(clock, turns.hidden, (configuration("d", Role.DECODE, slots=4), 1))
        before = clock.at(0.0, lambda _: None, None)[2]
        futures = [plant.decode(W0, turns.make(1000, 10_000 * (k + 1)), Staged(ANY, 0.0)) for k in range(4)]
        await asyncio.gather(*futures)
        return int(clock.at(0.0, lambda _: None, None)[2] - before)

    assert run_virtual(main) <= 10


def test_a_lower_cap_lets_members_finish_and_joins_fewer() -> None:
    async def main(clock: VirtualClock) -> tuple[int, int]:
        turns = Turns()
        plant = cluster(clock, turns.hidden, (configuration("d", Role.DECODE, slots=4), 1))
        for _ in range(8):
            plant.decode(W0, turns.make(10, 100), Staged(ANY, 0.0))
        applied = plant.apply(BatchCommand(batch_cap_turns=2))
        assert not applied.clipped
        await clock.sleep_until(0.01)
        full = plant.read().pools["d"].busy_slots
        await clock.sleep_until(0.95)
        return full, plant.read().pools["d"].busy_slots

    assert run_virtual(main) == (4, 2)


def test_caps_beyond_the_slots_are_clipped_and_told() -> None:
    async def main(clock: VirtualClock) -> None:
        turns = Turns()
        spec = configuration("d", Role.DECODE, slots=4)
        plant = cluster(clock, turns.hidden, (spec, 1))
        applied = plant.apply(BatchCommand(configuration=spec.name, batch_cap_turns=9))
        assert applied.clipped
        assert isinstance(applied.command, BatchCommand)
        assert applied.command.batch_cap_turns == 4

    run_virtual(main)
