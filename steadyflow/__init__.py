"""Steadyflow's public API under one name; every name here lives in `scenarios`, and is imported when it is first used.

import steadyflow
scenario = steadyflow.load("full_empty_reference", ["plant.dead_time_s=5"])
steadyflow.run(scenario, "predictive_buffer").plot()
"""

from __future__ import annotations

from importlib import metadata
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scenarios.analyze import analyze
    from scenarios.compare.compare import Comparison, compare
    from scenarios.errors import UserError
    from scenarios.run.execute import run
    from scenarios.run.result import Run
    from scenarios.schema.files import library
    from scenarios.schema.load import load
    from scenarios.schema.scenario import Scenario
    from scenarios.sweep import sweep

__all__ = ["Comparison", "Run", "Scenario", "UserError", "analyze", "compare", "library", "load", "run", "sweep"]

_HOMES = {
    "Comparison": "scenarios.compare.compare",
    "Run": "scenarios.run.result",
    "Scenario": "scenarios.schema.scenario",
    "UserError": "scenarios.errors",
    "analyze": "scenarios.analyze",
    "compare": "scenarios.compare.compare",
    "library": "scenarios.schema.files",
    "load": "scenarios.schema.load",
    "run": "scenarios.run.execute",
    "sweep": "scenarios.sweep",
}


def __getattr__(name: str) -> Any:  # Any: a function or a class
    if name == "__version__":
        return metadata.version("steadyflow")
    if name not in _HOMES:
        raise AttributeError(f"module 'steadyflow' has no attribute {name!r}")
    return resolve_name(f"{_HOMES[name]}:{name}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
