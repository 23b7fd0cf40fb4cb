"""Refuse what a configuration with recorded server times cannot do: migrate its turns, or serve synthetic ones."""

from __future__ import annotations

from scenarios.schema.contents import ScenarioContents
from scenarios.schema.workloads import Synthetic


def refuse_migration_of_recorded_turns(scenario: ScenarioContents) -> None:
    """Raise ValueError where turns in recorded time would have to move with their state."""
    limits = [
        scenario.reconfigure,
        *(candidate.reconfigure for candidate in scenario.candidates if candidate.reconfigure is not None),
    ]
    name = scenario.replaying()
    if name is not None and any(part.drain == "migrate" for part in limits):
        raise ValueError(
            f"reconfigure.drain: a turn in recorded time (configuration {name}) has no state to migrate; "
            'use "wait" or "retry"'
        )


def refuse_times_without_record(scenario: ScenarioContents) -> None:
    """Raise ValueError where recorded times are asked of a workload that has none."""
    name = scenario.replaying()
    if name is not None and isinstance(scenario.workload, Synthetic):
        raise ValueError(
            f"plant.configurations.{name}.times: the workload {scenario.workload.kind} records no server times; "
            "play a trace, or give times of kind linear or moe"
        )
