"""Identified plants on disk, under the digest of what the experiment depends on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, Protocol, TypeVar

from scenarios.identify.identify import Identified
from scenarios.identify.startup import IdentifiedStartup, door_of
from scenarios.schema.scenario import Scenario
from scenarios.writing import atomic_write


class Kept(Protocol):
    """What is kept: a dataclass of plain values."""

    def to_json(self) -> dict[str, object]:
        """Return every field as a JSON value."""
        ...


Found = TypeVar("Found", bound=Kept)


def digest(scenario: Scenario, experiment: str) -> str:
    """Return a short digest of plant, workload, door, telemetry, span, seed and experiment; candidates do not count."""
    kept = scenario.model_dump(mode="json", exclude={"candidates", "expect", "title", "question", "classes", "record"})
    text = json.dumps([kept, experiment], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def cached(
    scenario: Scenario, excitation: str, folder: Path, make: Callable[[], Identified]
) -> tuple[Identified, bool]:
    """Return the identified admission plant and whether it was found on disk; a new one is made and kept."""
    return _cached(folder / f"{digest(scenario, excitation)}.json", Identified, make)


def cached_startup(
    scenario: Scenario, configuration: str, excitation: str, folder: Path, make: Callable[[], IdentifiedStartup]
) -> tuple[IdentifiedStartup, bool]:
    """Return how a pool follows its orders and whether it was found on disk; a new answer is made and kept."""
    door = door_of(scenario, configuration).admission.model_dump_json()
    name = digest(scenario, f"capacity {configuration} {excitation} behind {door}")
    return _cached(folder / f"{name}.json", IdentifiedStartup, make)


def _cached(path: Path, kind: type[Found], make: Callable[[], Found]) -> tuple[Found, bool]:
    if path.is_file():
        kept = json.loads(path.read_text(encoding="utf-8"))
        named: Any = kind  # Any: a dataclass, which the protocol cannot say
        return kind(**{one.name: kept[one.name] for one in fields(named)}), True
    made = make()
    with atomic_write(path) as part:
        part.write_text(json.dumps(made.to_json(), indent=1) + "\n", encoding="utf-8")
    return made, False
