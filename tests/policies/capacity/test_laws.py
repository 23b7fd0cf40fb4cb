"""Capacity laws in a world of pure arithmetic, against the closed forms of the design room."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.messages import CapacityCommand, CapacityReading, DemandCommand
from orchestrator.ports import Every
from policies.capacity.hpa import Hpa
from policies.capacity.mpc import Mpc
from policies.capacity.planner import Planner
from policies.capacity.queue_model import QueueModel
from policies.design import capacity
from scenarios.conformance.readings import pool, steady

TICK_S = 15.0
UNIT = 1000  # turns that are one worker's load
EVERY = Every(period_s=TICK_S)


def path(law: Any, need: Callable[[int], float], *, start: int, ticks: int, delay: int = 0) -> list[int]:
    """Return the workers asked for, tick by tick; what is asked serves `delay` ticks later and all is granted."""
    asked = [start] * (delay + 1)
    for k in range(ticks):
        serving = asked[-1 - delay]
        y = cast(CapacityReading, steady("capacity", k, TICK_S, 0.5))
        turns = round(need(k) * UNIT)
        decode = pool("decode", workers=serving, load=0.5, rate_per_s=1.0, at_s=k * TICK_S)._replace(
            busy_slots=turns,
            slots=10 * UNIT * serving,
            queued_turns=0,
            pending_workers=max(0, asked[-1] - serving),
        )
        pools = {**y.pools, decode.configuration: decode}
        applied = CapacityCommand(target_workers={decode.configuration: asked[-1]})
        command = law.act(replace(y, pools=pools, backlog_turns=0, ready_turns=0, applied=applied))
        asked.append(command.target_workers[decode.configuration])
    return asked[delay:]


def hpa(**more: Any) -> Hpa:
    options = {"configuration": "decode", "measure": "turns", "target": UNIT, "most_workers": 10_000}
    return Hpa(EVERY, **{"down_window_s": 0.0, "up_workers": 10_000, **options, **more})


def test_counting_what_is_on_its_way_is_deadbeat_for_any_delay() -> None:
    for delay in (0, 1, 2, 4):
        workers = path(hpa(), lambda k: 8.0, start=4, ticks=12, delay=delay)
        assert workers[1:] == [8] * 12


def test_blind_to_one_tick_it_goes_round_for_ever_as_the_gain_says() -> None:
    workers = path(hpa(pending_aware=False), lambda k: 8.0, start=4, ticks=24, delay=1)
    theory = capacity.ceiling_path(need_workers=8.0, start_workers=4, unseen_ticks=1, ticks=24)
    assert capacity.critical_gain(1) == pytest.approx(1.0)
    assert workers[:24] == theory
    assert max(workers) == 16


def thresholds(up: float, down: float, **more: Any) -> Planner:
    options = {"configuration": "decode", "measure": "turns", "most_workers": 64}
    return Planner(EVERY, up=up * UNIT, down=down * UNIT, **{**options, **more})


def reversals(workers: list[int]) -> int:
    moves = [b - a for a, b in itertools.pairwise(workers) if a != b]
    return sum(a * b < 0 for a, b in itertools.pairwise(moves))


def test_the_flat_pair_alternates_at_the_load_of_the_report() -> None:
    workers = path(
        thresholds(1.0, 0.6, consolidation=False, observe_only=False), lambda k: 1.18, start=2, ticks=9, delay=0
    )
    assert workers == [2, 1, 2, 1, 2, 1, 2, 1, 2, 1]
    assert not capacity.steps_never_chatter(0.6, 1.0, 2)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.floats(0.05, 20.0), st.floats(0.1, 0.99), st.integers(1, 20))
def test_the_consolidation_test_rests_at_every_constant_load(load: float, down: float, start: int) -> None:
    workers = path(thresholds(1.0, down), lambda k: load, start=start, ticks=60)
    assert reversals(workers) == 0
    assert len(set(workers[-20:])) == 1


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.floats(0.5, 10.0), st.floats(0.05, 0.95), st.integers(2, 10))
def test_a_flat_pair_chatters_only_where_the_rule_says_it_may(load: float, down: float, start: int) -> None:
    workers = path(
        thresholds(1.0, down, consolidation=False, observe_only=False), lambda k: load, start=start, ticks=80
    )
    if reversals(workers[40:]) > 1:
        assert not capacity.steps_never_chatter(down, 1.0, max(workers[40:]))


def test_a_pool_is_given_up_only_after_the_cost_of_a_flip_has_been_waited_out() -> None:
    law = thresholds(1.0, 0.9, flip_s=4 * TICK_S)
    workers = path(law, lambda k: 1.0, start=3, ticks=12)
    assert workers[:5] == [3, 3, 3, 3, 3]
    assert workers[5] == 2


def test_the_floor_follows_the_forecast() -> None:
    law = thresholds(1.0, 0.5, service_per_worker_per_s=2.0, headroom_ratio=0.5)
    y = cast(CapacityReading, steady("capacity", 1, TICK_S, 0.6))
    command = law.act(replace(y, setpoint=DemandCommand(forecast_per_s=30.0)))
    assert command.target_workers is not None
    assert list(command.target_workers.values()) == [30]


def test_the_queue_model_gives_the_fewest_workers_that_meet_the_wait() -> None:
    law = QueueModel(EVERY, configurations=("decode",), wait_s=0.5, most_workers=1000, tau_s=0.0)
    y = cast(CapacityReading, steady("capacity", 1, TICK_S, 1.0))  # 40 turns/s, 4 turns/s a worker
    command = law.act(replace(y, pools={n: p._replace(active_workers=1) for n, p in y.pools.items()}))
    assert command.target_workers is not None
    (n,) = command.target_workers.values()

    def wait_s(workers: int) -> float:
        rho = 40.0 / (4.0 * workers)
        return rho / (1.0 - rho) / 4.0 if rho < 1.0 else float("inf")

    assert wait_s(n) <= 0.5 < wait_s(n - 1)


def test_the_horizon_plans_ahead_of_its_delay_and_does_not_hunt() -> None:
    law = Mpc(EVERY, configuration="decode", most_workers=50, delay_ticks=2, service_per_worker_per_s=4.0, tau_s=0.0)
    workers = path(law, lambda k: 5.0, start=4, ticks=30, delay=2)  # 20 turns/s over 4 at 0.8: 6.25 workers
    assert workers[-1] == workers[-10]
    assert 6 <= workers[-1] <= 7
    assert reversals(workers) == 0
