"""The cluster against known answers: recorded service times, and a queue of fill workers."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import numpy as np
import pytest

from orchestrator.errors import SteadyflowError
from orchestrator.messages import Role
from orchestrator.turn import WorkerId
from orchestrator.virtual_clock import VirtualClock, run_virtual
from plant.cluster_spec import ConfigurationSpec
from plant.model.times import LinearTimes
from tests.plant.factory import ANY, DECODE, W0, Turns, cluster, configuration, fill_and_decode


def recorded(**changes: Any) -> ConfigurationSpec:
    return configuration("replay", Role.AGGREGATED, times=None, **changes)


@pytest.mark.parametrize(("slots", "ends"), [(None, [3.0, 2.0, 1.0]), (1, [3.0, 5.0, 6.0])])
def test_recorded_turns_take_their_recorded_time(slots: int | None, ends: list[float]) -> None:
    async def main(clock: VirtualClock) -> list[float]:
        turns = Turns()
        plant = cluster(clock, turns.hidden, (recorded(slots=slots), 1))
        batch = [turns.make(100, 5, service_s=s) for s in (3.0, 2.0, 1.0)]
        return [last for _, last in await asyncio.gather(*(fill_and_decode(plant, turn, W0, W0) for turn in batch))]

    assert run_virtual(main) == ends


def test_a_recorded_plant_refuses_a_turn_without_a_recorded_time() -> None:
    async def main(clock: VirtualClock) -> None:
        turns = Turns()
        plant = cluster(clock, turns.hidden, (recorded(slots=None), 1))
        with pytest.raises(SteadyflowError, match="turn 0 has no recorded server time"):
            await fill_and_decode(plant, turns.make(10, 5), W0, W0)

    run_virtual(main)


@pytest.mark.slow
def test_fill_workers_fed_from_one_line_are_an_m_g_n_queue() -> None:
    """Mean wait against Erlang's C times the Allen-Cunneen factor (c_a^2 + c_s^2) / 2; exact for M/M/N."""
    n, rho, count = 4, 0.8, 60_000
    flat = LinearTimes(base_s=0.0, per_sequence_s=0.0, per_kv_token_s=0.0, per_new_token_s=1e-4)
    spec = configuration("fill", Role.FILL, times=flat, chunk_tokens=10**9)
    rng = np.random.default_rng(3)
    lengths = np.maximum(1, rng.exponential(1000.0, count)).astype(int)
    mean_s = lengths.mean() * 1e-4
    at = np.cumsum(rng.exponential(mean_s / (rho * n), count))

    async def main(clock: VirtualClock) -> tuple[float, float]:
        turns = Turns()
        plant = cluster(clock, turns.hidden, (spec, n), (DECODE, 1))
        idle, line, waits = list(range(n)), list[int](), [0.0] * count
        inside = 0.0

        def serve() -> None:
            while idle and line:
                worker, i = idle.pop(), line.pop(0)
                waits[i] = clock.now() - at[i]
                fill = plant.fill(WorkerId(worker), turns.make(int(lengths[i]), 1), ANY)
                fill.add_done_callback(lambda _, worker=worker: (idle.append(worker), serve()))

        for i in range(count):
            await clock.sleep_until(float(at[i]))
            inside += n - len(idle)
            line.append(i)
            serve()
        await clock.sleep_until(float(at[-1]) + 100.0)
        return float(np.mean(waits)), inside / count

    wait, busy = run_virtual(main)
    load = rho * n
    tail = load**n / math.factorial(n) / (1 - rho)
    erlang_c = tail / (sum(load**k / math.factorial(k) for k in range(n)) + tail)
    assert wait == pytest.approx(erlang_c * mean_s / (n * (1 - rho)), rel=0.08)
    assert busy == pytest.approx(load, rel=0.02)  # arrivals see time averages, and those are rho N
