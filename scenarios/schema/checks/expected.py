"""Refuse expectations of a candidate, a name or a part of a summary that runs of this scenario do not have."""

from __future__ import annotations

from scenarios.catalogue.signals import expected
from scenarios.errors import nearest
from scenarios.schema.contents import ScenarioContents
from scenarios.schema.expect import check_expectation
from scenarios.schema.plants import ClusterPlant
from scenarios.schema.trace_workloads import MixtureWorkload, Played, ReplayWorkload


def refuse_impossible_expectations(scenario: ScenarioContents) -> None:
    """Raise ValueError for the first expectation that no run could answer."""
    names = [candidate.name for candidate in scenario.candidates]
    for name, expectation in scenario.expect.items():
        if name not in names:
            raise ValueError(f"expect.{name} names no candidate{nearest(name, names)}; there are {', '.join(names)}")
        check_expectation(name, expectation, names_in(scenario), _empty_parts(scenario))


def names_in(scenario: ScenarioContents) -> dict[str, tuple[str, ...]]:
    """Return the signals, classes and pools of this scenario's runs, for paths of expectations."""
    cluster = scenario.plant if isinstance(scenario.plant, ClusterPlant) else None
    pools = (*cluster.configurations,) if cluster else ("decode",)
    signals = expected(pools=cluster is not None, tiers=cluster is not None and cluster.kv is not None)
    return {"signal": signals, "class": (*scenario.classes,), "pool": pools}


def _empty_parts(scenario: ScenarioContents) -> dict[str, str]:
    """Return parts of a summary that runs of this scenario leave empty, and what would fill them."""
    empty = {}
    if not isinstance(scenario.plant, ClusterPlant):
        empty["stranded"] = f"the {scenario.plant.kind} plant has no workers, a plant of kind cluster has"
    if not isinstance(scenario.plant, ClusterPlant) or scenario.plant.kv is None:
        empty["kv"] = "it needs a plant of kind cluster with a table plant.kv"
    if not isinstance(scenario.workload, Played | ReplayWorkload | MixtureWorkload):
        empty["trace"] = f"the workload {scenario.workload.kind} plays no conversations"
    return empty
