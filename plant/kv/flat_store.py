"""What the cluster asks of a KV store, and the simplest one: flat, shared and without limits.

Blocks are named (scope, id) and prefix-chained, so what is stored of a scope is a set of id intervals, and the longest
stored prefix of a chain is found run by run, never token by token.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from orchestrator.turn import KvChain, TurnView, WorkerId
from plant.kv.context import BUSY
from plant.kv.last_places import LastPlaces
from plant.workers.job import Fetching


class KvStore(Protocol):
    """Finds, brings and keeps contexts."""

    def match(self, chain: KvChain, session: int | None = None) -> int:
        """Return the tokens of the longest leading part of the chain that is stored and can be resumed.

        `session`: whose next context this is, if it is known.
        """
        ...

    def near(self, chain: KvChain) -> Sequence[WorkerId]:
        """Return the workers that last decoded and last filled a context of the chain's last scope."""
        ...

    def fetch(
        self, turn: TurnView, cached_tokens: int, worker: WorkerId, ready: Callable[[Any], object], arg: object
    ) -> Fetching | None:
        """Bring what is kept of the turn's context to a worker; None: nothing has to move.

        `ready(arg)` is called when the fill may begin.
        """
        ...

    def fetch_s(self, turn: TurnView, cached_tokens: int, worker: WorkerId) -> float:
        """Estimate the seconds of that."""
        ...

    def put(self, turn: TurnView, tokens: int, worker: WorkerId, kind: str) -> None:
        """Keep the turn's context, `tokens` positions long, which lies at `worker`.

        Called when its fill has ended, with the kind `busy`; and when it has retired, with what its session waits for.
        """
        ...


class Intervals:
    """A set of integers as disjoint half-open intervals, merged as they touch."""

    __slots__ = ("_ends", "_starts")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, first: int, end: int) -> None:
        """Add first .. end - 1."""
        starts, ends = self._starts, self._ends
        low = bisect_right(ends, first - 1)  # the first interval that reaches `first`
        high = bisect_right(starts, end)  # one past the last interval that begins by `end`
        if low < high:
            if starts[low] <= first and end <= ends[low]:
                return
            first, end = min(first, starts[low]), max(end, ends[high - 1])
        starts[low:high] = [first]
        ends[low:high] = [end]

    def run(self, first: int) -> int:
        """Return how many consecutive members begin at `first`."""
        i = bisect_right(self._starts, first) - 1
        return max(0, self._ends[i] - first) if i >= 0 else 0


class FlatStore:
    """Keeps every context for ever, equally near to every worker."""

    def __init__(self) -> None:
        self._scopes: dict[int, Intervals] = {}
        self._places = LastPlaces()

    def match(self, chain: KvChain, session: int | None = None) -> int:
        """Return the tokens of the longest leading part of the chain that is stored."""
        blocks = 0
        for scope, first, length in chain.runs:
            kept = self._scopes.get(scope)
            if kept is None:
                break
            held = kept.run(first)
            if held < length:
                blocks += held
                break
            blocks += length
        return blocks * chain.block_tokens

    def fetch(
        self, turn: TurnView, cached_tokens: int, worker: WorkerId, ready: Callable[[Any], object], arg: object
    ) -> None:
        """Everything is everywhere."""

    def fetch_s(self, turn: TurnView, cached_tokens: int, worker: WorkerId) -> float:
        """Nothing takes time."""
        return 0.0

    def put(self, turn: TurnView, tokens: int, worker: WorkerId, kind: str) -> None:
        """Keep the chain's blocks, and remember who had the context last."""
        runs = turn.context.runs
        if not runs:
            return
        self._places.note(turn.context, kind, worker)
        if kind != BUSY:
            return  # all that has a name was kept when its fill ended
        for scope, first, length in runs:
            kept = self._scopes.get(scope)
            if kept is None:
                kept = self._scopes[scope] = Intervals()
            kept.add(first, first + length)

    def near(self, chain: KvChain) -> Sequence[WorkerId]:
        """Return the workers that last decoded and last filled a context of the chain's last scope."""
        return self._places.near(chain)
