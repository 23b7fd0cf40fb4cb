"""Contexts by what they wait for: who goes first when room is needed, and how long they took to come back."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, takewhile
from math import inf
from operator import itemgetter
from typing import Protocol

from orchestrator.messages import ReuseReading
from orchestrator.turn import KvChain, WorkerId
from plant.kv.routed_transfer import RoutedTransfer
from plant.kv.spec import NETWORK

# A turn is under way; a tool runs; a person reads; the session said goodbye; left behind by a compaction or a branch.
BUSY, TOOL, HUMAN, ENDED, COMPACTED, UNKNOWN = "busy", "tool", "human", "ended", "compacted", "unknown"
KINDS = (BUSY, TOOL, HUMAN, ENDED, COMPACTED, UNKNOWN)

AGES_S = (10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 14_400.0, 86_400.0)
"""Upper edges of the bins of reuse ages: tool calls end within seconds, people within minutes, or the next day."""


# What is being done to a context now. AT_REST contexts alone may be demoted or discarded.
AT_REST, STAGING, WAITING, DRAINING, DEMOTING = "at rest", "staging", "waiting", "draining", "demoting"


class PinnedReader(Protocol):
    """A fetch from a context that is still kept."""

    def stand_alone(self) -> None:
        """Hold what is needed itself: the context is about to be given up."""
        ...


class Context:
    """One context in the store.

    `blocks` is the chain's length; the first `settled` of them lie in tier `home`, the others in the node tier, on
    their way. `extra_bytes` belong to it alone: the partial last block, the generated suffix, a hybrid's last snapshot;
    they lie where its last block does. Of them `owed_bytes` travel with the session's next write: an answer's suffix
    has no ids, so nothing asks for it before. `passing_bytes` are in its node's DRAM on their way to the network tier;
    `node_bytes` is what it takes of the DRAM of node `node` in all.
    `guest` is a fetch that counts on this context's own holds. `shared` blocks lead both this chain and `compared`.
    """

    __slots__ = (
        "blocks", "chain", "compared", "extra_bytes", "guest", "home", "key", "kind", "marked", "move", "node",
        "node_bytes", "owed_bytes",
        "passing_bytes", "phase", "pins", "settled", "shared", "since_s", "stamp", "tail", "tokens", "worker",
    )  # fmt: skip

    def __init__(self, key: int, chain: KvChain, blocks: int, worker: WorkerId) -> None:
        self.key, self.chain, self.blocks, self.worker = key, chain, blocks, worker
        self.tokens = self.settled = self.extra_bytes = self.owed_bytes = self.passing_bytes = 0
        self.pins = self.stamp = self.shared = self.node_bytes = 0
        self.node = worker
        self.compared: KvChain | None = None
        self.guest: PinnedReader | None = None
        self.home = self.tail = NETWORK
        self.kind, self.phase = BUSY, AT_REST
        self.since_s = 0.0
        self.marked = False  # its end is known to the tree
        self.move: RoutedTransfer | None = None


class LruQueue:
    """The contexts of one tier, oldest first within each kind. Those in use or on their way are passed over."""

    def __init__(self) -> None:
        self.rows: dict[str, OrderedDict[int, Context]] = {kind: OrderedDict() for kind in KINDS}

    def take(self, context: Context) -> None:
        """Take a context off; harmless if it is not here."""
        self.rows[context.kind].pop(context.key, None)

    def of(self, kind: str) -> Iterator[Context]:
        """Yield the contexts of a kind that may go, oldest first."""
        return (context for context in self.rows[kind].values() if context.phase == AT_REST and not context.pins)

    def oldest(self) -> Context | None:
        """Return the context that has lain longest, of any kind."""
        best: Context | None = None
        for kind in KINDS:
            context = next(self.of(kind), None)
            if context is not None and (best is None or context.stamp < best.stamp):
                best = context
        return best

    def least_valued(self, now_s: float, lives_s: Mapping[str, float]) -> Context | None:
        """Return the context that has used up most of the life which its kind is given; the oldest, if none has any."""
        best, most = None, 0.0
        for kind in KINDS:
            context = next(self.of(kind), None)
            if context is not None:
                life_s = lives_s.get(kind, float("inf"))
                spent = (now_s - context.since_s) / life_s if life_s > 0.0 else float("inf")
                if spent > most:
                    best, most = context, spent
        return best or self.oldest()

    def __len__(self) -> int:
        return sum(len(row) for row in self.rows.values())


class ReuseStats:
    """How idle contexts come back, by kind: an empirical hazard.

    A context is followed by its session even after its state was discarded, since the text stays: a law that discards
    early does not blind itself. One that has not come back after the last edge is forgotten.
    """

    def __init__(self, ages_s: Sequence[float] = AGES_S) -> None:
        self.ages_s = tuple(ages_s)
        self._last = {kind: [0] * len(ages_s) for kind in KINDS}  # contexts by the last bin that they reached
        self._reused = {kind: [0] * len(ages_s) for kind in KINDS}
        self._resting: dict[int, tuple[str, float, int]] = {}  # oldest first
        self._sums = {kind: [0.0, 0.0, 0] for kind in KINDS}  # bytes, tokens, contexts

    def rests(self, session: int, kind: str, now_s: float, size_bytes: float, tokens: int) -> None:
        """A session's context begins to wait."""
        self._resting.pop(session, None)
        self._resting[session] = (kind, now_s, tokens)
        row = self._sums[kind]
        row[0] += size_bytes
        row[1] += tokens
        row[2] += 1

    def returns(self, session: int, now_s: float) -> int:
        """A session's next turn has come; return the tokens that it had left behind, 0 for a new one."""
        known = self._resting.pop(session, None)
        if known is None:
            return 0
        kind, since_s, tokens = known
        age_s = now_s - since_s
        last = bisect_left(self.ages_s, age_s)
        if last == len(self.ages_s):  # older than the last edge
            self._last[kind][-1] += 1
            return 0
        self._last[kind][last] += 1
        self._reused[kind][last] += 1
        return tokens

    def _forget(self, now_s: float) -> None:
        life_s = self.ages_s[-1]
        old = list(takewhile(lambda row: now_s - row[1][1] > life_s, self._resting.items()))
        for session, (kind, _, _) in old:
            del self._resting[session]
            self._last[kind][-1] += 1

    def readings(self, now_s: float, rebuild_s: Callable[[float], float]) -> tuple[ReuseReading, ...]:
        """Return what is known by kind, with those that still wait: `idle[i]` began age bin i, `reused[i]` ended in it.

        `rebuild_s` gives the seconds to compute so many tokens anew; it is asked for the mean context of each kind.
        Costs a step for every context at rest; ask seldom.
        """
        self._forget(now_s)
        last = {kind: row.copy() for kind, row in self._last.items()}
        rows = list(self._resting.values())  # oldest first
        begin = 0
        for age in reversed(range(len(self.ages_s))):
            edge_s = self.ages_s[age - 1] if age else -inf
            end = bisect_left(rows, -edge_s, begin, key=lambda row: row[1] - now_s)
            for kind, count in Counter(map(itemgetter(0), rows[begin:end])).items():
                last[kind][age] += count
            begin = end
        reached = {kind: tuple(accumulate(reversed(row)))[::-1] for kind, row in last.items()}
        return tuple(
            ReuseReading(
                kind=kind,
                ages_s=self.ages_s,
                idle=reached[kind],
                reused=tuple(self._reused[kind]),
                mean_bytes=size / max(count, 1),
                rebuild_s=rebuild_s(tokens / max(count, 1)),
            )
            for kind, (size, tokens, count) in self._sums.items()
            if kind != BUSY and reached[kind][0]
        )
