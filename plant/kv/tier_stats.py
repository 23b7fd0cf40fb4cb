"""Counters of the tiers since the start of the run: hits, bytes moved and contexts evicted."""

from __future__ import annotations

from collections.abc import Iterator

from plant.kv.chains import BlobSizes
from plant.kv.context import Context
from plant.kv.spec import NETWORK, SSD, TIER_NAMES
from plant.kv.transfer_engine import CACHE

# Why a context was given up. NO_ROOM: never stored, as everything in its way was in use.
CAPACITY, EXPIRED, ABANDONED, NO_ROOM, SERVER_LOST = "capacity", "expired", "abandoned", "no_room", "server_lost"
REASONS = (CAPACITY, EXPIRED, ABANDONED, NO_ROOM, SERVER_LOST)
HOMES = (NETWORK, SSD)
"""The tiers that contexts are given up in; a node only passes them on."""


class TierStats:
    """Sums in tokens and bytes.

    `hit_tokens` is by source: the tiers, and the racks' caches at index CACHE. `rebuilt_tokens` were kept once, were
    discarded, and had to be computed again. `taken_bytes` left each source for accelerators, `written_bytes` entered
    each tier from the one before it.
    """

    def __init__(self) -> None:
        self.asked_tokens = 0
        self.cached_tokens = 0
        self.rebuilt_tokens = 0
        self.hit_tokens = dict.fromkeys((CACHE, *range(len(TIER_NAMES))), 0)
        self.evicted = {(tier, reason): 0 for tier in HOMES for reason in REASONS}
        self.evicted_tokens = dict.fromkeys(REASONS, 0)
        self.evicted_bytes = dict.fromkeys(self.evicted, 0)
        self.demoted = self.promoted = 0
        self.idle_hbm_byte_s = 0.0
        self.taken_bytes = dict.fromkeys(self.hit_tokens, 0)
        self.computed_bytes = 0.0
        self.written_bytes = dict.fromkeys(range(len(TIER_NAMES)), 0)

    def count_eviction(self, context: Context, reason: str, blocks: int, sizes: BlobSizes) -> None:
        """Count the last `blocks` blocks of a context that was given up; what others share of them is not lost."""
        all_of_it = blocks == context.blocks
        self.evicted[context.home, reason] += reason != CAPACITY or all_of_it
        self.evicted_tokens[reason] += context.tokens if all_of_it else blocks * context.chain.block_tokens
        self.evicted_bytes[context.home, reason] += (
            sizes.span_bytes(context.blocks - blocks, blocks) + context.private_bytes * all_of_it
        )

    def evicted_from(self, tier: int) -> int:
        """Return the contexts given up in a tier, for whatever reason."""
        return sum(count for (home, _), count in self.evicted.items() if home == tier)

    def values(self) -> Iterator[tuple[str, float]]:
        """Yield every sum by name."""
        yield "asked_tokens", self.asked_tokens
        yield "cached_tokens", self.cached_tokens
        yield "rebuilt_tokens", self.rebuilt_tokens
        for tier, tokens in self.hit_tokens.items():
            name = "rack_cache" if tier == CACHE else TIER_NAMES[tier]
            yield f"hit_tokens.{name}", tokens
            yield f"taken_bytes.{name}", self.taken_bytes[tier]
        yield "computed_bytes", self.computed_bytes
        for tier, size in self.written_bytes.items():
            yield f"written_bytes.{TIER_NAMES[tier]}", size
        for reason in REASONS:
            yield f"evicted.{reason}", sum(self.evicted[tier, reason] for tier in HOMES)
            yield f"evicted_tokens.{reason}", self.evicted_tokens[reason]
            sizes = (size for (_, why), size in self.evicted_bytes.items() if why == reason)
            yield f"evicted_bytes.{reason}", sum(sizes)
        for tier in HOMES:
            yield f"given_up_bytes.{TIER_NAMES[tier]}", sum(self.evicted_bytes[tier, reason] for reason in REASONS)
        yield "demoted", self.demoted
        yield "promoted", self.promoted
        yield "hbm_idle_byte_s", self.idle_hbm_byte_s
