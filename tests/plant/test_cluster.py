"""The cluster behind its port: fill, hand-off, aggregated mode, cancellation, and what a worker can hold."""

from __future__ import annotations

import asyncio

import pytest

from orchestrator.errors import ContextOverflow, Preempted
from orchestrator.messages import Role
from orchestrator.ports import Plant, Staged
from orchestrator.turn import EMPTY_CHAIN, KvChain, KvRef, KvRun, WorkerId
from orchestrator.virtual_clock import VirtualClock, run_virtual
from plant.cluster import Cluster
from plant.cluster_spec import RackSpec
from plant.faults import FaultSpec
from plant.workers.fill import chunk_spans_s
from tests.plant.factory import ANY, BOTH, DECODE, FILL, TIMES, W0, Turns, cluster, configuration, fill_and_decode


def holds_the_port(plant: Cluster) -> Plant:
    return plant


def test_a_lone_turn_takes_its_chunks_then_its_steps() -> None:
    async def main(clock: VirtualClock) -> tuple[float, float]:
        turns = Turns()
        plant = holds_the_port(cluster(clock, turns.hidden, (BOTH, 1)))
        assert isinstance(plant, Cluster)
        return await fill_and_decode(plant, turns.make(1000, 41), W0, W0)

    first, last = run_virtual(main)
    assert first == pytest.approx(
        sum(TIMES.mixed_s(0, 0, n, c) for n, c in [(256, 0), (256, 256), (256, 512), (232, 768)])
    )
    assert last - first == pytest.approx(TIMES.span_s(1, 1000, 40), rel=1e-12)


def test_a_chunk_shares_its_pass_with_the_batch() -> None:
    async def main(clock: VirtualClock) -> tuple[float, float]:
        turns = Turns()
        plant = cluster(clock, turns.hidden, (BOTH, 1))
        early = asyncio.ensure_future(fill_and_decode(plant, turns.make(100, 1000), W0, W0))
        await clock.sleep_until(TIMES.mixed_s(0, 0, 100, 0) + TIMES.span_s(1, 100, 10) * 1.0001)
        first, _ = await fill_and_decode(plant, turns.make(300, 5), W0, W0)
        early.cancel()
        return first, clock.now()

    first, _ = run_virtual(main)
    began = TIMES.mixed_s(0, 0, 100, 0) + TIMES.span_s(1, 100, 11)  # the next boundary
    passes = TIMES.mixed_s(1, 111, 256, 0) + TIMES.mixed_s(1, 112, 44, 256)
    assert first == pytest.approx(began + passes, rel=1e-12)


def test_a_one_token_answer_ends_with_its_fill() -> None:
    async def main(clock: VirtualClock) -> None:
        turns = Turns()
        plant = cluster(clock, turns.hidden, (BOTH, 1), (FILL, 1), (DECODE, 1))
        for filler, decoder in ((0, 0), (1, 2)):
            first, last = await fill_and_decode(
                plant, turns.make(700, 1, service_s=3.0), WorkerId(filler), WorkerId(decoder)
            )
            assert (decoder == 0 and first == last) or last - first == pytest.approx(0.0)
        assert plant.read().pools["both"].busy_slots == 0

    run_virtual(main)


def test_a_fill_computes_what_the_store_lacks_and_never_less_than_one_token() -> None:
    async def main(clock: VirtualClock) -> list[tuple[int, float]]:
        turns = Turns()
        plant = cluster(clock, turns.hidden, (FILL, 1), (configuration("d", Role.DECODE), 1))
        seen = []
        for blocks in (10, 10, 14, 3):
            turn = turns.make(blocks * 64, 2, KvChain((KvRun(1, 0, blocks),), 64))
            began = clock.now()
            expected = plant.cost_s(W0, turn)
            filled = await plant.fill(W0, turn, ANY)
            assert clock.now() - began == pytest.approx(expected)
            seen.append((filled.cached_tokens, clock.now() - began))
            await plant.decode(WorkerId(1), turn, Staged(filled.kv, 0.0))
        totals = plant.totals()
        assert totals["hit_tokens"] == sum(cached for cached, _ in seen)
        assert totals["prompt_tokens"] == (10 + 10 + 14 + 3) * 64
        assert plant.holding(KvChain((KvRun(1, 0, 20),), 64)) == ((WorkerId(1), 14 * 64), (WorkerId(0), 14 * 64))
        return seen

    seen = run_virtual(main)
    assert [cached for cached, _ in seen] == [0, 639, 640, 191]
    assert seen[1][1] == pytest.approx(TIMES.mixed_s(0, 0, 1, 639))


def test_staging_shares_both_uplinks_and_is_free_inside_a_rack() -> None:
    racks = [RackSpec(count=2, workers=2, uplink_bytes_per_s=1e9, latency_s=0.001)]
    kv = KvRef(EMPTY_CHAIN, 10_000, W0)  # 1e9 bytes at 1e5 a token

    async def main(clock: VirtualClock) -> list[float]:
        plant = cluster(clock, Turns().hidden, (FILL, 1), (DECODE, 3), racks=racks)
        moves = [plant.stage(WorkerId(w), kv) for w in (2, 3, 1)]
        ends = [0.0] * 3
        for i, move in enumerate(moves):
            move.add_done_callback(lambda _, i=i: ends.__setitem__(i, clock.now()))
        await asyncio.gather(*moves)
        assert plant.totals()["staged_bytes"] == 3e9
        return ends

    assert run_virtual(main) == pytest.approx([2.001, 2.001, 0.001])


