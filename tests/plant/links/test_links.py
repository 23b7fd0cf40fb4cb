"""Processor sharing: exact against a step-by-step fluid, and against queueing theory."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.virtual_clock import VirtualClock, run_virtual
from plant.links.lazy_link import LazyLink
from plant.links.shared_link import SharedLink
from plant.links.transfer import Transfer
from tests.plant.links.owner import join


def fluid_ends(flows: list[tuple[float, float]], rate: float, cap: float) -> list[float]:
    """Ends of (arrival, size) flows on one shared link, from change to change, remaining bytes scanned."""
    left = {i: size for i, (_, size) in enumerate(flows)}
    ends = [0.0] * len(flows)
    now, live = 0.0, set[int]()
    coming = sorted(range(len(flows)), key=lambda i: flows[i][0])
    while coming or live:
        share = min(rate / len(live), cap) if live else 0.0
        first = min((left[i] for i in live), default=math.inf)
        change = now + first / share if live else math.inf
        arrival = flows[coming[0]][0] if coming else math.inf
        then = min(change, arrival)
        for i in live:
            left[i] -= (then - now) * share
        now = then
        if arrival <= change:
            live.add(coming.pop(0))
        for i in [i for i in live if left[i] <= 1e-9]:
            live.remove(i)
            ends[i] = now
    return ends


flows = st.lists(
    st.tuples(st.integers(0, 300).map(lambda k: k * 0.0141421), st.integers(1, 400).map(lambda k: k * 0.3141592)),
    min_size=1,
    max_size=14,
)


@given(flows, st.sampled_from([math.inf, 3.0, 40.0]))
@settings(max_examples=60, deadline=None)
def test_ends_equal_a_fluid_that_rescans_every_flow(flows: list[tuple[float, float]], cap: float) -> None:
    async def main(clock: VirtualClock) -> list[float]:
        link = SharedLink(clock, 50.0, cap)
        ends = [0.0] * len(flows)

        def begin(i: int) -> None:
            join(clock, link, flows[i][1], lambda i: ends.__setitem__(i, clock.now()), i)

        for i, (at, _) in enumerate(flows):
            clock.at(at, begin, i)
        await clock.sleep_until(1e4)
        assert link.live == 0
        assert link.moved_bytes == pytest.approx(sum(size for _, size in flows))
        return ends

    ends = run_virtual(main)
    assert ends == pytest.approx(fluid_ends(flows, 50.0, cap), rel=1e-9)
    for end, (at, size) in zip(ends, flows):
        assert end - at >= size / min(50.0, cap) * (1 - 1e-9)


class Watch:
    """The owner of one flow of a lazy link, which learns of its end as a transfer does, by a timer of its own."""

    def __init__(self, clock: VirtualClock, link: LazyLink, size: float, end: Callable[[float], None]) -> None:
        self._clock, self._link, self._end = clock, link, end
        self._sure = True
        self.flow = link.enter(size, self, clock.now())
        self._entry: Any = None
        self._wait(self.flow.end_s)

    def passed(self) -> None:
        raise AssertionError("a lazy link calls nobody")

    def delayed(self) -> None:
        self._sure = False

    def retime(self) -> None:
        self._sure = False
        if self._entry is not None:
            self._clock.cancel_at(self._entry)
        self._wait(self._link.predict_s(self.flow, self._clock.now()))

    def _wait(self, end_s: float) -> None:
        self._entry = self._clock.at(end_s, self._look, None) if end_s < math.inf else None

    def _look(self, _: None) -> None:
        if self._sure:
            assert self._link.predict_s(self.flow, self._clock.now()) <= self._clock.now() * (1 + 1e-12)
        end_s = self._link.predict_s(self.flow, self._clock.now())
        if end_s > self._clock.now() * (1 + 2e-15):
            self._wait(end_s)
        else:
            self._end(end_s)


@given(flows, st.booleans())
@settings(max_examples=80, deadline=None)
def test_lazy_links_predict_the_ends_that_others_call(flows: list[tuple[float, float]], disturbed: bool) -> None:
    """Whatever becomes of the link and of others on it."""

    async def main(clock: VirtualClock, lazy: bool) -> tuple[list[float], float]:
        link = LazyLink(clock, 50.0) if lazy else SharedLink(clock, 50.0)
        ends = [0.0] * len(flows)
        handles: list[Any] = [None] * len(flows)

        def begin(i: int) -> None:
            if isinstance(link, LazyLink):
                handles[i] = Watch(clock, link, flows[i][1], lambda end: ends.__setitem__(i, end)).flow
            else:
                handles[i] = join(clock, link, flows[i][1], lambda i: ends.__setitem__(i, clock.now()), i)

        for i, (at, _) in enumerate(flows):
            clock.at(at, begin, i)
        if disturbed:
            clock.at(1.03, lambda _: link.set_rate(20.0), None)
            clock.at(2.01, lambda _: link.set_rate(0.0), None)
            clock.at(2.51, lambda _: link.set_rate(60.0), None)
            clock.at(3.07, lambda _: handles[0] is None or link.leave(handles[0]), None)
        await clock.sleep_until(1e4)
        assert link.load() == 0
        return ends[1:], link.carried_bytes()

    called, carried = run_virtual(lambda clock: main(clock, lazy=False))
    predicted, also = run_virtual(lambda clock: main(clock, lazy=True))
    assert predicted == pytest.approx(called, rel=1e-9)
    assert also == pytest.approx(carried, rel=1e-9)


def test_leaving_frees_the_share_at_that_instant() -> None:
    async def main(clock: VirtualClock) -> float:
        link = SharedLink(clock, 10.0)
        done = clock.future()
        join(clock, link, 100.0, done.set_result, None)
        other = join(clock, link, 100.0, lambda _: None, None)
        await clock.sleep_until(4.0)  # each has moved 20
        link.leave(other)
        link.leave(other)
        assert link.moved_bytes == pytest.approx(20.0)
        await done
        return clock.now()

    assert run_virtual(main) == pytest.approx(4.0 + 80.0 / 10.0)


def test_a_link_that_goes_down_keeps_what_was_moved_and_goes_on_later() -> None:
    async def main(clock: VirtualClock) -> float:
        link = SharedLink(clock, 10.0)
        done = clock.future()
        join(clock, link, 100.0, done.set_result, None)
        clock.at(3.0, link.set_rate, 0.0)
        clock.at(50.0, link.set_rate, 20.0)
        await done
        return clock.now()

    assert run_virtual(main) == pytest.approx(50.0 + 70.0 / 20.0)


def test_a_transfer_ends_with_its_slowest_link_after_the_latency_and_cancels_on_both() -> None:
    async def main(clock: VirtualClock) -> float:
        slow, fast = SharedLink(clock, 5.0), SharedLink(clock, 50.0)
        done = clock.future()
        Transfer(clock, (slow, fast), 100.0, 0.5, 0.0, done.set_result)
        other = Transfer(clock, (slow, fast), 1e6, 0.0, 0.0, lambda _: None)
        await clock.sleep_until(0.5)
        other.cancel()
        await done
        assert slow.live == fast.live == 0
        return clock.now()

    assert run_virtual(main) == pytest.approx(20.5)


@pytest.mark.slow
@pytest.mark.parametrize("sizes", ["exponential", "two sizes"])
def test_m_g_1_processor_sharing_depends_on_the_mean_size_alone(sizes: str) -> None:
    """E[T | size s] = s / (C (1 - rho)) whatever the sizes are (Kleinrock, Queueing Systems II, 4.4)."""
    rng, count, rho = np.random.default_rng(5), 120_000, 0.7
    size = rng.exponential(1.0, count) if sizes == "exponential" else rng.choice([0.4, 6.4], count, p=[0.9, 0.1])
    at = np.cumsum(rng.exponential(size.mean() / rho, count)).tolist()
    stay = np.zeros(count)

    async def main(clock: VirtualClock) -> None:
        link = SharedLink(clock, 1.0)

        def begin(i: int) -> None:
            join(clock, link, float(size[i]), end, i)

        def end(i: int) -> None:
            stay[i] = clock.now() - at[i]

        for i, when in enumerate(at):
            clock.at(when, begin, i)
        await clock.sleep_until(at[-1] + 1e4)

    run_virtual(main)
    assert stay.mean() == pytest.approx(size.mean() / (1 - rho), rel=0.04)
    small = size < np.median(size) if sizes == "exponential" else size < 1.0
    assert stay[small].mean() == pytest.approx(size[small].mean() / (1 - rho), rel=0.04)
    # Little's law holds by the same numbers: L = lambda E[T] = rho / (1 - rho).
    assert stay.sum() / at[-1] == pytest.approx(rho / (1 - rho), rel=0.06)


def test_cancelled_tasks_leave_nothing_behind() -> None:
    async def main(clock: VirtualClock) -> int:
        link = SharedLink(clock, 1.0)
        handles = [join(clock, link, 1.0 + k, lambda _: None, None) for k in range(5)]
        await clock.sleep_until(0.1)
        for handle in handles:
            link.leave(handle)
        await asyncio.sleep(1.0)
        return link.live

    assert run_virtual(main) == 0
