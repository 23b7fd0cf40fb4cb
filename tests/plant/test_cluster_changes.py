"""The cluster when workers change configuration, are lost or slowed, and links fail."""

from __future__ import annotations

import asyncio
import math

import pytest

from orchestrator.errors import SteadyflowError, WorkerLost
from orchestrator.messages import Role
from orchestrator.ports import Staged
from orchestrator.turn import EMPTY_CHAIN, KvRef, WorkerId
from orchestrator.virtual_clock import VirtualClock, run_virtual
from plant.cluster_spec import RackSpec
from plant.faults import FaultSpec
from plant.model.times import LinearTimes
from tests.plant.factory import ANY, DECODE, FILL, TIMES, W0, Turns, cluster, configuration


def test_reconfiguration_takes_load_and_warm_time_and_opens_a_new_epoch() -> None:
    warm = configuration("decode2", Role.DECODE, load_s=30.0, warm_s=5.0)

    async def main(clock: VirtualClock) -> None:
        turns = Turns()
        plant = cluster(clock, turns.hidden, (FILL, 2), (warm, 0))
        assert [(fact.kind, fact.info.worker) for fact in plant.facts() if fact.info] == [("joined", 0), ("joined", 1)]
        busy = plant.fill(W0, turns.make(100, 2), ANY)
        with pytest.raises(SteadyflowError, match="worker 0 is not drained: 1 turns"):
            plant.reconfigure(W0, warm.name)
        await busy
        change = plant.reconfigure(W0, warm.name)
        pools = plant.read().pools
        assert (pools["fill"].active_workers, pools["decode2"].pending_workers) == (1, 1)
        with pytest.raises(WorkerLost, match="serves nothing now"):
            await plant.fill(W0, turns.make(100, 2), ANY)
        began = clock.now()
        await change
        assert clock.now() - began == 35.0
        (joined,) = plant.facts()
        assert joined.kind == "joined"
        assert joined.info is not None
        assert (joined.info.epoch, joined.info.configuration, joined.info.role) == (1, "decode2", Role.DECODE)
        pools = plant.read().pools
        assert (pools["decode2"].active_workers, pools["decode2"].pending_workers) == (1, 0)
        with pytest.raises(SteadyflowError, match="it cannot fill"):
            plant.fill(W0, turns.make(100, 2), ANY)

    run_virtual(main)


def test_a_lost_worker_fails_its_work_and_comes_back_empty_in_a_new_epoch() -> None:
    racks = [RackSpec(count=2, workers=1, uplink_bytes_per_s=1e9)]
    fault = FaultSpec(kind="lost", at_s=0.5, until_s=2.0, worker=1)

    async def main(clock: VirtualClock) -> None:
        turns = Turns()
        plant = cluster(clock, turns.hidden, (FILL, 1), (DECODE, 1), racks=racks, faults=[fault])
        list(plant.facts())
        turn = turns.make(1000, 200)
        decoding = plant.decode(WorkerId(1), turn, Staged(ANY, 0.0))
        coming = plant.stage(WorkerId(1), KvRef(EMPTY_CHAIN, 10_000, W0))
        results = await asyncio.gather(decoding, coming, return_exceptions=True)
        assert [type(result) for result in results] == [WorkerLost, WorkerLost]
        assert clock.now() == 0.5
        pool = plant.read().pools["decode"]
        assert (pool.active_workers, pool.busy_slots) == (0, 0)
        await clock.sleep_until(2.5)
        began = clock.now()
        await plant.decode(WorkerId(1), turn, Staged(ANY, 0.0))
        done = TIMES.steps_within(1, 1000, 0.5)
        again = TIMES.mixed_s(0, 0, done, 1000) + TIMES.span_s(1, 1000 + done, 199 - done)
        assert clock.now() - began == pytest.approx(
            again, rel=1e-9
        )  # what it had generated is text: computed, not lost
        assert [(fact.kind, fact.info.epoch) for fact in plant.facts() if fact.info] == [("lost", 1), ("joined", 1)]

    run_virtual(main)


def test_a_slowed_worker_finishes_its_step_at_the_old_speed_then_steps_slower() -> None:
    flat = LinearTimes(base_s=0.1, per_sequence_s=0.0, per_kv_token_s=0.0, per_new_token_s=0.0)
    spec = configuration("d", Role.DECODE, times=flat)
    fault = FaultSpec(kind="slowed", at_s=0.25, until_s=1.15, worker=0, factor=3.0)

    async def main(clock: VirtualClock) -> float:
        turns = Turns()
        plant = cluster(clock, turns.hidden, (spec, 1), faults=[fault])
        await plant.decode(W0, turns.make(10, 11), Staged(ANY, 0.0))
        return clock.now()

    # three steps to 0.3, three slow ones to 1.2, four more.
    assert run_virtual(main) == pytest.approx(1.6)


def test_a_dead_link_holds_its_transfers_until_it_is_up() -> None:
    racks = [RackSpec(count=2, workers=1, uplink_bytes_per_s=1e9)]
    fault = FaultSpec(kind="link_down", at_s=0.25, until_s=4.0, rack=1, factor=math.inf)

    async def main(clock: VirtualClock) -> float:
        plant = cluster(clock, Turns().hidden, (FILL, 1), (DECODE, 1), racks=racks, faults=[fault])
        await plant.stage(WorkerId(1), KvRef(EMPTY_CHAIN, 10_000, W0))
        kinds = [fact.kind for fact in plant.facts()]
        assert kinds == ["joined", "joined", "link_down", "link_up"]
        return clock.now()

    assert run_virtual(main) == pytest.approx(4.75)


def test_of_faults_that_overlap_on_one_thing_the_worst_counts_and_the_last_to_end_ends_them() -> None:
    racks = [RackSpec(count=2, workers=1, uplink_bytes_per_s=1e9)]
    down = [
        FaultSpec(kind="link_down", at_s=at_s, until_s=until_s, rack=1, factor=factor)
        for at_s, until_s, factor in ((0.25, 4.0, math.inf), (1.0, 2.0, math.inf), (3.0, 5.0, 2.0))
    ]
    lost = [
        FaultSpec(kind="lost", at_s=at_s, until_s=until_s, worker=0) for at_s, until_s in ((10.0, 12.0), (11.0, 15.0))
    ]

    async def main(clock: VirtualClock) -> float:
        plant = cluster(clock, Turns().hidden, (FILL, 1), (DECODE, 1), racks=racks, faults=[*down, *lost])
        await plant.stage(WorkerId(1), KvRef(EMPTY_CHAIN, 10_000, W0))
        ended_s = clock.now()
        list(plant.facts())
        await clock.sleep_until(14.0)
        assert plant.read().pools["fill"].active_workers == 0
        await clock.sleep_until(16.0)
        pool = plant.read().pools["fill"]
        assert (pool.active_workers, pool.pending_workers) == (1, 0)
        assert [(fact.kind, fact.at_s) for fact in plant.facts()] == [("lost", 10.0), ("joined", 15.0)]
        return ended_s

    # A quarter of a second at full rate, a second at half of it from 4 s on, the rest at full rate again.
    assert run_virtual(main) == pytest.approx(5.25)