def test_cancelling_one_staging_frees_its_share_at_once() -> None:
    racks = [RackSpec(count=2, workers=2, uplink_bytes_per_s=1e9)]
    kv = KvRef(EMPTY_CHAIN, 10_000, W0)

    async def main(clock: VirtualClock) -> float:
        plant = cluster(clock, Turns().hidden, (FILL, 2), (DECODE, 2), racks=racks)
        kept, dropped = plant.stage(WorkerId(2), kv), plant.stage(WorkerId(3), kv)
        clock.at(1.0, plant.withdraw, dropped)
        await kept
        return clock.now()

    assert run_virtual(main) == pytest.approx(1.5)


def test_a_cancelled_fill_frees_its_worker_with_the_chunk_under_way() -> None:
    async def main(clock: VirtualClock) -> float:
        turns = Turns()
        plant = cluster(clock, turns.hidden, (FILL, 1), (DECODE, 1))
        long, short = plant.fill(W0, turns.make(5120, 2), ANY), plant.fill(W0, turns.make(10, 2), ANY)
        clock.at(0.013, plant.withdraw, long)
        filled = await short
        return filled.started_s

    spans = list(chunk_spans_s(TIMES, 5120, 0, 512))
    end = spans[0] if spans[0] >= 0.013 else spans[0] + spans[1]
    assert run_virtual(main) == pytest.approx(end)


def test_a_withdrawn_decode_frees_memory_for_whoever_asks_at_that_instant() -> None:
    spec = configuration("d", Role.DECODE, slots=4, kv_capacity_tokens=1000)

    async def main(clock: VirtualClock) -> None:
        turns = Turns()
        plant = cluster(clock, turns.hidden, (spec, 1))
        held = plant.decode(W0, turns.make(600, 300), Staged(ANY, 0.0))
        other = turns.make(500, 3)
        await clock.sleep_until(0.0201)
        assert not plant.has_room(W0, other)
        plant.withdraw(held)
        assert plant.has_room(W0, other)
        await plant.decode(W0, other, Staged(ANY, 0.0))

    run_virtual(main)


def test_a_turn_fits_while_its_workers_are_away_and_may_come_back() -> None:
    small = configuration("small", Role.AGGREGATED, kv_capacity_tokens=500)
    fault = FaultSpec(kind="lost", at_s=0.5, until_s=2.0, worker=0)

    async def main(clock: VirtualClock) -> None:
        turns = Turns()
        plant = cluster(clock, turns.hidden, (small, 1), faults=[fault])
        for at_s, active in ((0.0, 1), (1.0, 0), (3.0, 1)):
            await clock.sleep_until(at_s)
            assert plant.read().pools["small"].active_workers == active
            assert plant.fits(turns.make(499, 2))
            assert not plant.fits(turns.make(500, 2))

    run_virtual(main)


def test_a_context_too_large_for_every_worker_overflows_and_is_told_apart_from_a_full_one() -> None:
    small = configuration("small", Role.AGGREGATED, kv_capacity_tokens=500)

    async def main(clock: VirtualClock) -> None:
        turns = Turns()
        plant = cluster(clock, turns.hidden, (small, 1))
        assert not plant.fits(turns.make(500, 2))
        assert plant.fits(turns.make(499, 2))
        with pytest.raises(ContextOverflow, match="do not fit worker 0"):
            await plant.fill(W0, turns.make(600, 2), ANY)
        growing = turns.make(400, 300)
        with pytest.raises(ContextOverflow, match="outgrown every worker"):
            await fill_and_decode(plant, growing, W0, W0)
        assert plant.totals()["overflows"] == 1

    run_virtual(main)


@pytest.mark.parametrize("preemption", ["recompute", "swap"])
def test_an_aggregated_worker_preempts_the_youngest_and_it_ends_all_the_same(preemption: str) -> None:
    spec = configuration(
        "both",
        Role.AGGREGATED,
        kv_capacity_tokens=1000,
        chunk_tokens=256,
        preemption=preemption,
        kv_bytes_per_token=1e5,
        swap_bytes_per_s=1e10,
    )

    async def main(clock: VirtualClock) -> tuple[list[int], list[float]]:
        turns = Turns()
        plant = cluster(clock, turns.hidden, (spec, 1))
        preempted = [0, 0, 0]
        ends = [0.0] * 3

        async def live(i: int) -> None:
            turn = turns.make(250, 200)
            filled = await plant.fill(W0, turn, ANY)
            while True:
                try:
                    await plant.decode(W0, turn, Staged(filled.kv, 0.0))
                except Preempted:
                    preempted[i] += 1
                    continue
                ends[i] = clock.now()
                return

        await asyncio.gather(*(live(i) for i in range(3)))
        pool = plant.read().pools["both"]
        assert pool.preempted_total == sum(preempted)
        assert (pool.busy_slots, pool.queued_turns, pool.kv_used_tokens) == (0, 0, 0)
        return preempted, ends

    preempted, ends = run_virtual(main)
    assert preempted == [0, 0, 1]
    assert max(ends) == ends[2]
