"""Names that one part of a scenario gives and another uses: configurations and classes that laws speak of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scenarios.errors import nearest
from scenarios.schema.contents import ScenarioContents
from scenarios.schema.plants import ClusterPlant

CONFIGURATIONS = ("configuration", "configurations")
CLASSES = ("reserved", "ranking")


def refuse_unknown_names(scenario: ScenarioContents) -> None:
    """Raise ValueError for the first law or limit that names a configuration or a class that is not there."""
    plant = scenario.plant
    if isinstance(plant, ClusterPlant):
        for place, name in (*_reserves(scenario), *_of_laws(scenario, CONFIGURATIONS)):
            _refuse(place, name, "configuration", list(plant.configurations))
    for place, name in _of_laws(scenario, CLASSES):
        _refuse(place, name, "class", list(scenario.classes))


def _refuse(place: str, name: str, what: str, known: list[str]) -> None:
    if name not in known:
        raise ValueError(f"{place}: no {what} {name}{nearest(name, known)}; there are {', '.join(known) or 'none'}")


def _reserves(scenario: ScenarioContents) -> Iterator[tuple[str, str]]:
    parts = {"reconfigure": scenario.reconfigure}
    parts |= {
        f"candidates.{candidate.name}.reconfigure": candidate.reconfigure
        for candidate in scenario.candidates
        if candidate.reconfigure
    }
    for place, part in parts.items():
        if part.reserve is not None:
            yield f"{place}.reserve", part.reserve


def _of_laws(scenario: ScenarioContents, keys: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for candidate in scenario.candidates:
        for slot in ("admission", "capacity", "routing"):
            for key in keys:
                for name in flat(getattr(getattr(candidate, slot), key, ())):
                    yield f"candidates.{candidate.name}.{slot}.{key}", name


def flat(names: Any) -> Iterator[str]:  # Any: a name, or lists of names
    """Yield the names of a law's key."""
    if isinstance(names, str):
        yield names
    else:
        for name in names:
            yield from flat(name)
