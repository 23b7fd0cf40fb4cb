"""What a cluster may be made of."""

from __future__ import annotations

import math

import pytest

from orchestrator.messages import Role
from orchestrator.virtual_clock import VirtualClock, run_virtual
from plant.cluster_spec import PoolSpec, RackSpec, lay_out
from plant.faults import FaultSpec
from plant.hidden_turns import HiddenTurns
from tests.plant.factory import cluster, configuration


def pool(name: str, workers: int) -> PoolSpec:
    return PoolSpec(configuration=configuration(name, Role.DECODE).name, workers=workers)


def test_pools_fill_the_racks_places_in_order() -> None:
    racks = [RackSpec(count=2, workers=2, uplink_bytes_per_s=1.0), RackSpec(count=1, workers=3, uplink_bytes_per_s=1.0)]
    assert lay_out(racks, [pool("a", 3), pool("b", 3)]) == [0, 0, 1, 1, 2, 2]


def test_more_workers_than_places_are_refused_in_one_line() -> None:
    racks = [RackSpec(count=2, workers=2, uplink_bytes_per_s=1.0)]
    with pytest.raises(ValueError, match="hold 5 workers, but the racks have 4 places"):
        lay_out(racks, [pool("a", 5)])


def test_a_pool_of_an_unprepared_configuration_is_refused() -> None:
    async def main(clock: VirtualClock) -> None:
        with pytest.raises(ValueError, match="no such configuration"):
            cluster(clock, HiddenTurns(), (configuration("a", Role.DECODE), 1)).__init__(  # type: ignore[misc]
                clock, HiddenTurns(), racks=[], configurations=[], pools=[pool("b", 1)]
            )

    run_virtual(main)


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"role": Role.DECODE, "slots": None}, "unlimited"),
        ({"role": Role.DECODE, "times": None}, "recorded times"),
        ({"role": Role.FILL, "slots": 2}, "slots must be 1"),
    ],
)
def test_contradictory_configurations_are_refused(settings: dict[str, object], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        configuration("x", **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"kind": "lost"}, "names its worker"),
        ({"kind": "link_down", "worker": 1}, "names its rack"),
        ({"kind": "slowed", "worker": 1, "factor": 0.5}, "slowdown"),
        ({"kind": "lost", "worker": 1, "until_s": 0.5}, "cannot end"),
    ],
)
def test_contradictory_faults_are_refused(settings: dict[str, object], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        FaultSpec(at_s=1.0, **settings)  # type: ignore[arg-type]


def test_faults_of_things_that_are_not_there_are_refused() -> None:
    async def main(clock: VirtualClock) -> None:
        for fault in (
            FaultSpec(kind="lost", at_s=1.0, worker=9),
            FaultSpec(kind="link_down", at_s=1.0, rack=3, factor=math.inf),
        ):
            with pytest.raises(ValueError, match=r"fault at 1 s: (worker 9|rack 3) of 1"):
                cluster(clock, HiddenTurns(), (configuration("a", Role.DECODE), 1), faults=[fault])

    run_virtual(main)
