"""Match the length of a context to workers prepared for it: short and long prefill, short- and long-context decode.

    g     the class of the turn: bounds_tokens[g-1] <= prompt < bounds_tokens[g]     -
    i*    the less loaded of two workers drawn among those prepared for g            turns

A long fill in front of short ones makes all of them late; intervals of size keep them apart. Where the turn's own class
has no open worker it may spill to the next longer class, never to a shorter one. Source: essay, sections 17 and 21
(prepared configurations); Harchol-Balter, Crovella and Murta, "On choosing a task assignment policy for a distributed
server system" (1999). Missing data: in a pool with none of the named configurations, the least loaded worker.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any, ClassVar

from orchestrator.ports import PoolView
from orchestrator.rng import uniform
from orchestrator.turn import TurnView, WorkerId
from policies.parameters import Count

STREAM = 0x434F4E54455854  # a stream of its own, so that the draw is independent of the view's


def _one_configuration_list_a_class(values: Mapping[str, Any]) -> str:  # Any: a parameter of any type
    bounds = list(values["bounds_tokens"])
    if bounds != sorted(set(bounds)):
        return "bounds_tokens must rise"
    if len(values["configurations"]) != len(bounds) + 1:
        return "configurations needs one entry more than bounds_tokens"
    return ""


class ContextClass:
    """Choose among the workers prepared for the turn's length.

    Parameters
    ----------
    bounds_tokens : tuple of int, ascending
        Upper edges of all classes but the last.
    configurations : tuple of tuples of str
        Names prepared for each class, one entry more than bounds.
    spill : bool
        Whether a class without an open worker borrows one of a longer class.
    """

    no_linearisation = "a choice among workers at an instant: to the loops above it is a part of the pool"
    selective = True  # a full class refuses its turns, and no others
    example: ClassVar = {"bounds_tokens": [8192], "configurations": [["prefill", "decode", "short"], ["long"]]}
    rules = (_one_configuration_list_a_class,)

    def __init__(
        self,
        *,
        bounds_tokens: tuple[Count, ...],
        configurations: tuple[tuple[str, ...], ...],
        spill: bool = True,
    ) -> None:
        self.bounds_tokens = list(bounds_tokens)
        self.classes = [frozenset(names) for names in configurations]
        self.spill = spill
        self._groups: list[list[WorkerId]] = []
        self._left = self._sorted_size = 0

    def choose(self, turn: TurnView, pool: PoolView) -> WorkerId | None:
        """Return a worker of the turn's class, or of a longer one."""
        if self._left <= 0 or self._sorted_size != len(pool):
            self._sort(pool)
        self._left -= 1
        if not any(self._groups):
            return pool.least_loaded()
        first = bisect_right(self.bounds_tokens, turn.prompt_tokens)
        for group in self._groups[first:] if self.spill else self._groups[first : first + 1]:
            worker = self._best(group, turn, pool)
            if worker is not None:
                return worker
        return None

    def _best(self, group: list[WorkerId], turn: TurnView, pool: PoolView) -> WorkerId | None:
        drawn = [group[int(uniform(STREAM, turn.key, k) * len(group))] for k in range(2)] if group else []
        candidates = [w for w in drawn if pool.open(w)] or [w for w in group if pool.open(w)]
        return min(candidates, key=lambda w: (pool.view(w).load_turns, w), default=None)

    def _sort(self, pool: PoolView) -> None:
        """Sort the pool's workers by class; done once for as many decisions as there are workers."""
        views = list(pool)
        self._groups = [[v.worker for v in views if v.configuration in names] for names in self.classes]
        self._left = self._sorted_size = len(views)
