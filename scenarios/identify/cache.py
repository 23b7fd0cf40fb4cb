"""Cache of identified plant models on disk, keyed by a digest of the experiment's inputs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, Protocol, TypeVar

from scenarios.identify.identify import Identified
from scenarios.identify.startup import IdentifiedStartup, admission_candidate
from scenarios.schema.scenario import Scenario
from scenarios.writing import atomic_write


class Cacheable(Protocol):
    """A dataclass of plain values that can be cached."""

    def to_json(self) -> dict[str, object]:
        """Return every field as a JSON value."""
        ...


Result = TypeVar("Result", bound=Cacheable)


def digest(scenario: Scenario, experiment: str) -> str:
    """Return a short digest of plant, workload, admission, telemetry, span, seed and experiment, without candidates."""
    relevant = scenario.model_dump(
        mode="json", exclude={"candidates", "expect", "title", "question", "classes", "record", "uncertainty"}
    )
    text = json.dumps([relevant, experiment], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def cached(
    scenario: Scenario, excitation: str, folder: Path, make: Callable[[], Identified]
) -> tuple[Identified, bool]:
    """Return the identified admission plant and whether it came from disk; a new one is computed and stored."""
    return _cached(folder / f"{digest(scenario, excitation)}.json", Identified, make)


def cached_startup(
    scenario: Scenario, configuration: str, excitation: str, folder: Path, make: Callable[[], IdentifiedStartup]
) -> tuple[IdentifiedStartup, bool]:
    """Return the identified start-up of a pool and whether it came from disk; a new one is computed and stored."""
    admission = admission_candidate(scenario, configuration).admission.model_dump_json()
    name = digest(scenario, f"capacity {configuration} {excitation} behind {admission}")
    return _cached(folder / f"{name}.json", IdentifiedStartup, make)


def _cached(path: Path, kind: type[Result], make: Callable[[], Result]) -> tuple[Result, bool]:
    if path.is_file():
        stored = json.loads(path.read_text(encoding="utf-8"))
        dataclass_type: Any = kind  # Any: a dataclass, which the protocol cannot say
        names = [field.name for field in fields(dataclass_type)]
        if stored.keys() >= set(names):  # else it was kept by an older version, and is made anew
            values = {name: stored[name] for name in names}
            # JSON has no tuples: a sequence comes back as a list.
            return kind(**{name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}), True
    result = make()
    with atomic_write(path) as part:
        part.write_text(json.dumps(result.to_json(), indent=1) + "\n", encoding="utf-8")
    return result, False
