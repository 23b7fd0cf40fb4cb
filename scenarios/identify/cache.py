"""Identified plants on disk, under the digest of what the experiment depends on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

from scenarios.identify.identify import Identified
from scenarios.schema.scenario import Scenario


def digest(scenario: Scenario, excitation: str) -> str:
    """Return a short digest of plant, workload, door, telemetry, span, seed and excitation; candidates do not count."""
    kept = scenario.model_dump(mode="json", exclude={"candidates", "expect", "title", "question", "classes", "record"})
    text = json.dumps([kept, excitation], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def cached(
    scenario: Scenario, excitation: str, folder: Path, make: Callable[[], Identified]
) -> tuple[Identified, bool]:
    """Return the identified plant and whether it was found on disk; a new one is made and kept."""
    path = folder / f"{digest(scenario, excitation)}.json"
    if path.is_file():
        kept = json.loads(path.read_text(encoding="utf-8"))
        return Identified(**{one.name: kept[one.name] for one in fields(Identified)}), True
    made = make()
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(made.to_json(), indent=1) + "\n", encoding="utf-8")
    return made, False
