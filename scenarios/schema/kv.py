"""`[plant.kv]`: the tiers in which contexts are kept between turns, and how state moves among them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from plant.kv.spec import MEASURED_EFFICIENCY
from scenarios.schema.base import Count, NotNegative, Positive, ScenarioTable


class Tier(ScenarioTable):
    """One tier.

    `capacity_bytes` is of the whole tier (None: unlimited); `bytes_per_s` the line rate of one node's host link, or of
    one storage server (None: moving takes no time).
    """

    capacity_bytes: Positive | None = None
    bytes_per_s: Positive | None = None
    latency_s: NotNegative = 0.0
    price_per_gb_hour: NotNegative = 0.0


class ServedTier(Tier):
    """A tier of storage servers, each behind its own link; contexts are spread over them by hash."""

    servers: Count = 1


class KvPart(ScenarioTable):
    """Tiers of KV state.

    `hardware` names a preset that supplies what is not given: NICs, and capacity, rate and latency of each tier, for
    workers of `gpus_per_worker` accelerators (see `scenarios.build.kv_presets`). `tiers` says which of node and SSD
    there are beside the network's: by default those with a table, or with `hardware` both. `engine_block_tokens`: the
    engine reuses whole blocks of its own, so what is cached is rounded down.
    `snapshot_bytes`: a hybrid's recurrent state, kept every `snapshot_tokens` and at the end of each context; its
    prefix can be resumed only there. `evict_tokens`: what the oldest context gives up at a time, from its end, when a
    tier must have room; 0: contexts are kept whole. `stages`: parts by layers in which state arrives while a fill
    computes.
    """

    bytes_per_token: Positive
    hardware: str | None = None
    gpus_per_worker: Count = 1
    tiers: tuple[Literal["node", "ssd"], ...] | None = None
    node: Tier | None = None
    network: ServedTier = ServedTier()
    ssd: ServedTier | None = None
    replicas: Count = 1
    rack_cache_bytes: NotNegative = 0.0
    hot_holders: Count = 8
    engine_block_tokens: Count = 1
    snapshot_bytes: Annotated[int, Field(ge=0)] = 0
    snapshot_tokens: Count = 8192
    nics: Count | None = None
    nic_bytes_per_s: Positive | None = None
    stripe_bytes: Count = 16 << 20
    efficiency_ratio: Annotated[float, Field(gt=0.0, le=1.0)] = MEASURED_EFFICIENCY
    per_object_s: NotNegative = 0.0
    evict_tokens: Annotated[int, Field(ge=0)] = 0
    stages: Count = 1
    placement: Literal["direct", "cpu"] = "direct"
    hbm_price_per_gb_hour: NotNegative = 0.0

    @model_validator(mode="after")
    def _tiers_are_described(self) -> KvPart:
        for name in ("node", "ssd"):
            described = getattr(self, name) is not None
            if self.tiers is not None and described and name not in self.tiers:
                raise ValueError(f"{name} has a table, but tiers = {list(self.tiers)} leaves it out: write one of them")
            if self.tiers is not None and not described and name in self.tiers and self.hardware is None:
                raise ValueError(f"tiers names {name}, but neither a table {name} nor hardware says what it is made of")
        return self

    @model_validator(mode="after")
    def _copies_have_servers(self) -> KvPart:
        stated = self.hardware is None or "servers" in self.network.model_fields_set
        if stated and self.replicas > self.network.servers:
            raise ValueError(
                f"replicas = {self.replicas} copies need as many network.servers, not {self.network.servers}"
            )
        return self
