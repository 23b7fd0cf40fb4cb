"""Loads of expert ranks: which experts each holds, how hot the hottest is, and how many it touches.

Expert e is selected by a token with probability p_e (Zipf in popularity, capped at 1, summing to k). Unbalanced, the
experts stand on the ranks in an arbitrary order (a fixed shuffle). Balanced, `redundant` replicas go one by one to the
expert with the largest load per replica, and replicas, largest first, to the least loaded rank that has a free slot
(DeepSeek's EPLB). A rank holds ceil((E + redundant) / ranks) slots at most; the number need not divide.
"""

from __future__ import annotations

import functools
import heapq
import math
from dataclasses import dataclass

import numpy as np

from plant.model.kernels import Array

_KNOTS = np.geomspace(0.25, 65_536.0, 256)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankLoads:
    """The slowest rank beside the mean: its tokens, the copies sent to it, and the experts that n tokens touch on it.

    `touched[i]` belongs to `_KNOTS[i]` tokens; it is the largest over the ranks, as its weights are streamed.
    """

    load_ratio: float
    copy_ratio: float
    touched: tuple[float, ...]

    def distinct(self, tokens: Array) -> Array:
        """Return the experts that `tokens` tokens touch on the rank that touches most."""
        at = np.log(np.maximum(tokens, _KNOTS[0]))
        return np.asarray(np.interp(at, np.log(_KNOTS), self.touched), dtype=float)


def popularity(experts: int, per_token: int, skew: float) -> Array:
    """Return the probability that a token selects each expert, most popular first."""
    ranks = np.arange(1, experts + 1, dtype=float) ** -skew
    share = np.minimum(per_token * ranks / ranks.sum(), 0.999999)
    for _ in range(20):
        free = share < 0.999999
        spare = per_token - share[~free].sum()
        share[free] = np.minimum(spare * ranks[free] / ranks[free].sum(), 0.999999)
    return np.asarray(share)


def slots_per_rank(experts: int, redundant: int, ranks: int) -> int:
    """Return how many experts and replicas the fullest rank holds."""
    return math.ceil((experts + redundant) / ranks)


@functools.lru_cache(maxsize=256)
def rank_loads(experts: int, per_token: int, ranks: int, redundant: int, skew: float, balanced: bool) -> RankLoads:
    """Return the slowest of `ranks` ranks; `redundant` replicas are placed by load, as where `balanced`."""
    share = popularity(experts, per_token, skew)
    if redundant or balanced:
        held = _balanced(share, ranks, redundant)
    else:
        shuffled = share[np.random.default_rng(0).permutation(experts)]
        held = [np.asarray(part) for part in np.array_split(shuffled, ranks)]
    loads = np.asarray([part.sum() for part in held])
    met = np.asarray([-np.expm1(np.log1p(-np.minimum(part, 0.999999)).sum()) for part in held])
    even = -math.expm1(per_token * math.log1p(-1.0 / ranks)) if ranks > 1 else 1.0
    touched = np.max([(-np.expm1(_KNOTS[:, None] * np.log1p(-part))).sum(axis=1) for part in held], axis=0)
    return RankLoads(
        load_ratio=float(loads.max() * ranks / per_token),
        copy_ratio=max(float(met.max()) / even, 1.0),
        touched=tuple(touched.tolist()),
    )


def _balanced(share: Array, ranks: int, redundant: int) -> list[Array]:
    """Return the loads of the slots of every rank."""
    copies = np.ones(len(share), dtype=int)
    heap = [(-load, e) for e, load in enumerate(share.tolist())]
    heapq.heapify(heap)
    for _ in range(redundant):
        _, e = heap[0]
        copies[e] += 1
        heapq.heapreplace(heap, (-float(share[e]) / int(copies[e]), e))
    pieces = sorted(np.repeat(share / copies, copies).tolist(), reverse=True)
    room = slots_per_rank(len(share), redundant, ranks)
    held: list[list[float]] = [[] for _ in range(ranks)]
    order = [(0.0, r) for r in range(ranks)]
    for piece in pieces:
        load, r = heapq.heappop(order)
        held[r].append(piece)
        if len(held[r]) < room:
            heapq.heappush(order, (load + piece, r))
    return [np.asarray(part) for part in held if part]
