"""What a scenario's turns go through."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from orchestrator.messages import DECODES, FILLS, Role
from scenarios.schema.base import Count, NotNegative, Positive, ScenarioTable
from scenarios.schema.faults import Fault
from scenarios.schema.kv import KvPart
from scenarios.schema.moe import MoeTimes
from scenarios.schema.table_times import TableTimes


class ResidenceLaw(ScenarioTable):
    """How long a turn holds its slot."""

    shape: Literal["exponential", "erlang", "lognormal", "fixed"] = "exponential"
    mean_s: Positive
    stages: Count = 1
    cv_ratio: Positive = 1.0

    @model_validator(mode="after")
    def _of_its_shape(self) -> ResidenceLaw:
        if self.stages != 1 and self.shape != "erlang":
            raise ValueError(f'stages would have no effect: shape = "{self.shape}"; "erlang" has stages')
        if self.cv_ratio != 1.0 and self.shape != "lognormal":
            raise ValueError(f'cv_ratio would have no effect: shape = "{self.shape}"; "lognormal" has a cv_ratio')
        return self


class TandemPlant(ScenarioTable):
    """A dead time of unlimited width, then N slots: the theory's own plant."""

    kind: Literal["tandem"]
    slots: Count
    dead_time_s: NotNegative
    residence: ResidenceLaw
    gpus: Count = 1


class FluidPlant(ScenarioTable):
    """The tandem plant as a delay differential equation: no turns, no noise. `step_s` is the step of integration."""

    kind: Literal["fluid"]
    slots: Count
    dead_time_s: NotNegative
    residence: ResidenceLaw
    gpus: Count = 1
    step_s: Positive = 0.002


class LinearTimesPart(ScenarioTable):
    """step = base + per_sequence x batch + per_kv_token x KV tokens + per_new_token x chunk tokens."""

    kind: Literal["linear"]
    base_s: NotNegative
    per_sequence_s: NotNegative
    per_kv_token_s: NotNegative
    per_new_token_s: NotNegative
    per_cached_token_s: NotNegative = 0.0


class RecordedTimesPart(ScenarioTable):
    """A turn takes the server time that its trace recorded."""

    kind: Literal["recorded"]


Times = Annotated[LinearTimesPart | RecordedTimesPart | MoeTimes | TableTimes, Field(discriminator="kind")]


class Configuration(ScenarioTable):
    """A prepared configuration: what a worker that has loaded it can do.

    With `times` of kind `moe`, what is left out of gpus, kv_capacity_tokens, kv_bytes_per_token, kv_bytes_per_turn and
    load_s is what the model and the placement make it. Each pass that fills costs `per_chunk_s` beside its tokens;
    with `fills` "apart" an aggregated worker's decode waits for it instead of sharing it.
    """

    role: Role
    times: Times | None = None
    slots: Count | None = None
    kv_capacity_tokens: Count | None = None
    kv_bytes_per_token: NotNegative = 0.0
    kv_bytes_per_turn: NotNegative = 0.0
    chunk_tokens: Count = 8192
    headroom_tokens: Annotated[int, Field(ge=0)] = 0
    staging_turns: Annotated[int, Field(ge=0)] = 1
    gpus: Count = 1
    load_s: NotNegative = 0.0
    warm_s: NotNegative = 0.0
    weights: str | None = None
    flip_s: NotNegative = 0.0
    load_cv_ratio: NotNegative = 0.0
    fail_ratio: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0
    fails_at_ratio: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    preemption: Literal["recompute", "swap"] = "recompute"
    swap_bytes_per_s: Positive | None = None
    readmission: Literal["waits", "at_once"] = "waits"
    per_chunk_s: NotNegative = 0.0
    fills: Literal["with_decode", "apart"] = "with_decode"

    @model_validator(mode="after")
    def _charges_fills_that_it_has(self) -> Configuration:
        if self.fills == "apart" and self.role is not Role.AGGREGATED:
            raise ValueError(f'fills = "apart" would have no effect: the role {self.role.value} never does both')
        if self.per_chunk_s and (isinstance(self.times, RecordedTimesPart) or self.role not in FILLS):
            raise ValueError("per_chunk_s would have no effect: this configuration has no fill passes")
        return self

    @model_validator(mode="after")
    def _serves_in_some_time(self) -> Configuration:
        if self.times is None and self.role is not Role.IDLE:
            raise ValueError("times is missing: only the role idle serves nothing")
        times, steps = self.times, self.role in DECODES
        if (
            steps
            and isinstance(times, LinearTimesPart)
            and times.base_s == times.per_sequence_s == times.per_kv_token_s == 0.0
        ):
            raise ValueError("times: a step would take no time; give base_s, per_sequence_s or per_kv_token_s")
        return self


class Rack(ScenarioTable):
    """Equal racks, each behind one uplink that its workers share."""

    count: Count = 1
    workers: Count
    uplink_bytes_per_s: Positive
    flow_bytes_per_s: Positive | None = None
    latency_s: NotNegative = 0.0


class WorkerPool(ScenarioTable):
    """Workers that begin in one configuration."""

    configuration: str
    workers: Count


class ClusterPlant(ScenarioTable):
    """Racks of fill, decode or aggregated workers. Without `kv`, contexts are kept for ever and are everywhere."""

    kind: Literal["cluster"]
    configurations: dict[str, Configuration]
    racks: Annotated[tuple[Rack, ...], Field(min_length=1)]
    pools: Annotated[tuple[WorkerPool, ...], Field(min_length=1)]
    faults: tuple[Fault, ...] = ()
    kv: KvPart | None = None


class Engine(ScenarioTable):
    """A real OpenAI-compatible server at `url` (without /v1), which takes `slots` turns at once.

    `model`: the name under which it knows the model, where that is another than the clients'. `metrics`: the address of
    its Prometheus page.
    """

    url: Annotated[str, Field(pattern=r"^https?://[^/\s]+(/[^\s]*[^/\s])?$")]
    slots: Count
    model: str | None = None
    metrics: Annotated[str, Field(pattern=r"^https?://\S+$")] | None = None


class EnginesPlant(ScenarioTable):
    """Real engines behind a gateway, on the real clock only: `steadyflow serve` plays it, no simulation does.

    Seconds are of the wall: `connect_s` bounds a connection and a probe, `silence_s` the time without a byte; each
    engine is probed, and its metrics are read, every `probe_s`.
    """

    kind: Literal["engines"]
    engines: Annotated[tuple[Engine, ...], Field(min_length=1)]
    connect_s: Positive = 5.0
    silence_s: Positive = 600.0
    probe_s: Positive = 2.0
    gpus: Count = 1


Plant = Annotated[TandemPlant | FluidPlant | ClusterPlant | EnginesPlant, Field(discriminator="kind")]
