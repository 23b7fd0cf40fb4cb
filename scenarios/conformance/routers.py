"""The same suite for routing laws: a choice is an open worker of the pool or none, and looking changes nothing."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.ports import Router, WorkerView
from orchestrator.rng import finalise, uniform
from orchestrator.turn import EMPTY_CHAIN, ClassName, ConfigurationName, KvChain, TurnId, TurnView, WorkerId
from scenarios.conformance.finding import Finding, Nonconforming
from scenarios.conformance.kit import OPTIONS, asked, source_is_pure

NAMES = ("prefill", "decode", "short", "long")


class BenchPool:
    """A pool made by hand: loads, slots and who holds the prefix."""

    def __init__(
        self, views: Sequence[WorkerView], holders: Sequence[tuple[WorkerId, int]] = (), line: int = 0
    ) -> None:
        self._views = {view.worker: view for view in views}
        self._holders = [pair for pair in holders if pair[0] in self._views]
        self._line = line

    def sample(self, k: int, key: int) -> Sequence[WorkerId]:
        """Draw by hash, as the real view does."""
        names = list(self._views)
        hashed = finalise(key)
        return [names[int(uniform(hashed, i) * len(names))] for i in range(k)] if names else []

    def least_loaded(self) -> WorkerId | None:
        """Return the open worker with the fewest turns."""
        views = [view for view in self._views.values() if self.open(view.worker)]
        return min(views, key=lambda v: (v.load_turns, v.worker)).worker if views else None

    def holding(self, prefix: KvChain) -> Sequence[tuple[WorkerId, int]]:
        """Return the holders given."""
        return self._holders

    def view(self, worker: WorkerId) -> WorkerView:
        """Return one worker."""
        return self._views[worker]

    def open(self, worker: WorkerId) -> bool:
        """Tell whether it has a slot."""
        view = self._views.get(worker)
        return view is not None and (view.slots is None or view.load_turns < view.slots)

    def cost_s(self, worker: WorkerId, turn: TurnView) -> float | None:
        """Return a cost that depends on the worker; None at every third."""
        return None if worker % 3 == 0 else 0.1 * (worker % 7)

    def waiting(self) -> int:
        """Return the line given."""
        return self._line

    def __len__(self) -> int:
        return len(self._views)

    def __iter__(self) -> Iterator[WorkerView]:
        return iter(self._views.values())


@st.composite
def pools(draw: Any) -> BenchPool:
    """Draw a pool of 0 to 12 workers, full and empty ones among them."""
    loads = draw(st.lists(st.tuples(st.integers(0, 40), st.sampled_from([None, 1, 4, 32])), max_size=12))
    views = [
        WorkerView(
            worker=WorkerId(3 * i + 1),
            rack=i // 4,
            configuration=ConfigurationName(NAMES[i % len(NAMES)]),
            slots=slots,
            load_turns=load,
            load_tokens=1000 * load,
        )
        for i, (load, slots) in enumerate(loads)
    ]
    holders = [(view.worker, 4096 >> i) for i, view in enumerate(views[: draw(st.integers(0, 3))])]
    return BenchPool(views, holders, draw(st.integers(0, 50)))


@st.composite
def turns(draw: Any) -> TurnView:
    """Draw a turn."""
    key = draw(st.integers(0, 2**64 - 1))
    tokens = draw(st.sampled_from([1, 100, 8191, 8192, 10**6]))
    return TurnView(TurnId(key % 1000), key, ClassName("default"), key % 97, 0, 0.0, tokens, EMPTY_CHAIN)


def check_router(make: Callable[[], Router]) -> list[Finding]:
    """Put every question to the routers that `make` makes; return one finding each."""
    return [
        asked("chooses an open worker or none, deterministic and pure", lambda: choices_are_sound(make)),
        asked("no clock, chance or input in its source", lambda: source_is_pure(type(make()))),
    ]


def choices_are_sound(make: Callable[[], Router]) -> None:
    """Show the router any pools and turns, pools changing under it."""

    @OPTIONS
    @given(st.lists(st.tuples(turns(), pools()), min_size=1, max_size=6))
    def ask(shown: list[tuple[TurnView, BenchPool]]) -> None:
        first, second = make(), make()
        for turn, pool in shown:
            before = copy.deepcopy(vars(pool))
            chosen = first.choose(turn, pool)
            if vars(pool) != before:
                raise Nonconforming("the pool was changed by looking at it")
            if chosen != second.choose(turn, pool):
                raise Nonconforming(f"two routers made alike choose differently for {turn}")
            if chosen is not None and not pool.open(chosen):
                raise Nonconforming(f"worker {chosen} is not open (or not in the pool): {list(pool)}")

    ask()
