"""Speed of the cluster plant in units of one plain heap event, measured in the same run.

A plain heap event: pop the earliest of a thousand (when, sequence, function, argument) tuples, call it, push it again.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from orchestrator.messages import Role
from orchestrator.ports import Staged
from orchestrator.turn import WorkerId
from orchestrator.virtual_clock import VirtualClock, run_virtual
from plant.cluster_spec import ConfigurationSpec
from plant.links.shared_link import SharedLink
from tests.plant.factory import ANY, TIMES, Turns, cluster, configuration
from tests.plant.links.owner import join

TURNS = 6_000


def best_of(times: int, seconds: Callable[[], float]) -> float:
    return min(seconds() for _ in range(times))


def plain_event_s() -> float:
    gaps = np.random.default_rng(1).exponential(1.0, 4096).tolist()
    heap: list[tuple[float, int, Callable[[object], None], object]] = []
    now, sequence = 0.0, 0

    def wake(arg: object) -> None:
        nonlocal sequence
        sequence += 1
        heapq.heappush(heap, (now + gaps[sequence & 4095], sequence, wake, arg))

    for _ in range(1000):
        wake(None)
    began = time.process_time()
    for _ in range(50_000):
        now, _sequence, fn, arg = heapq.heappop(heap)
        fn(arg)
    return (time.process_time() - began) / 50_000


def in_events(seconds_each: Callable[[], float]) -> float:
    """Return the best ratio of a piece of work to a plain event, each pair measured side by side."""
    return min(seconds_each() / best_of(2, plain_event_s) for _ in range(4))


def turn_s(spec: ConfigurationSpec, workers: int, rate_per_s: float, prompt: int, mean_output: float) -> float:
    """CPU seconds of the plant per turn: Poisson arrivals dealt out in turn, straight from the heap."""
    rng = np.random.default_rng(3)
    at = np.cumsum(rng.exponential(1.0 / rate_per_s, TURNS)).tolist()
    outputs = (1 + rng.exponential(mean_output, TURNS)).astype(int).tolist()

    async def main(clock: VirtualClock) -> float:
        turns = Turns()
        plant = cluster(clock, turns.hidden, (spec, workers))
        made_turns = [turns.make(prompt, output) for output in outputs]

        def decode(i: int) -> None:
            plant.decode(WorkerId(i % workers), made_turns[i], Staged(ANY, 0.0))

        def fill(i: int) -> None:
            plant.fill(WorkerId(i % workers), made_turns[i], ANY).add_done_callback(lambda _: decode(i))

        for i, when in enumerate(at):
            clock.at(when, fill if spec.role is Role.AGGREGATED else decode, i)
        began = time.process_time()
        await clock.sleep_until(at[-1] + 1e4)
        assert plant.read().pools[spec.name].served_total == TURNS
        return (time.process_time() - began) / TURNS

    return run_virtual(main)


@pytest.mark.slow
def test_a_decode_worker_costs_forty_plain_events_a_turn_at_most(benchmark: BenchmarkFixture) -> None:
    spec = configuration("d", Role.DECODE, slots=64, kv_capacity_tokens=200_000)
    rate = 0.8 * 4 * 64 / TIMES.step_s(64, 64_000) / 300

    def cost_s() -> float:
        return turn_s(spec, 4, rate, 1000, 300.0)

    benchmark(cost_s)
    assert in_events(cost_s) < 40.0


@pytest.mark.slow
def test_an_aggregated_worker_costs_seventy_plain_events_a_turn_at_most(benchmark: BenchmarkFixture) -> None:
    spec = configuration("b", Role.AGGREGATED, slots=64, kv_capacity_tokens=400_000, chunk_tokens=2048)

    def cost_s() -> float:
        return turn_s(spec, 16, 40.0, 1024, 127.0)

    benchmark(cost_s)
    assert in_events(cost_s) < 70.0


@pytest.mark.slow
@pytest.mark.parametrize("flows", [10, 1_000])
def test_joining_and_leaving_a_link_costs_a_dozen_plain_events_however_many_share_it(
    benchmark: BenchmarkFixture, flows: int
) -> None:
    sizes = np.random.default_rng(2).exponential(1.0, 4096).tolist()

    def cost_s() -> float:
        async def main(clock: VirtualClock) -> float:
            link, ended = SharedLink(clock, 1.0), 0

            def again(_: Any) -> None:
                nonlocal ended
                ended += 1
                join(clock, link, sizes[ended & 4095], again, None)

            for k in range(flows):
                join(clock, link, sizes[k & 4095], again, None)
            began = time.process_time()
            await clock.sleep_until(20_000.0)
            assert ended > 15_000
            return (time.process_time() - began) / ended

        return run_virtual(main)

    benchmark(cost_s)
    assert in_events(cost_s) < 12.0


@pytest.mark.slow
def test_ten_thousand_workers_cost_at_most_twice_a_hundred_a_turn() -> None:
    spec = configuration("b", Role.AGGREGATED, slots=64, kv_capacity_tokens=400_000, chunk_tokens=2048)
    few, many = (best_of(2, lambda n=n: turn_s(spec, n, 2.5 * n, 1024, 127.0)) for n in (100, 10_000))
    assert many < 2.0 * few
