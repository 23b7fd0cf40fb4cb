"""How long idle contexts take to come back, by what their session waits for: counts that retention laws learn from."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import accumulate, takewhile
from math import inf
from operator import itemgetter

from orchestrator.messages import ReuseReading
from plant.kv.context import BUSY, KINDS

AGES_S = (10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 14_400.0, 86_400.0)
"""Upper edges of the bins of reuse ages: tool calls end within seconds, people within minutes, or the next day."""


class ReuseStats:
    """An empirical hazard of reuse by age, one for each kind.

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
