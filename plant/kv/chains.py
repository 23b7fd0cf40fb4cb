"""Arithmetic of chains of KV blocks, run by run: their sizes, their parts, and what two have in common."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from orchestrator.turn import KvChain, KvRun


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobSizes:
    """Bytes of one block of KV state, and of the recurrent state that a hybrid model needs to resume.

    Attributes
    ----------
    block_bytes : int
        KV state of one block, all layers.
    snapshot_bytes : int
        One snapshot of the recurrent state; 0: the model has none and resumes at any block.
    snapshot_blocks : int
        A snapshot is taken at every multiple of this many blocks, and at the end of each context.
    """

    block_bytes: int
    snapshot_bytes: int = 0
    snapshot_blocks: int = 1

    def span_bytes(self, start: int, blocks: int) -> int:
        """Return the bytes of `blocks` blocks after the first `start` of a context, with the snapshots among them."""
        size = blocks * self.block_bytes
        if self.snapshot_bytes:
            every = self.snapshot_blocks
            size += ((start + blocks) // every - start // every) * self.snapshot_bytes
        return size


def pieces(chain: KvChain, low: int, high: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield (scope, first id, blocks, blocks before it) of the runs between two places of a chain."""
    at = 0
    for scope, first, blocks in chain.runs:
        if at >= high:
            return
        skip = max(0, low - at)
        take = min(blocks, high - at)
        if skip < take:
            yield scope, first + skip, take - skip, at + skip
        at += blocks


def length(chain: KvChain) -> int:
    """Return the blocks of a chain."""
    blocks = 0
    for run in chain.runs:
        blocks += run[2]
    return blocks


def head(chain: KvChain, blocks: int) -> KvChain:
    """Return the chain of the first so many blocks."""
    runs = tuple(KvRun(scope, first, count) for scope, first, count, _ in pieces(chain, 0, blocks))
    return KvChain(runs, chain.block_tokens)


def continues(a: KvChain, b: KvChain) -> bool:
    """Tell whether chain b only adds to a: the same runs, of which the last may be longer, and perhaps more of them.

    Where the last run of a begins, b has a run that begins with the same id, and an id names its whole past.
    """
    runs_a, runs_b = a.runs, b.runs
    last = len(runs_a) - 1
    if not 0 <= last < len(runs_b):
        return False
    scope, first, blocks = runs_a[last]
    also, start, more = runs_b[last]
    return scope == also and first == start and blocks <= more


def shared_blocks(a: KvChain, b: KvChain) -> int:
    """Return how many leading blocks two chains have in common: O(runs)."""
    shared = used_a = used_b = i = 0
    runs_a, runs_b = a.runs, b.runs
    for run_a, run_b in zip(runs_a, runs_b):
        if run_a != run_b:
            break
        shared += run_a[2]
        i += 1
    j = i
    while i < len(runs_a) and j < len(runs_b):
        run_a, run_b = runs_a[i], runs_b[j]
        if run_a.scope != run_b.scope or run_a.first + used_a != run_b.first + used_b:
            break
        step = min(run_a.blocks - used_a, run_b.blocks - used_b)
        shared += step
        used_a += step
        used_b += step
        if used_a == run_a.blocks:
            i, used_a = i + 1, 0
        if used_b == run_b.blocks:
            j, used_b = j + 1, 0
    return shared
