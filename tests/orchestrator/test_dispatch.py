"""Lines in front of pools, and what routers see: who may pass whom, and how old news is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.dispatch import LOOK_AHEAD, Pool
from orchestrator.ledger import Turn
from orchestrator.messages import Role
from orchestrator.ports import PoolView, WorkerInfo
from orchestrator.turn import EMPTY_CHAIN, ClassName, ConfigurationName, TurnId, TurnView, WorkerId
from orchestrator.virtual_clock import VirtualClock, run_virtual
from orchestrator.worker import Worker
from plant.hidden_turns import HiddenTurns
from plant.theory.tandem import Residence, Tandem
from policies.routing.context_class import ContextClass
from policies.routing.least_loaded import LeastLoaded

SHORT, LONG = 100, 50_000


class House:
    """A pool of workers with one slot each: `short` ones, then `long` ones."""

    def __init__(
        self, clock: VirtualClock, routers: Any, shorts: int = 1, longs: int = 1, snapshot_s: float | None = None
    ) -> None:
        plant = Tandem(clock, HiddenTurns(), slots=1, dead_time_s=1.0, residence=Residence(mean_s=1.0))
        self.pool = Pool(clock, plant, routers, snapshot_s)
        self.born = 0
        names = ["short"] * shorts + ["long"] * longs
        self.workers = []
        for number, name in enumerate(names):
            info = WorkerInfo(WorkerId(number), 0, ConfigurationName(name), Role.DECODE, 1, 0, 0)
            worker = Worker(clock, plant, info)
            worker.activate(info)
            self.workers.append(worker)
            self.pool.join(worker)

    def turn(self, tokens: int, key: int | None = None) -> Turn:
        self.born += 1
        number = self.born if key is None else key
        turn_id = TurnId(self.born)
        return Turn(TurnView(turn_id, number, ClassName("chat"), 0, 0, 0.0, tokens, EMPTY_CHAIN), turn_id, tokens, 0)


def classes() -> ContextClass:
    return ContextClass(bounds_tokens=[1000], configurations=[["short"], ["long"]], spill=False)


def test_a_turn_that_waits_for_its_own_workers_holds_up_no_others() -> None:
    async def main(clock: VirtualClock) -> None:
        house = House(clock, [classes()])
        pool = house.pool
        first = house.turn(LONG)
        assert pool.place(first) is house.workers[1]
        second, third = house.turn(LONG), house.turn(SHORT)
        assert pool.place(second) is None
        waits = pool.line_up(second)
        assert pool.place(third) is house.workers[0], "the short worker is free"
        fourth = house.turn(SHORT)
        assert pool.place(fourth) is None
        also = pool.line_up(fourth)
        house.workers[0].free(third)
        assert also.result() is house.workers[0]
        assert not waits.done()
        house.workers[1].free(first)
        assert waits.result() is house.workers[1]

    run_virtual(main)


class Asked(LeastLoaded):
    def __init__(self) -> None:
        super().__init__()
        self.times = 0

    def choose(self, turn: TurnView, pool: PoolView) -> WorkerId | None:
        self.times += 1
        return super().choose(turn, pool)


def test_where_one_worker_is_as_good_as_another_the_line_is_first_come_first_served() -> None:
    async def main(clock: VirtualClock) -> None:
        router = Asked()
        house = House(clock, [router], shorts=2, longs=0)
        pool = house.pool
        inside = [house.turn(SHORT) for _ in range(2)]
        for turn in inside:
            assert pool.place(turn) is not None
        waits = [pool.line_up(house.turn(SHORT)) for _ in range(40)]
        assert pool.place(house.turn(SHORT)) is None
        router.times = 0
        pool.serve()
        assert router.times == 1, "a full pool is full for all"
        house.workers[0].free(inside[0])
        assert [wait.done() for wait in waits] == [True] + [False] * 39

    run_virtual(main)


@given(st.lists(st.sampled_from([SHORT, LONG]), min_size=1, max_size=40), st.lists(st.booleans(), max_size=60))
def test_turns_of_one_class_never_pass_each_other(tokens: list[int], leaves: list[bool]) -> None:
    async def main(clock: VirtualClock) -> None:
        house = House(clock, [classes()])
        pool, inside = house.pool, dict[WorkerId, Turn]()
        given_to: list[Turn] = []
        waiting: list[tuple[Turn, Any]] = []

        def settle() -> None:
            for turn, wait in list(waiting):
                if wait.done():
                    waiting.remove((turn, wait))
                    inside[wait.result().id] = turn
                    given_to.append(turn)

        for size in tokens:
            turn = house.turn(size)
            worker = pool.place(turn)
            if worker is None:
                waiting.append((turn, pool.line_up(turn)))
            else:
                inside[worker.id] = turn
                given_to.append(turn)
        for long in leaves:
            worker = house.workers[int(long)]
            if worker.id in inside:
                worker.free(inside.pop(worker.id))
                settle()
        for size in (SHORT, LONG):
            order = [turn.view.turn_id for turn in given_to if turn.view.prompt_tokens == size]
            assert order == sorted(order)
        if len(tokens) <= LOOK_AHEAD:
            for size, worker in ((SHORT, house.workers[0]), (LONG, house.workers[1])):
                assert worker.id in inside or not [t for t, _ in waiting if t.view.prompt_tokens == size]

    run_virtual(main)


def test_a_router_with_an_old_view_sees_old_tokens_too_and_its_own_since() -> None:
    async def main(clock: VirtualClock) -> None:
        house = House(clock, [LeastLoaded(), LeastLoaded()], shorts=2, longs=0, snapshot_s=10.0)
        mine, other = house.pool._views
        theirs = house.turn(700, key=1)  # hashed to the second router
        worker = house.pool.place(theirs)
        assert worker is not None
        assert worker.load_tokens == 700
        assert (mine.view(worker.id).load_turns, mine.view(worker.id).load_tokens) == (0, 0), "it has not heard"
        assert (other.view(worker.id).load_turns, other.view(worker.id).load_tokens) == (1, 700), "it gave it"
        await clock.sleep_until(16.0)
        assert mine.view(worker.id).load_tokens == 700

    run_virtual(main)


@pytest.mark.parametrize("routers", [1, 2])
def test_only_routers_apart_are_looked_at_beyond_the_head(routers: int) -> None:
    async def main(clock: VirtualClock) -> None:
        house = House(clock, [LeastLoaded() for _ in range(routers)], shorts=2, longs=0, snapshot_s=10.0)
        assert (house.pool._looks > 1) == (routers > 1)

    run_virtual(main)
