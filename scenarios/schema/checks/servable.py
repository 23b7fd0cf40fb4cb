"""A plant on which no turn could be served from its first stage to its last: refused before anything runs."""

from __future__ import annotations

from collections.abc import Iterable

from orchestrator.messages import DECODES, FILLS
from scenarios.schema.checks.references import flat
from scenarios.schema.contents import ScenarioContents
from scenarios.schema.laws import Candidate, FileLaw, Hold
from scenarios.schema.plants import ClusterPlant


def refuse_unable_plant(scenario: ScenarioContents) -> None:
    """Raise ValueError for the first candidate none of whose workers could ever fill, or none decode.

    Only what its capacity law could not mend is refused, whatever the law's measure and bounds make of it.
    """
    plant = scenario.plant
    if not isinstance(plant, ClusterPlant):
        return
    for candidate in scenario.candidates:
        place, pools = "plant.pools", plant.pools
        if candidate.pools is not None:
            place, pools = f"candidates.{candidate.name}.pools", candidate.pools
        begun = {pool.configuration for pool in pools}
        if not begun <= plant.configurations.keys():
            continue  # reported where the plant is built
        roles = {plant.configurations[name].role for name in begun | _moved(scenario, candidate, plant, begun)}
        for roles_of_verb, verb in ((FILLS, "fill"), (DECODES, "decode")):
            if roles.isdisjoint(roles_of_verb):
                fit = [
                    name for name, configuration in plant.configurations.items() if configuration.role in roles_of_verb
                ]
                why = _why(candidate, fit)
                raise ValueError(
                    f"{place}: no worker could ever {verb} a turn: {why}; the role {verb} or aggregated would do"
                )


def _moved(scenario: ScenarioContents, candidate: Candidate, plant: ClusterPlant, begun: Iterable[str]) -> set[str]:
    """Return the configurations among which the candidate's law can move workers; empty: none of them begins with any.

    They are those that it commands and the reserve, which takes what it gives up; a law of a file may command all.
    """
    law = candidate.capacity
    if isinstance(law, Hold):
        return set()
    if isinstance(law, FileLaw):
        return {*plant.configurations}
    names = {name for key in ("configuration", "configurations") for name in flat(getattr(law, key, ()))}
    limits = candidate.reconfigure or scenario.reconfigure
    if limits.reserve is not None:
        names.add(limits.reserve)
    return set() if names.isdisjoint(begun) else names


def _why(candidate: Candidate, fit: list[str]) -> str:
    if isinstance(candidate.capacity, Hold):
        return f"{candidate.name} has no capacity law to move one there"
    if not fit:
        return "no prepared configuration does"
    return f"the capacity law of {candidate.name} can take none to {' or '.join(fit)}"
