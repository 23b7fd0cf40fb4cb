"""A plant on which no turn could be served from its first stage to its last: refused before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.signals import DECODES, FILLS
from scenarios.schema.plants import ClusterPlant

if TYPE_CHECKING:
    from scenarios.schema.scenario import Scenario


def refuse_unable_plant(scenario: Scenario) -> None:
    """Raise ValueError for the first candidate none of whose workers could ever fill, or none decode.

    A capacity law may take workers to any prepared configuration, so that only what it could not mend is refused.
    """
    plant = scenario.plant
    if not isinstance(plant, ClusterPlant):
        return
    for own in scenario.candidates:
        place, pools = "plant.pools", plant.pools
        if own.pools is not None:
            place, pools = f"candidates.{own.name}.pools", own.pools
        moved = own.capacity.kind != "hold"
        names = plant.configurations if moved else [pool.configuration for pool in pools]
        roles = {plant.configurations[name].role for name in names if name in plant.configurations}
        for able, verb in ((FILLS, "fill"), (DECODES, "decode")):
            if roles and roles.isdisjoint(able):
                why = "no prepared configuration does" if moved else f"{own.name} has no capacity law to move one there"
                raise ValueError(
                    f"{place}: no worker could ever {verb} a turn: {why}; the role {verb} or aggregated would do"
                )
