"""Flips between configurations: whole or not at all, within dwell and budget, tried again or rolled back."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from orchestrator.errors import InvalidTransition, LoadFailed, WorkerLost
from orchestrator.levels import TimeWeightedLevel
from orchestrator.messages import CapacityCommand, Role
from orchestrator.ports import PlantFact, WorkerInfo
from orchestrator.reconfigure import ReconfigureSpec, WorkerLifecycle
from orchestrator.turn import ConfigurationName, WorkerId
from orchestrator.worker import TRANSITIONS, State, Worker
from orchestrator.worker_registry import WorkerRegistry

ROLES = {"fill": Role.FILL, "decode": Role.DECODE, "spare": Role.IDLE}


class HandClock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def now(self) -> float:
        return self.now_s

    def future(self) -> asyncio.Future[Any]:
        return asyncio.get_running_loop().create_future()


class HandPlant:
    """Loads at once, after failing as often as `failures` says; it has two fill, two decode and two spare workers."""

    def __init__(self, failures: int = 0, error: type[Exception] = LoadFailed) -> None:
        self.failures, self.error = failures, error
        self.asked: list[tuple[int, str]] = []
        self.epochs: dict[int, int] = {}
        self._facts: list[PlantFact] = []
        self.heard: Callable[[], None] = lambda: None
        for worker, name in enumerate(("fill", "fill", "decode", "decode", "spare", "spare")):
            self.announce("joined", worker, name)

    async def reconfigure(self, worker: WorkerId, to: ConfigurationName) -> None:
        self.asked.append((worker, to))
        if self.failures:
            self.failures -= 1
            raise self.error("did not come up")
        self.epochs[worker] = self.epochs.get(worker, 0) + 1
        self.announce("joined", worker, to)
        self.heard()

    def announce(self, kind: Any, worker: int, name: str) -> None:
        self._facts.append(PlantFact(kind, 0.0, info(worker, name, self.epochs.get(worker, 0)), name))

    def facts(self) -> Iterator[PlantFact]:
        facts, self._facts = self._facts, []
        return iter(facts)


class Events:
    """A recorder that keeps events."""

    def __init__(self) -> None:
        self.all: list[dict[str, Any]] = []
        self.workers, self.slots, self.standing_slots = (TimeWeightedLevel() for _ in range(3))

    def event(self, kind: str, at_s: float, **fields: Any) -> None:
        self.all.append({"kind": kind, "at_s": at_s, **fields})


def info(worker: int, configuration: str, epoch: int = 0) -> WorkerInfo:
    name = ConfigurationName(configuration)
    return WorkerInfo(WorkerId(worker), 0, name, ROLES[configuration], 4, 1, epoch)


class House:
    """Six workers whose flips run when `settle` is called."""

    def __init__(self, plant: HandPlant | None = None, **limits: Any) -> None:
        clock: Any = HandClock()  # Any: only as much of a clock, a plant and a recorder as is asked for here
        hand_plant: Any = plant or HandPlant()
        events: Any = Events()
        self.clock, self.plant, self.events = clock, hand_plant, events
        self.flights: list[Any] = []
        self.drained: list[WorkerId] = []
        self.registry = WorkerRegistry(clock, hand_plant, events, {})
        self.lifecycle = WorkerLifecycle(
            clock, hand_plant, events, ReconfigureSpec(**limits), self.registry, self._empty, self.flights.append
        )
        self.registry.update()
        hand_plant.heard = self.registry.update

    def _empty(self, worker: Worker) -> None:
        self.drained.append(worker.id)

    def want(self, **targets: int) -> dict[str, int]:
        applied = self.lifecycle.apply(
            CapacityCommand(target_workers={ConfigurationName(k): n for k, n in targets.items()})
        )
        assert applied.target_workers is not None
        return {str(k): n for k, n in applied.target_workers.items()}

    def settle(self) -> None:
        async def all_of() -> None:
            flights, self.flights[:] = list(self.flights), []
            for flight in flights:
                await flight

        asyncio.run(all_of())

    def active(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for worker in self.registry.workers.values():
            if worker.state is State.ACTIVE:
                counts[worker.info.configuration] = counts.get(worker.info.configuration, 0) + 1
        return counts


def test_a_rebalance_moves_surplus_to_deficit_and_drains_first() -> None:
    house = House()
    assert house.want(fill=1, decode=3) == {"fill": 1, "decode": 3, "spare": 2}
    house.settle()
    assert house.active() == {"fill": 1, "decode": 3, "spare": 2}
    assert len(house.drained) == 1


def test_the_reserve_gives_and_takes_what_a_command_leaves_open() -> None:
    house = House(reserve="spare")
    house.want(decode=4)
    house.settle()
    assert house.active() == {"fill": 2, "decode": 4}
    house.want(decode=1)
    house.settle()
    assert house.active() == {"fill": 2, "decode": 1, "spare": 3}


def test_more_than_exists_begins_nothing_and_is_said_once() -> None:
    house = House(reserve="spare")
    for _ in range(3):
        assert house.want(decode=9)["decode"] == 2
    assert house.lifecycle.flips == 0
    assert house.lifecycle.refused == 3
    assert len([e for e in house.events.all if e["kind"] == "reconfigure_refused"]) == 1


def test_without_atomic_as_much_is_done_as_can_be() -> None:
    house = House(reserve="spare", atomic=False)
    assert house.want(decode=9)["decode"] == 4
    house.settle()


def test_no_worker_flips_twice_within_its_dwell() -> None:
    house = House(reserve="spare", dwell_s=100.0)
    house.want(decode=4)
    house.settle()
    house.clock.now_s = 50.0
    house.want(decode=1)
    assert house.flights == [], "two of the four have not rested, and the plan is whole or nothing"
    house.clock.now_s = 100.0
    house.want(decode=1)
    assert len(house.flights) == 3
    house.settle()


def test_the_flap_budget_bounds_starts_in_any_hour() -> None:
    house = House(reserve="spare", flips_per_hour=3)
    for k in range(8):
        house.clock.now_s = 60.0 * k
        house.want(decode=3 if k % 2 == 0 else 2)
        house.settle()
    assert house.lifecycle.flips == 3
    house.clock.now_s = 3600.0 + 180.0
    house.want(decode=2)
    house.want(decode=3)
    house.settle()
    assert house.lifecycle.flips > 3


def test_pending_workers_are_bounded() -> None:
    house = House(reserve="spare", max_pending_workers=1, atomic=False)
    house.want(decode=4)
    assert len(house.flights) == 1
    house.settle()


@pytest.mark.parametrize(("failures", "attempts", "end"), [(1, 2, "decode"), (2, 2, "fill"), (9, 2, None)])
def test_a_failed_load_is_tried_again_then_rolled_back_then_given_up(
    failures: int, attempts: int, end: str | None
) -> None:
    house = House(HandPlant(failures), attempts=attempts)
    house.want(fill=1, decode=3)
    house.settle()
    moved = house.registry.workers[WorkerId(house.plant.asked[0][0])]
    if end is None:
        assert moved.state is State.ABSENT
    else:
        assert moved.info.configuration == end
        assert moved.state is State.ACTIVE
    assert house.lifecycle.rolled_back == (end != "decode")


def test_a_worker_lost_while_loading_is_struck() -> None:
    house = House(HandPlant(1, WorkerLost))
    house.want(fill=1, decode=3)
    house.settle()
    assert sum(house.lifecycle.counts().values()) == 5


def test_a_change_is_announced_once_and_by_the_plant() -> None:
    house = House()
    house.want(fill=1, decode=3)
    house.settle()
    house.registry.update()
    worker = house.plant.asked[0][0]
    joined = [event for event in house.events.all if event["kind"] == "fact" and event["detail"] == "decode"]
    assert len(joined) == 3, "the two that were there, and the one that changed"
    assert house.registry.workers[WorkerId(worker)].came_from == "fill"


def test_a_worker_that_comes_back_is_rested_and_came_from_nowhere() -> None:
    house = House(reserve="spare", dwell_s=100.0)
    house.want(decode=3)
    house.settle()
    worker = WorkerId(house.plant.asked[0][0])
    house.plant.announce("lost", worker, "decode")
    house.plant.announce("lost", worker, "decode")  # struck again while it is away: no news
    house.registry.update()
    assert house.registry.workers[worker].state is State.ABSENT
    house.plant.announce("joined", worker, "decode")
    house.registry.update()
    back = house.registry.workers[worker]
    assert (back.state, back.came_from, back.changed_s) == (State.ACTIVE, None, -math.inf)


def test_a_worker_lost_while_it_drains_is_not_loaded() -> None:
    house = House()
    house.want(fill=1, decode=3)
    worker = next(w for w in house.registry.workers.values() if w.target != w.info.configuration)
    worker.load_turns = 1  # a turn that would keep it draining
    house.plant.announce("lost", worker.id, "fill")

    async def lose() -> None:
        flight = asyncio.ensure_future(house.flights.pop())
        await asyncio.sleep(0)
        assert worker.state is State.DRAINING
        house.registry.update()
        await flight

    asyncio.run(lose())
    assert house.plant.asked == []
    assert worker.state is State.ABSENT
    assert sum(house.lifecycle.counts().values()) == 5


@pytest.mark.parametrize("start", State)
@pytest.mark.parametrize("to", State)
def test_only_the_moves_of_the_table_are_allowed_and_another_tells_the_story(start: State, to: State) -> None:
    clock: Any = HandClock()
    worker = Worker(clock, clock, info(3, "fill"))  # its plant is not asked
    moves: dict[State, Callable[[], None]] = {
        State.ACTIVE: lambda: worker.activate(info(3, "fill")),
        State.DRAINING: worker.drain,
        State.LOADING: worker.load,
        State.ABSENT: worker.lose,
    }
    way: dict[State, list[State]] = {
        State.ABSENT: [],
        State.ACTIVE: [State.ACTIVE],
        State.DRAINING: [State.ACTIVE, State.DRAINING],
        State.LOADING: [State.ACTIVE, State.DRAINING, State.LOADING],
    }
    for state in way[start]:
        moves[state]()
    if to in TRANSITIONS[start]:
        moves[to]()
        assert worker.state is to
        assert worker.active == (to is State.ACTIVE)
    else:
        with pytest.raises(InvalidTransition, match=f"worker 3 may not go from {start} to {to}"):
            moves[to]()
        assert worker.state is start


def test_going_back_counts_as_a_flap_and_a_reversal() -> None:
    house = House(reserve="spare")
    house.want(decode=3)
    house.settle()
    house.want(decode=2)
    house.settle()
    assert (house.lifecycle.flips, house.lifecycle.reversals) == (2, 1)
