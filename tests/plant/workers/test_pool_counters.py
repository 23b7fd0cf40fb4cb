"""Caps: the plant clips what a batching law asks for, configuration by configuration, and says what is in force."""

from __future__ import annotations

import pytest

from orchestrator.messages import BatchCommand, Role
from orchestrator.turn import ConfigurationName
from orchestrator.virtual_clock import VirtualClock, run_virtual
from plant.cluster import Cluster
from plant.cluster_spec import ConfigurationSpec
from tests.plant.factory import Turns, cluster, configuration

FILL = configuration("fill", Role.FILL, slots=1, chunk_tokens=256)
NARROW = configuration("narrow", Role.DECODE, slots=4)
WIDE = configuration("wide", Role.AGGREGATED, slots=16)
ENDLESS = configuration("endless", Role.AGGREGATED, times=None, slots=None)
DECODING: tuple[ConfigurationSpec, ...] = (NARROW, WIDE, ENDLESS)


def mixed(clock: VirtualClock) -> Cluster:
    return cluster(clock, Turns().hidden, (FILL, 1), *((spec, 1) for spec in DECODING))


@pytest.mark.parametrize("asked", [-3, 0, 1, 4, 5, 16, 17, 40])
@pytest.mark.parametrize("named", [None, *DECODING])
def test_a_cap_is_clipped_to_the_slots_of_each_configuration_it_concerns(
    asked: int, named: ConfigurationSpec | None
) -> None:
    async def main(clock: VirtualClock) -> None:
        name = None if named is None else named.name
        command = BatchCommand(configuration=name, batch_cap_turns=asked, load_setpoint_turns=3.0)
        applied = mixed(clock).apply(command)
        concerned = DECODING if named is None else (named,)
        caps = {spec.name: max(1, asked if spec.slots is None else min(asked, spec.slots)) for spec in concerned}
        assert applied.slots == caps
        assert applied.command == BatchCommand(
            configuration=name, batch_cap_turns=max(caps.values()), load_setpoint_turns=3.0
        )
        assert applied.clipped == (set(caps.values()) != {asked})

    run_virtual(main)


def test_what_only_fills_has_no_batch_to_cap() -> None:
    async def main(clock: VirtualClock) -> None:
        plant = mixed(clock)
        applied = plant.apply(BatchCommand(configuration=FILL.name, batch_cap_turns=3, chunk_cap_tokens=100))
        assert applied == (BatchCommand(configuration=FILL.name, chunk_cap_tokens=100), True, {})
        assert plant.pools[FILL.name].chunk_cap == 100

    run_virtual(main)


def test_a_worker_that_joins_has_the_slots_in_force_and_not_all_of_its_own() -> None:
    async def main(clock: VirtualClock) -> list[tuple[ConfigurationName, int | None]]:
        plant = mixed(clock)
        worker = next(fact.info.worker for fact in plant.facts() if fact.info and fact.info.configuration == "narrow")
        plant.apply(BatchCommand(batch_cap_turns=7))
        await plant.reconfigure(worker, WIDE.name)
        plant.apply(BatchCommand(batch_cap_turns=99))
        await plant.reconfigure(worker, FILL.name)
        await plant.reconfigure(worker, ENDLESS.name)
        # What a fact says was in force when the worker joined, however late it is read.
        return [(fact.info.configuration, fact.info.slots) for fact in plant.facts() if fact.info is not None]

    assert run_virtual(main) == [("wide", 7), ("fill", 1), ("endless", 99)]
