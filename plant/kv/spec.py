"""The description of KV tiers: capacities, link rates, copies, and how state is split for transfers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

from plant.kv.chains import BlobSizes

NODE: Final = 0  # DRAM of the nodes: outgoing state is staged here
NETWORK: Final = 1  # DRAM reached over the network: the shared pool
SSD: Final = 2
TIER_NAMES: Final = ("node", "network", "ssd")

MEASURED_EFFICIENCY = 0.71
"""4.5 GB in 31.65 ms over eight 200 Gb/s NICs: 142 of 200 GB/s (kvcache-ai/Mooncake, transfer engine benchmark)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TierSpec:
    """One tier.

    Attributes
    ----------
    capacity_bytes : float
        Of the whole tier; math.inf: unlimited.
    bytes_per_s : float
        Line rate: of one node's host link (node), or of one storage server (network, ssd). math.inf: takes no time.
    servers : int
        Storage servers, each behind a link of its own; contexts are spread over them by hash. Of the node tier: nodes,
        one a worker, each with an equal part of the capacity; 1: all nodes share one pool.
    latency_s : float
        Before the first byte.
    price_per_byte_s : float
        Cost of keeping one byte for one second, in any one currency.
    """

    capacity_bytes: float
    bytes_per_s: float = math.inf
    servers: int = 1
    latency_s: float = 0.0
    price_per_byte_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KvSpec:
    """All tiers, and how state moves among them.

    Attributes
    ----------
    bytes_per_token : float
        KV state of one position, all layers.
    block_tokens : int
        Positions of one block of the contexts' chains.
    reuse_tokens : int
        The engine reuses whole blocks of its own, this long: what is cached is rounded down to a multiple.
    snapshot_bytes, snapshot_tokens : int
        A hybrid's recurrent state: its size, and how many positions lie between two snapshots; 0 bytes: none is needed.
    node, ssd : TierSpec or None
        Without a node tier, state goes straight from accelerator memory to the network tier.
    network : TierSpec
    replicas : int
        Copies of each context in the network tier, on as many servers.
    rack_cache_bytes : float
        Cache of hot blobs in each rack; 0: none.
    hot_holders : int
        A blob is hot when so many contexts hold it.
    nics, nic_bytes_per_s : int, float
        NICs of a worker, and the line rate of one; one object is striped over as many as its size feeds.
    stripe_bytes : int
        Least part of an object worth a NIC of its own.
    efficiency_ratio : float
        Share of the line rate that a large object reaches.
    per_object_s : float
        Set-up of each object's transfer.
    stages : int
        Parts, by layers, in which a fill takes its cached state: part k + 1 moves while part k computes. 1: all first.
    hbm_price_per_byte_s : float
        Cost of keeping one byte in accelerator memory for one second.
    evict_tokens : int
        What the oldest context gives up at a time, from its end, when a tier must have room; 0: all of it.
    typical_tokens : float
        A context of the workload to come; a plant that could hold none is refused. 0: unknown.
    placement : {"direct", "cpu"}
        Incoming state goes straight into accelerator memory, or over the node's DRAM and so its host link too.
    """

    bytes_per_token: float
    network: TierSpec
    block_tokens: int = 64
    reuse_tokens: int = 1
    snapshot_bytes: int = 0
    snapshot_tokens: int = 8192
    node: TierSpec | None = None
    ssd: TierSpec | None = None
    replicas: int = 1
    rack_cache_bytes: float = 0.0
    hot_holders: int = 8
    nics: int = 1
    nic_bytes_per_s: float = math.inf
    stripe_bytes: int = 16 << 20
    efficiency_ratio: float = MEASURED_EFFICIENCY
    per_object_s: float = 0.0
    stages: int = 1
    hbm_price_per_byte_s: float = 0.0
    evict_tokens: int = 0
    typical_tokens: float = 0.0
    placement: Literal["direct", "cpu"] = "direct"

    def __post_init__(self) -> None:
        tiers = (("node", self.node), ("network", self.network), ("ssd", self.ssd))
        for name, tier in tiers:
            if tier is not None and not tier.bytes_per_s > 0.0:
                raise ValueError(
                    f"kv.{name}: a tier with no bandwidth keeps what nobody can fetch; bytes_per_s must be > 0"
                )
            if tier is not None and not tier.capacity_bytes > 0.0:
                raise ValueError(f"kv.{name}: capacity_bytes must be > 0; leave the tier out to have none")
        if self.replicas > self.network.servers:
            raise ValueError(
                f"kv.replicas: {self.replicas} copies need as many network servers, not {self.network.servers}"
            )
        if self.snapshot_bytes and self.snapshot_tokens % self.block_tokens:
            raise ValueError(
                f"kv.snapshot_tokens: snapshots lie at ends of blocks; {self.snapshot_tokens} is no multiple of the "
                f"block of {self.block_tokens} tokens"
            )

    @property
    def sizes(self) -> BlobSizes:
        """Bytes of one copy's blocks and snapshots, as whole numbers, so that sums are exact."""
        return BlobSizes(
            block_bytes=round(self.bytes_per_token * self.block_tokens),
            snapshot_bytes=self.snapshot_bytes,
            snapshot_blocks=max(1, self.snapshot_tokens // self.block_tokens),
        )

    @property
    def evict_blocks(self) -> int:
        """Blocks of one eviction; 0: the whole context."""
        return -(-self.evict_tokens // self.block_tokens)

    @property
    def timed(self) -> bool:
        """Tell whether anything takes time to move."""
        tiers = [tier for tier in (self.node, self.network, self.ssd) if tier is not None]
        return self.nic_bytes_per_s < math.inf or any(t.bytes_per_s < math.inf or t.latency_s > 0.0 for t in tiers)

    def object_bytes_per_s(self, size_bytes: float) -> float:
        """Return the rate of one object alone: striped over the NICs that its size feeds, at measured efficiency."""
        stripes = size_bytes // self.stripe_bytes
        if stripes > self.nics:
            stripes = self.nics
        return (stripes if stripes > 1 else 1) * self.nic_bytes_per_s * self.efficiency_ratio
