"""Flips between configurations: whole or not at all, within dwell and budget, tried again or rolled back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from orchestrator.errors import LoadFailed, WorkerLost
from orchestrator.messages import CapacityCommand, Role
from orchestrator.ports import Ready, WorkerInfo
from orchestrator.reconfigure import ReconfigureSpec, State, WorkerLifecycle
from orchestrator.turn import ConfigurationName, WorkerId

ROLES = {"fill": Role.FILL, "decode": Role.DECODE, "spare": Role.IDLE}


class HandClock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def now(self) -> float:
        return self.now_s


class HandPlant:
    """Loads at once, after failing as often as it is told."""

    def __init__(self, failures: int = 0, error: type[Exception] = LoadFailed) -> None:
        self.failures, self.error = failures, error
        self.asked: list[tuple[int, str]] = []
        self.epochs: dict[int, int] = {}

    async def reconfigure(self, worker: WorkerId, to: ConfigurationName) -> Ready:
        self.asked.append((worker, to))
        if self.failures:
            self.failures -= 1
            raise self.error("did not come up")
        self.epochs[worker] = self.epochs.get(worker, 0) + 1
        return Ready(info(worker, to, self.epochs[worker]))


class Events:
    def __init__(self) -> None:
        self.said: list[dict[str, Any]] = []

    def event(self, kind: str, at_s: float, **fields: Any) -> None:
        self.said.append({"kind": kind, "at_s": at_s, **fields})


def info(worker: int, configuration: str, epoch: int = 0) -> WorkerInfo:
    name = ConfigurationName(configuration)
    return WorkerInfo(WorkerId(worker), 0, name, ROLES[configuration], 4, 1, epoch)


class House:
    """A roster with two fill, two decode and two spare workers, whose flips run when `settle` is called."""

    def __init__(self, plant: HandPlant | None = None, **limits: Any) -> None:
        self.clock, self.plant, self.events = HandClock(), plant or HandPlant(), Events()
        self.joined: list[WorkerInfo] = []
        self.flights: list[Any] = []
        self.drained = 0
        spec = ReconfigureSpec(**limits)
        self.roster = WorkerLifecycle(
            self.clock,  # type: ignore[arg-type]  # only `now` is asked of it
            self.plant,  # type: ignore[arg-type]  # only `reconfigure`
            self.events,  # type: ignore[arg-type]  # only `event`
            spec,
            self._drain,
            self.joined.append,
            self.flights.append,
        )
        for worker, name in enumerate(("fill", "fill", "decode", "decode", "spare", "spare")):
            self.roster.joined(info(worker, name))

    async def _drain(self, _: WorkerInfo) -> None:
        self.drained += 1

    def want(self, **targets: int) -> dict[str, int]:
        applied = self.roster.apply(
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
        found: dict[str, int] = {}
        for member in self.roster.members.values():
            if member.state is State.ACTIVE:
                found[member.info.configuration] = found.get(member.info.configuration, 0) + 1
        return found


def test_a_rebalance_moves_surplus_to_deficit_and_drains_first() -> None:
    house = House()
    assert house.want(fill=1, decode=3) == {"fill": 1, "decode": 3, "spare": 2}
    house.settle()
    assert house.active() == {"fill": 1, "decode": 3, "spare": 2}
    assert house.drained == 1


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
    assert house.roster.flips == 0
    assert house.roster.refused == 3
    assert len([e for e in house.events.said if e["kind"] == "reconfigure_refused"]) == 1


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
    assert house.roster.flips == 3
    house.clock.now_s = 3600.0 + 180.0
    house.want(decode=2)
    house.want(decode=3)
    house.settle()
    assert house.roster.flips > 3


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
    moved = house.roster.members[WorkerId(house.plant.asked[0][0])]
    if end is None:
        assert moved.state is State.LOST
    else:
        assert moved.info.configuration == end
        assert moved.state is State.ACTIVE
    assert house.roster.rolled_back == (end != "decode")


def test_a_worker_lost_while_loading_is_struck() -> None:
    house = House(HandPlant(1, WorkerLost))
    house.want(fill=1, decode=3)
    house.settle()
    assert sum(house.roster.counts().values()) == 5


def test_a_flip_of_ours_is_no_news_when_the_plant_reports_it() -> None:
    house = House()
    house.want(fill=1, decode=3)
    house.settle()
    before = len(house.joined)
    worker = house.plant.asked[0][0]
    house.roster.joined(info(worker, "decode", house.plant.epochs[worker]))
    assert len(house.joined) == before


def test_going_back_counts_as_a_flap_and_a_reversal() -> None:
    house = House(reserve="spare")
    house.want(decode=3)
    house.settle()
    house.want(decode=2)
    house.settle()
    assert (house.roster.flips, house.roster.reversals) == (2, 1)
