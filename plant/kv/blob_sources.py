"""Where the blobs of a context are best taken from: the rack's cache, or the fastest tier that holds them."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.turn import KvChain, WorkerId
from plant.kv.blobs import Blob, BlobPart
from plant.kv.prefix_tree import PrefixTree
from plant.kv.rack_caches import RackCaches
from plant.kv.spec import NETWORK, NODE, SSD
from plant.kv.tier_stats import TierStats
from plant.kv.transfer_engine import CACHE


def best_tier(blob: Blob) -> int:
    """Return the tier that a blob is best taken from: the network's, a node's, SSD."""
    held = blob.held
    return NETWORK if held[NETWORK] else NODE if held[NODE] else SSD


class BlobSources:
    """The tiers and the racks' caches, as a worker sees them.

    Parameters
    ----------
    tree : PrefixTree
    caches : RackCaches or None
    rack_of : callable
        The rack of a worker.
    hot_holders : int
        A blob is hot, and kept in the rack's cache, when so many contexts hold it.
    """

    def __init__(
        self, tree: PrefixTree, caches: RackCaches | None, rack_of: Callable[[WorkerId], int], hot_holders: int
    ) -> None:
        self._tree, self.caches, self._rack_of, self._hot_holders = tree, caches, rack_of, hot_holders

    def bytes_by_source(
        self,
        blob_parts: list[BlobPart],
        block_tokens: int,
        cached_tokens: int,
        worker: WorkerId,
        stats: TierStats | None = None,
    ) -> dict[int, int]:
        """Return the bytes to take from each source for the first `cached_tokens`; count them in `stats`, if given.

        `blob_parts` are what holds them.
        """
        sizes, rack, caches = self._tree.sizes, self._rack_of(worker), self.caches
        taken: dict[int, int] = {}
        source = NETWORK
        for blob, low, high in blob_parts:
            source = CACHE if caches is not None and caches.has(blob, rack) else best_tier(blob)
            taken[source] = taken.get(source, 0) + (high - low) * sizes.block_bytes
            if stats is not None:
                stats.hit_tokens[source] += min(high * block_tokens, cached_tokens) - low * block_tokens
                stats.taken_bytes[source] += (high - low) * sizes.block_bytes
        if sizes.snapshot_bytes and taken:
            taken[source] += sizes.snapshot_bytes
        return taken

    def warm(self, chain: KvChain, blocks: int, worker: WorkerId) -> None:
        """Keep copies of what is hot, and has just come by, in the worker's rack."""
        if self.caches is not None:
            rack = self._rack_of(worker)
            for blob, _low, _high in self._tree.find(chain, blocks):
                if blob.held[NETWORK] >= self._hot_holders:
                    self.caches.admit(blob, rack)
