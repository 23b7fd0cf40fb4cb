"""How a server is run, and what it makes of a scenario."""

from __future__ import annotations

from dataclasses import dataclass

from scenarios.errors import UserError, nearest
from scenarios.schema.scenario import Scenario
from scenarios.schema.settings import RecordPart
from scenarios.schema.workloads import RequestsWorkload

BIN_S = 0.25  # of the record, unless the scenario states another


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """How a server is run; `rate` seconds of the run pass in one of the wall, and `drain_s` is of the wall."""

    host: str = "127.0.0.1"
    port: int = 8000
    rate: float = 1.0
    drain_s: float = 30.0
    max_streams: int = 1024
    max_body_bytes: int = 64 << 20
    api_keys: tuple[str, ...] = ()


def served(scenario: Scenario) -> Scenario:
    """Return the scenario with requests for its workload, and without what belongs to a simulation's end.

    Raises
    ------
    UserError
        Its plant cannot say when tokens exist; its service class is not one of its classes.
    """
    kind = scenario.plant.kind
    if kind not in ("cluster", "tandem", "engines"):
        raise UserError(f"plant.kind {kind}: has no turns to serve; cluster, tandem and engines have")
    if (name := scenario.replaying()) is not None:
        raise UserError(
            f"plant.configurations.{name}.times: recorded times are those of a trace; give times of kind linear or moe"
        )
    work = scenario.workload
    if not isinstance(work, RequestsWorkload):
        work = RequestsWorkload(kind="requests")
    if work.service_class is not None and work.service_class not in scenario.classes:
        known = nearest(work.service_class, scenario.classes)
        raise UserError(f"workload.service_class: there is no class {work.service_class}{known}")
    bin_s = scenario.record.signal_bin_s or BIN_S
    return scenario.model_copy(
        update={
            "workload": work,
            "warmup_s": 0.0,
            "record": RecordPart(signal_bin_s=bin_s, events=scenario.record.events),
            "expect": {},
        }
    )
