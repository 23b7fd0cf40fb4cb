"""Keys that the plant at hand would take without effect: refused, so that nobody reads a result into them.

What stands at its default is passed over, since a scenario as resolved states every default. `control` and `classes`
are left alone: they are the shared ground of all candidates.
"""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.messages import Role
from scenarios.schema.base import ScenarioTable
from scenarios.schema.contents import ScenarioContents
from scenarios.schema.kv import KvPart
from scenarios.schema.laws import Candidate
from scenarios.schema.plants import ClusterPlant, EnginesPlant, FluidPlant

Found = Iterator[tuple[str, str]]
CLUSTER = "a plant of kind cluster has them"
FLOW = "a flow has no turns that it could act on; plant.kind tandem has"


def refuse_idle_keys(scenario: ScenarioContents) -> None:
    """Raise ValueError for the first key that nothing in this scenario would look at."""
    for place, why in _idle(scenario):
        raise ValueError(f"{place} would have no effect: {why}")


def _idle(scenario: ScenarioContents) -> Found:
    if isinstance(scenario.plant, ClusterPlant):
        yield from _on_workers(scenario, scenario.plant)
        return
    if isinstance(scenario.plant, EnginesPlant):
        yield from _on_engines(scenario)
        return
    kind = scenario.plant.kind
    for part in ("reconfigure", "dispatch"):
        yield from _stated(part, getattr(scenario, part), f"the {kind} plant has no workers to choose from; {CLUSTER}")
    for candidate in scenario.candidates:
        yield from _on_theory(candidate, kind)
    if isinstance(scenario.plant, FluidPlant):
        yield from _on_a_flow(scenario)


def _on_engines(scenario: ScenarioContents) -> Found:
    yield from _stated("reconfigure", scenario.reconfigure, f"nobody here starts or stops engines; {CLUSTER}")
    yield from _stated("ready", scenario.ready, "an engine decodes where it fills")
    for candidate in scenario.candidates:
        place = f"candidates.{candidate.name}"
        if candidate.pools is not None:
            yield f"{place}.pools", f"engines are no pools to divide; {CLUSTER}"
        if candidate.batching.kind != "hold":
            yield f"{place}.batching", f"an engine's batch is its own; {CLUSTER}"
        for part in ("reconfigure", "ready"):
            if (stated := getattr(candidate, part)) is not None:
                yield from _stated(f"{place}.{part}", stated, "an engine is as it is")


def _on_theory(candidate: Candidate, kind: str) -> Found:
    place = f"candidates.{candidate.name}"
    if candidate.pools is not None:
        yield f"{place}.pools", f"the {kind} plant has no pools to divide; {CLUSTER}"
    if candidate.reconfigure is not None:
        why = f"the {kind} plant has no workers to choose from; {CLUSTER}"
        yield from _stated(f"{place}.reconfigure", candidate.reconfigure, why)
    if candidate.routing.kind != "least_loaded":
        yield f"{place}.routing", f"the {kind} plant has no workers to choose from; {CLUSTER}"
    if candidate.demand.kind != "hold":
        yield f"{place}.demand", f"forecasts are for the capacity loop, and the {kind} plant has none; {CLUSTER}"


def _on_a_flow(scenario: ScenarioContents) -> Found:
    door = scenario.admission
    for key in ("slew_per_s2", "queue_limit_turns", "order", "smoothing_s"):
        if getattr(door, key) != type(door).model_fields[key].default:
            yield f"admission.{key}", FLOW
    yield from _stated("ready", scenario.ready, FLOW)
    yield from _stated("telemetry", scenario.telemetry, "a flow is read as it is; plant.kind tandem reads by samples")
    if scenario.drain_s > 0.0:
        yield "drain_s", FLOW
    if scenario.record.events == "all":
        yield "record.events", FLOW
    for candidate in scenario.candidates:
        if candidate.batching.kind != "hold":
            yield f"candidates.{candidate.name}.batching", FLOW
        if candidate.ready is not None:
            yield from _stated(f"candidates.{candidate.name}.ready", candidate.ready, FLOW)


def _on_workers(scenario: ScenarioContents, plant: ClusterPlant) -> Found:
    if all(configuration.role is not Role.DECODE for configuration in plant.configurations.values()):
        why = "no configuration has the role decode, and an aggregated worker fills into its own batch"
        yield from _stated("ready", scenario.ready, why)
        for candidate in scenario.candidates:
            if candidate.ready is not None:
                yield from _stated(f"candidates.{candidate.name}.ready", candidate.ready, why)
    for name, configuration in plant.configurations.items():
        if configuration.swap_bytes_per_s is not None and configuration.preemption != "swap":
            yield f"plant.configurations.{name}.swap_bytes_per_s", 'it needs preemption = "swap"'
    end_s = scenario.horizon_s + scenario.drain_s
    for number, fault in enumerate(plant.faults):
        if fault.at_s >= end_s:
            and_drain = f" + drain_s = {end_s:g}" if scenario.drain_s > 0.0 else f" = {end_s:g}"
            yield f"plant.faults.{number}.at_s = {fault.at_s:g}", f"the run ends at horizon_s{and_drain}"
    if plant.kv is not None:
        yield from _on_tiers(plant.kv)
        return
    for candidate in scenario.candidates:
        if candidate.retention.kind != "hold":
            yield (
                f"candidates.{candidate.name}.retention",
                "without tiers every context is kept for ever; give plant.kv",
            )


def _on_tiers(kv: KvPart) -> Found:
    if kv.gpus_per_worker != 1 and kv.hardware is None:
        yield "plant.kv.gpus_per_worker", "it sizes what a preset supplies; name one with hardware"
    if kv.nics is not None and kv.nic_bytes_per_s is None and kv.hardware is None:
        yield "plant.kv.nics", "they have no rate; give nic_bytes_per_s or hardware"
    if kv.snapshot_tokens != KvPart.model_fields["snapshot_tokens"].default and kv.snapshot_bytes == 0:
        yield "plant.kv.snapshot_tokens", "snapshots of no size are not kept; give snapshot_bytes"


def _stated(place: str, part: ScenarioTable, why: str) -> Found:
    for key, info in type(part).model_fields.items():
        if getattr(part, key) != info.default:
            yield f"{place}.{key}", why
