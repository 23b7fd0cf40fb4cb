"""What the tests of KV state stand on: chains whose ids are prefix-chained, and turns."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.turn import ClassName, KvChain, KvRun, TurnId, TurnView
from tests.scenarios.workloads.kit import HeapClock

__all__ = ["BLOCK", "HeapClock", "Session", "names", "runs_of", "turn"]

BLOCK = 64


class Session:
    """A conversation whose contexts grow, branch and are compacted, with ids as a trace would name them."""

    def __init__(self, scope: int, head: KvRun | None = None) -> None:
        self.scope, self.head = scope, head
        self.ids: list[int] = []
        self.next_id = 1

    def grow(self, blocks: int, keep: int | None = None) -> KvChain:
        """Keep the first `keep` blocks of the last context (None: all), and append new ones."""
        if keep is not None:
            del self.ids[keep:]
        self.ids += range(self.next_id, self.next_id + blocks)
        self.next_id += blocks
        return self.chain()

    def chain(self) -> KvChain:
        runs = [] if self.head is None else [self.head]
        for first, blocks in runs_of(self.ids):
            runs.append(KvRun(self.scope, first, blocks))
        return KvChain(tuple(runs), BLOCK)


def runs_of(ids: list[int]) -> Iterator[tuple[int, int]]:
    """Yield (first, blocks) of maximal runs."""
    start = 0
    for k in range(1, len(ids) + 1):
        if k == len(ids) or ids[k] != ids[k - 1] + 1:
            yield ids[start], k - start
            start = k


def names(chain: KvChain, low: int = 0, high: int | None = None) -> list[tuple[int, int, int]]:
    """Return (scope, id, position) of the blocks `low .. high - 1` of a chain."""
    every = [(run.scope, run.first + k) for run in chain.runs for k in range(run.blocks)]
    return [(scope, block, at) for at, (scope, block) in enumerate(every)][low:high]


def turn(session: int, chain: KvChain, tokens: int, turn_id: int = 0) -> TurnView:
    """Return a turn of `tokens` prompt tokens with this context."""
    return TurnView(TurnId(turn_id), turn_id, ClassName("chat"), session, 0, 0.0, tokens, chain)
