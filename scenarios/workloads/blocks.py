"""Run-length encoded block ids, and how much of a prompt an infinite cache has seen before.

A prompt's blocks are a list of ids, mostly consecutive, so the list is stored as runs (first, count). Ids are
prefix-chained: an id identifies the content of its block and of all blocks before it. An infinite cache therefore
holds a prompt's longest leading run of ids already seen in the naming scope.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Run = tuple[int, int]
"""(first id, number of blocks), blocks >= 1."""


def runs_of(ids: Sequence[int] | NDArray[np.int64]) -> list[Run]:
    """Return the ids as maximal runs of consecutive ids, in order."""
    if len(ids) == 0:
        return []
    array = np.asarray(ids, dtype=np.int64)
    starts = np.flatnonzero(np.diff(array) != 1) + 1
    edges = [0, *starts.tolist(), len(array)]
    firsts = array[edges[:-1]].tolist()
    return [(first, edges[k + 1] - edges[k]) for k, first in enumerate(firsts)]


def ids_of(runs: Iterable[Run]) -> list[int]:
    """Return the runs as a plain list of ids."""
    return [i for first, blocks in runs for i in range(first, first + blocks)]


def count(runs: Iterable[Run]) -> int:
    """Return the number of blocks in the runs."""
    return sum(blocks for _, blocks in runs)


def head(runs: Iterable[Run], blocks: int) -> list[Run]:
    """Return the first `blocks` blocks of the runs (all of them if there are fewer)."""
    out: list[Run] = []
    for first, length in runs:
        if blocks <= 0:
            break
        out.append((first, min(length, blocks)))
        blocks -= length
    return out


def tail(runs: Iterable[Run], blocks: int) -> list[Run]:
    """Return the runs without their first `blocks` blocks."""
    out: list[Run] = []
    for first, length in runs:
        if blocks < length:
            cut = max(blocks, 0)
            out.append((first + cut, length - cut))
        blocks -= length
    return out


def join(runs: Iterable[Run]) -> list[Run]:
    """Return the runs with neighbours merged where one continues the other."""
    out: list[Run] = []
    for first, length in runs:
        if out and out[-1][0] + out[-1][1] == first:
            out[-1] = (out[-1][0], out[-1][1] + length)
        else:
            out.append((first, length))
    return out


def common(a: Sequence[Run], b: Sequence[Run]) -> int:
    """Return how many leading blocks two chains share: O(runs)."""
    shared = 0
    i = j = 0
    used_a = used_b = 0
    while i < len(a) and j < len(b):
        if a[i][0] + used_a != b[j][0] + used_b:
            break
        step = min(a[i][1] - used_a, b[j][1] - used_b)
        shared += step
        used_a += step
        used_b += step
        if used_a == a[i][1]:
            i, used_a = i + 1, 0
        if used_b == b[j][1]:
            j, used_b = j + 1, 0
    return shared


def before_repeat(runs: Sequence[Run]) -> int | None:
    """Return the number of blocks before the first repeated id, or None where all ids are unique."""
    if len(runs) < 2:
        return None
    ordered = sorted(runs)
    if all(a[0] + a[1] <= b[0] for a, b in pairwise(ordered)):
        return None
    seen, blocks = SeenBlocks(), 0
    for first, length in runs:
        fresh = next((k for k in range(length) if seen.leading_blocks([(first + k, 1)])), length)
        blocks += fresh
        if fresh < length:
            break
        seen.add([(first, length)])
    return blocks


class SeenBlocks:
    """The ids that an infinite cache holds, as disjoint intervals in order."""

    __slots__ = ("_ends", "_firsts")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._ends: list[int] = []

    def leading_blocks(self, runs: Iterable[Run]) -> int:
        """Return the number of leading blocks of the runs that were all seen before."""
        leading = 0
        for first, blocks in runs:
            at = bisect_right(self._firsts, first) - 1
            seen_blocks = self._ends[at] - first if at >= 0 else 0
            if seen_blocks < blocks:
                return leading + max(seen_blocks, 0)
            leading += blocks
        return leading

    def add(self, runs: Iterable[Run]) -> None:
        """Add these ids."""
        for first, blocks in runs:
            end = first + blocks
            low = bisect_right(self._firsts, first) - 1
            if low >= 0 and self._ends[low] >= first:
                if self._ends[low] >= end:
                    continue
                first = self._firsts[low]
            else:
                low += 1
            high = bisect_right(self._firsts, end)
            if high > low:
                end = max(end, self._ends[high - 1])
            self._firsts[low:high] = [first]
            self._ends[low:high] = [end]

    def runs(self) -> Iterator[Run]:
        """Yield the ids as runs, in order."""
        for first, end in zip(self._firsts, self._ends):
            yield first, end - first

    def __len__(self) -> int:
        return sum(self._ends) - sum(self._firsts)


def in_several(groups: Iterable[Iterable[Iterable[Run]]]) -> SeenBlocks:
    """Return the ids that occur in more than one group of chains (such as the prompts of a conversation)."""
    edges: list[tuple[int, int]] = []
    for chains in groups:
        seen_blocks = SeenBlocks()
        for chain in chains:
            seen_blocks.add(chain)
        for first, blocks in seen_blocks.runs():
            edges.append((first, 1))
            edges.append((first + blocks, -1))
    edges.sort()
    shared, holders, since = SeenBlocks(), 0, 0
    for at, step in edges:
        if holders >= 2 and at > since:
            shared.add([(since, at - since)])
        holders += step
        since = at
    return shared
