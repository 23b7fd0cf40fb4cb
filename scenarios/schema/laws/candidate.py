"""One policy of a comparison."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from scenarios.schema.base import ScenarioTable
from scenarios.schema.laws.part import Hold
from scenarios.schema.laws.tables import LAW_TABLES, Admission, Batching, Capacity, Demand, Retention, Routing
from scenarios.schema.plants import WorkerPool
from scenarios.schema.reconfigure import ReadyPart, ReconfigurePart


class Candidate(ScenarioTable):
    """One policy of the comparison: a name and one law a slot; a slot that is not named is held.

    `pools` takes the place of the plant's: the same racks, divided otherwise. `reconfigure` takes the place of the
    scenario's limits on moving workers, `ready` that of its ready buffer.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]
    admission: Admission = Hold(kind="hold")
    batching: Batching = Hold(kind="hold")
    capacity: Capacity = Hold(kind="hold")
    demand: Demand = Hold(kind="hold")
    retention: Retention = Hold(kind="hold")
    routing: Routing = LAW_TABLES["routing"]["least_loaded"](kind="least_loaded")
    pools: Annotated[tuple[WorkerPool, ...], Field(min_length=1)] | None = None
    reconfigure: ReconfigurePart | None = None
    ready: ReadyPart | None = None
