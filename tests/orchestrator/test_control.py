"""Loops act at start + k x period or once at an event, see readings as old as stated, and hand setpoints down."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from orchestrator.clock import TICK
from orchestrator.control import decided
from orchestrator.ledger import Ledger
from orchestrator.messages import (
    AdmissionCommand,
    AdmissionReading,
    BatchCommand,
    BatchReading,
    CapacityCommand,
    DemandCommand,
    PlantReading,
)
from orchestrator.ports import Every, On
from orchestrator.readings import Smoother
from orchestrator.telemetry import Sample, Telemetry, TelemetrySpec, take_sample
from orchestrator.turn import EMPTY_CHAIN, ClassName, TurnId, TurnView
from orchestrator.virtual_clock import VirtualClock, run_virtual
from plant.theory.tandem import Residence
from tests.orchestrator.kit import CHAT, Coming, World, burst


class Watch:
    """A law that keeps its readings and says a fixed thing."""

    def __init__(self, command: Any, cadence: Every | On) -> None:
        self.cadence, self.command = cadence, command
        self.seen: list[Any] = []

    def act(self, y: Any) -> Any:
        self.seen.append(y)
        return self.command


def at_all_times(horizon_s: float, *, laws: dict[Any, Any], coming: list[Coming] | None = None, **more: Any) -> World:
    async def main(clock: VirtualClock) -> World:
        # A turn far beyond the horizon keeps the source from being exhausted.
        world = World(clock, [*(coming or []), Coming(1e9)], laws=laws, horizon_s=horizon_s, **more)
        await world.run()
        return world

    return run_virtual(main)


# ------------------------------------------------ cadence
@pytest.mark.parametrize("period_s", [0.05, 0.1, 1 / 3, 0.7])
def test_a_sampled_loop_acts_at_start_plus_k_periods_without_drift(period_s: float) -> None:
    law = Watch(AdmissionCommand(), Every(period_s=period_s))
    at_all_times(2000 * period_s + 1e-6, laws={"admission": law})
    assert [y.now_s for y in law.seen] == [k * period_s for k in range(2001)]
    assert [y.at_s for y in law.seen] == [y.now_s for y in law.seen]


def test_a_loop_on_retirements_acts_at_the_start_and_once_at_each_instant_of_them() -> None:
    law = Watch(AdmissionCommand(), On(event="retirement"))
    coming = [*burst(3), *burst(2, at_s=1.5), Coming(4.0)]
    at_all_times(50.0, laws={"admission": law}, coming=coming, slots=8)
    assert [y.now_s for y in law.seen] == [0.0, 3.0, 4.5, 7.0]
    assert [y.retired_total for y in law.seen] == [0, 3, 5, 6], "it sees the whole instant"


def test_a_loop_on_arrivals_acts_once_at_each_instant_of_them() -> None:
    law = Watch(AdmissionCommand(), On(event="arrival"))
    at_all_times(50.0, laws={"admission": law}, coming=[*burst(3, at_s=1.0), Coming(2.5)])
    assert [y.now_s for y in law.seen] == [0.0, 1.0, 2.5]


def test_a_tick_sees_every_fact_of_its_instant() -> None:
    law = Watch(AdmissionCommand(), Every(period_s=1.0))
    residence = Residence(mean_s=2.0, shape="fixed")
    at_all_times(6.5, laws={"admission": law}, coming=burst(4), slots=2, residence=residence)
    levels = [(y.filling_turns, y.ready_turns, y.decoding_turns, y.retired_total) for y in law.seen]
    assert levels == [(0, 0, 0, 0), (0, 2, 2, 0), (0, 2, 2, 0), (0, 0, 2, 2), (0, 0, 2, 2), (0, 0, 0, 4), (0, 0, 0, 4)]
    assert [y.retire_per_s for y in law.seen] == [None, 0.0, 0.0, 2.0, 0.0, 2.0, 0.0]
    assert {y.service_per_s for y in law.seen} == {None}, "no pool knows what it would serve when full"


# ------------------------------------------------ the cascade
def test_a_slow_loop_hands_its_command_to_the_next_faster_one_and_to_no_other() -> None:
    demand = Watch(DemandCommand(forecast_per_s=3.0), Every(period_s=4.0))
    capacity = Watch(CapacityCommand(in_flight_setpoint_turns=9.0), Every(period_s=2.0))
    admission = Watch(AdmissionCommand(batch_setpoint_turns=5.0), Every(period_s=1.0))
    batching = Watch(BatchCommand(batch_cap_turns=2), Every(period_s=1.0))
    laws = {"demand": demand, "capacity": capacity, "admission": admission, "batching": batching}
    at_all_times(5.5, laws=laws)
    assert [y.setpoint for y in capacity.seen] == [demand.command] * 3, "slow loops go first at one instant"
    assert [y.setpoint for y in admission.seen] == [capacity.command] * 6
    assert [y.setpoint for y in batching.seen] == [admission.command] * 6
    assert not hasattr(demand.seen[0], "setpoint")


def test_a_loop_without_a_slower_one_has_no_setpoint() -> None:
    law = Watch(AdmissionCommand(), Every(period_s=1.0))
    at_all_times(2.5, laws={"admission": law, "demand": Watch(DemandCommand(), Every(period_s=1.0))})
    assert [y.setpoint for y in law.seen] == [None] * 3


def test_the_actuator_reports_what_it_did_in_the_next_reading() -> None:
    batching = Watch(BatchCommand(batch_cap_turns=99), Every(period_s=1.0))
    at_all_times(2.5, laws={"batching": batching}, slots=3)
    seen: list[BatchReading] = batching.seen
    assert [y.applied.batch_cap_turns for y in seen] == [None, 3, 3]


def test_a_smaller_batch_cap_is_obeyed_and_a_larger_one_lets_in_at_once() -> None:
    class Steps(Watch):
        def act(self, y: BatchReading) -> BatchCommand:
            super().act(y)
            return BatchCommand(batch_cap_turns=1 if y.now_s < 10.0 else 4)

    law = Steps(None, Every(period_s=1.0))
    residence = Residence(mean_s=5.0, shape="fixed")
    world = at_all_times(30.0, laws={"batching": law}, coming=burst(6), slots=4, residence=residence)
    assert sorted(row["joined_s"] for row in world.sink.rows) == [1.0, 6.0, 10.0, 10.0, 10.0, 11.0]


# ------------------------------------------------ telemetry
def counting(clock: VirtualClock) -> Any:
    """Samples whose backlog is the number of the sample."""
    ledger, taken = Ledger([CHAT]), [0]

    def take() -> Sample:
        taken[0] += 1
        sample = take_sample(clock.now(), ledger, 8, None, PlantReading(at_s=clock.now(), pools={}))
        return sample._replace(backlog=taken[0])

    return take


@settings(max_examples=30, deadline=None)
@given(
    period_s=st.sampled_from([0.05, 0.1, 0.25, 0.3, 1.0]),
    lag=st.integers(0, 12),
    part=st.sampled_from([0.0, 0.4]),
    tick_s=st.sampled_from([0.05, 0.1, 0.3, 0.7]),
)
def test_a_reading_is_the_newest_sample_that_is_old_enough_whatever_the_floats(
    period_s: float, lag: int, part: float, tick_s: float
) -> None:
    age_s = round((lag + part) * period_s, 12)
    # Fresh samples on another beat than the ticks': 6 x 0.05 lies a bit after 0.3, and is not there yet.
    assume(age_s > 0.0 or tick_s == period_s)

    async def main(clock: VirtualClock) -> None:
        telemetry = Telemetry(clock, TelemetrySpec(period_s=period_s, age_s=age_s), counting(clock), 1)
        telemetry.start()
        for k in range(1, 200):
            await clock.sleep_until(k * tick_s, TICK)
            # In whole thousandths of a second the arithmetic is exact.
            now, period, age = round(k * tick_s * 1000), round(period_s * 1000), round(age_s * 1000)
            want = max(0, now - age) // period
            assert telemetry.latest().at_s == pytest.approx(want * period_s, abs=1e-9), (k, want)

    run_virtual(main)


def test_a_loop_sees_aged_samples_and_measures_rates_between_its_own_two() -> None:
    law = Watch(AdmissionCommand(), Every(period_s=1.0))
    telemetry = TelemetrySpec(period_s=0.5, age_s=1.0)
    coming = [Coming(k * 0.25) for k in range(40)]
    at_all_times(8.2, laws={"admission": law}, coming=coming, telemetry=telemetry, slots=100)
    assert [y.at_s for y in law.seen] == [0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    assert [y.arrival_per_s for y in law.seen[:2]] == [None, None]
    assert [y.arrival_per_s for y in law.seen[3:]] == [4.0] * 6
    seen: list[AdmissionReading] = law.seen
    assert all(y.now_s - y.at_s == 1.0 for y in seen[1:])


def test_lost_samples_are_the_stated_share_and_the_last_good_one_stands() -> None:
    async def main(clock: VirtualClock) -> None:
        telemetry = Telemetry(clock, TelemetrySpec(period_s=0.1, drop_ratio=0.3), counting(clock), 5)
        telemetry.start()
        ages = []
        for k in range(1, 4001):
            await clock.sleep_until(k * 0.1, TICK)
            ages.append(round((clock.now() - telemetry.latest().at_s) / 0.1))
        assert abs(telemetry.dropped - 1200) < 4 * math.sqrt(4000 * 0.21)
        assert sum(age > 0 for age in ages) == telemetry.dropped
        assert max(ages) < 12

    run_virtual(main)


def test_noise_has_the_stated_spread_and_no_bias_and_comes_again_with_the_seed() -> None:
    async def main(clock: VirtualClock) -> list[int]:
        ledger = Ledger([CHAT])
        for number in range(1000):
            ledger.release(ledger.arrive(TurnView(TurnId(number), 0, CHAT, 0, 0, 0.0, 1, EMPTY_CHAIN)), 0.0)

        def take() -> Sample:
            return take_sample(clock.now(), ledger, 8, None, PlantReading(at_s=clock.now(), pools={}))

        telemetry = Telemetry(clock, TelemetrySpec(noise_ratio=0.05), take, 9)
        return [telemetry.latest().filling for _ in range(4000)]

    seen = run_virtual(main)
    mean = sum(seen) / len(seen)
    spread = math.sqrt(sum((x - mean) ** 2 for x in seen) / len(seen))
    assert abs(mean - 1000) < 4 * 50 / math.sqrt(4000)
    assert spread == pytest.approx(50, rel=0.05)
    assert seen == run_virtual(main)


def test_noise_leaves_what_is_counted_alone() -> None:
    law = Watch(AdmissionCommand(), Every(period_s=1.0))
    coming = [Coming(k * 0.25) for k in range(40)]
    at_all_times(9.5, laws={"admission": law}, coming=coming, telemetry=TelemetrySpec(noise_ratio=0.5), slots=9)
    # A turn that comes at 1.0 is there when the tick of 1.0 looks.
    assert [y.arrived_total for y in law.seen] == [4 * k + 1 for k in range(10)]
    assert any(y.in_flight_turns != y.filling_turns + y.ready_turns + y.decoding_turns for y in law.seen)


def test_the_smoothed_backlog_forgets_at_its_span() -> None:
    smoother = Smoother(10.0)
    assert smoother.update(5.0, 0.0) == 5.0
    assert smoother.update(0.0, 10.0) == pytest.approx(5.0 / math.e)
    assert smoother.update(100.0, 10.0) == pytest.approx(5.0 / math.e), "the same sample twice changes nothing"
    assert Smoother(0.0).update(7.0, 1.0) == 7.0


# ------------------------------------------------ what is recorded of it
def test_only_decisions_become_events() -> None:
    rate = AdmissionCommand(release_per_s=1.0)
    assert not decided(AdmissionCommand(release_per_s=2.0), rate)
    assert decided(AdmissionCommand(release_per_s=1.0, gate_open=False), rate)
    assert decided(rate, None)


def test_what_the_law_saw_and_said_stands_in_its_own_columns_and_all_columns_are_equally_long() -> None:
    class Changes(Watch):
        def act(self, y: AdmissionReading) -> AdmissionCommand:
            super().act(y)
            named = {} if y.now_s < 3.0 else {"class_cap_turns": {CHAT: 2}, "reserve_turns": {CHAT: 1}}
            return AdmissionCommand(release_per_s=y.now_s + 1.0, **named)

    law = Changes(None, Every(period_s=1.0))
    world = at_all_times(8.0, laws={"admission": law}, coming=burst(3), bin_s=0.5)
    bins = world.sink.bins
    assert len(bins["t_s"]) == 16
    assert {len(values) for values in bins.values()} == {16}
    assert bins["command.admission.release_per_s"][0:4] == [1.0, 1.0, 2.0, 2.0]
    assert bins["seen.admission.in_flight_turns"][2] == 2.0
    commands = [event for event in world.sink.events if event["kind"] == "command"]
    assert [event["at_s"] for event in commands] == [0.0, 3.0]


def test_bins_sum_to_the_counts_and_their_means_to_the_areas() -> None:
    for bin_s, horizon_s in (
        (0.25, 20.0),
        (0.1, 20.0),
        (0.3, 20.0),
        (7.0, 20.0),
        (1400 / 5600, 20.0),
        (353.0 / 5600, 353.0),
    ):
        law = Watch(AdmissionCommand(), Every(period_s=1.0))
        coming = [Coming(k * 0.1) for k in range(201)]
        world = at_all_times(horizon_s, laws={"admission": law}, coming=coming, slots=30, bin_s=bin_s)
        bins = world.sink.bins
        widths = [b - a for a, b in zip(bins["t_s"], [*bins["t_s"][1:], horizon_s])]
        assert min(widths) > 1e-6 * bin_s, "a bin of no width"
        assert sum(bins["arrived_turns"]) == world.ledger.arrived
        assert sum(bins["retired_turns"]) == world.ledger.retired
        ended = [
            min(row["ended_s"], horizon_s) if row["ended_s"] == row["ended_s"] else horizon_s for row in world.sink.rows
        ]
        joined = [row["joined_s"] for row in world.sink.rows]
        area = sum(e - j for e, j in zip(ended, joined) if j == j)
        assert sum(m * w for m, w in zip(bins["decoding_turns_mean"], widths)) == pytest.approx(area, rel=1e-9)
        assert all(lo <= m <= hi for lo, m, hi in zip(*(bins[f"decoding_turns_{p}"] for p in ("min", "mean", "max"))))


def test_classes_are_read_apart() -> None:
    law = Watch(AdmissionCommand(), Every(period_s=1.0))
    coming = [*burst(3), *burst(2, class_name=ClassName("batch"))]
    at_all_times(9.5, laws={"admission": law}, coming=coming, slots=3)
    last = law.seen[-1].by_class
    assert {name: (c.arrived_turns, c.retired_turns, c.in_flight_turns) for name, c in last.items()} == {
        "chat": (3, 3, 0),
        "batch": (2, 2, 0),
    }
    assert (law.seen[0].by_class[CHAT].backlog_turns, law.seen[1].by_class[CHAT].in_flight_turns) == (3, 3)
