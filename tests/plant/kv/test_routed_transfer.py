"""State on its way: never faster than the line, striped over NICs, overlapped with layers, and not lost with a link."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.turn import KvRun, WorkerId
from plant.kv.context import BUSY, PHASE_NAMES
from plant.kv.fetch import Fetch
from plant.kv.routed_transfer import RoutedTransfer
from plant.kv.spec import MEASURED_EFFICIENCY, KvSpec, TierSpec
from plant.kv.tiered import TieredStore
from plant.links.lazy_link import LazyLink
from plant.links.shared_link import Link, SharedLink
from tests.plant.kv.world import BLOCK, HeapClock, Session, turn

MB = 1e6


def link(clock: HeapClock, rate: float) -> SharedLink:
    return SharedLink(clock, rate)  # type: ignore[arg-type]  # a heap is clock enough


def lazy(clock: HeapClock, rate: float) -> LazyLink:
    return LazyLink(clock, rate)  # type: ignore[arg-type]  # as above


LINKS = pytest.mark.parametrize("make", [link, lazy])


@given(
    sizes=st.lists(st.floats(1.0, 1e9), min_size=1, max_size=8),
    starts=st.lists(st.floats(0.0, 5.0), min_size=8, max_size=8),
    rates=st.tuples(st.floats(1e6, 1e9), st.floats(1e6, 1e9)),
    makes=st.tuples(*[st.sampled_from((link, lazy))] * 2),
)
@settings(max_examples=60)
def test_no_move_ends_before_its_bytes_at_line_rate(
    sizes: list[float], starts: list[float], rates: tuple[float, float], makes: Sequence[Callable[..., Link]]
) -> None:
    clock = HeapClock()
    links = [make(clock, rate) for make, rate in zip(makes, rates)]
    ends: dict[int, float] = {}
    for k, size in enumerate(sizes):

        def begin(k: int, size: float = size) -> None:
            RoutedTransfer(clock, [links], size, 0.001, size / 5e8, lambda move: ends.setdefault(k, clock.now()))  # type: ignore[arg-type]

        clock.at(starts[k], begin, k)
    clock.run()
    for k, size in enumerate(sizes):
        least = 0.001 + max(size / min(rates), size / 5e8)
        assert ends[k] >= starts[k] + least * (1 - 1e-9)
    for carrier in links:
        assert carrier.carried_bytes() == pytest.approx(sum(sizes), rel=1e-9)


def test_a_large_object_is_striped_over_all_nics_and_reaches_the_measured_share_of_the_line() -> None:
    # kvcache-ai/Mooncake: 4.5 GB over eight 200 Gb/s NICs in 31.65 ms.
    spec = KvSpec(bytes_per_token=1.0, network=TierSpec(capacity_bytes=1.0), nics=8, nic_bytes_per_s=25e9)
    assert 4.5e9 / spec.object_bytes_per_s(4.5e9) == pytest.approx(31.65e-3, rel=0.01)
    assert spec.object_bytes_per_s(20e6) == pytest.approx(MEASURED_EFFICIENCY * 25e9)  # too small for a second one


@LINKS
def test_a_stopped_link_holds_a_move_and_lets_it_go_on_from_where_it_was(make: Callable[..., Link]) -> None:
    clock, ends = HeapClock(), []
    only = make(clock, 10 * MB)
    RoutedTransfer(clock, [[only]], 100 * MB, 0.0, 0.0, lambda move: ends.append(clock.now()))  # type: ignore[arg-type]
    clock.at(4.0, lambda _: only.set_rate(0.0), None)
    clock.at(9.0, lambda _: only.set_rate(10 * MB), None)
    clock.run()
    assert ends == [pytest.approx(15.0)]


@LINKS
def test_what_is_left_of_a_move_goes_another_way_when_its_link_stops(make: Callable[..., Link]) -> None:
    clock, ends = HeapClock(), []
    first, second = make(clock, 10 * MB), make(clock, 20 * MB)
    move = RoutedTransfer(clock, [[first], [second]], 100 * MB, 0.0, 0.0, lambda move: ends.append(clock.now()))  # type: ignore[arg-type]

    def stop(_: object) -> None:
        first.set_rate(0.0)
        assert move.reroute()

    clock.at(4.0, stop, None)
    clock.run()
    assert ends == [pytest.approx(4.0 + 60 / 20)]
    assert first.carried_bytes() == pytest.approx(40 * MB)
    assert second.carried_bytes() == pytest.approx(60 * MB)


def store_with(clock: HeapClock, **changes: Any) -> TieredStore:
    network = TierSpec(capacity_bytes=math.inf, bytes_per_s=64e3 * 10, servers=changes.pop("servers", 1))
    settings: dict[str, Any] = {"bytes_per_token": 1000.0, "network": network, "efficiency_ratio": 1.0}
    spec = KvSpec(**{**settings, **changes})
    links = [link(clock, 1e12), link(clock, 1e12)]
    return TieredStore(clock, spec, links, lambda worker: int(worker) // 2)  # type: ignore[arg-type]


def put_one(store: TieredStore, clock: HeapClock, blocks: int) -> Any:
    session = Session(1)
    view = turn(1, session.grow(blocks), blocks * BLOCK + 1)
    store.put(view, blocks * BLOCK, WorkerId(0), BUSY)
    clock.run()
    return view


def test_a_fetch_takes_its_bytes_over_the_slowest_link_and_a_cached_prompt_still_computes_one_token() -> None:
    clock = HeapClock()
    store = store_with(clock)
    view = put_one(store, clock, 20)
    began, ready = clock.now(), []
    cached = min(store.match(view.context), view.prompt_tokens - 1)
    assert view.prompt_tokens - cached == 1
    assert store.fetch_s(view, cached, WorkerId(2)) == pytest.approx(2.0)
    store.fetch(view, cached, WorkerId(2), lambda _: ready.append(clock.now()), None)
    clock.run()
    assert ready == [pytest.approx(began + 2.0)]  # 20 blocks of 64 kB at 640 kB/s


def test_state_in_parts_lets_the_fill_begin_after_the_first() -> None:
    clock = HeapClock()
    store = store_with(clock, stages=4)
    view = put_one(store, clock, 20)
    began, ready = clock.now(), []
    fetch = store.fetch(view, 20 * BLOCK, WorkerId(2), lambda _: ready.append(clock.now()), None)
    clock.run()
    assert isinstance(fetch, Fetch)
    assert ready == [pytest.approx(began + 0.5)]
    assert fetch.done_s == pytest.approx(began + 2.0)


def test_a_copy_by_way_of_the_cpu_crosses_the_host_link_too() -> None:
    clock = HeapClock()
    node = TierSpec(capacity_bytes=1e12, bytes_per_s=64e3 * 5)
    direct, staged = store_with(clock, node=node), store_with(clock, node=node, placement="cpu")
    spans = []
    for store in (direct, staged):
        view = put_one(store, clock, 20)
        began = clock.now()
        store.fetch(view, 20 * BLOCK, WorkerId(2), lambda _: None, None)
        clock.run()
        spans.append(clock.now() - began)
    assert spans == [pytest.approx(2.0), pytest.approx(4.0)]


def test_new_state_goes_through_its_nodes_memory_to_the_shared_tier() -> None:
    clock = HeapClock()
    store = store_with(clock, node=TierSpec(capacity_bytes=1e12, bytes_per_s=64e3 * 20))
    view = turn(1, Session(1).grow(20), 20 * BLOCK + 1)
    store.put(view, 20 * BLOCK, WorkerId(0), BUSY)
    seen = []
    for at_s in (0.5, 1.5, 2.5):
        clock.run(at_s)
        context = store.ledger.contexts[1]
        seen.append((PHASE_NAMES[context.phase], store.ledger.used_bytes[0] > 0, store.ledger.used_bytes[1] > 0))
    assert seen == [("draining", True, True), ("draining", True, True), ("at rest", False, True)]
    assert store.stats.idle_hbm_byte_s == pytest.approx(20 * 64e3 * 1.0)  # it lay in HBM for the second of its copy


def test_new_state_waits_in_its_node_until_the_shared_tier_has_room() -> None:
    clock = HeapClock()
    block = 64e3
    store = store_with(
        clock,
        node=TierSpec(capacity_bytes=1e12, bytes_per_s=block * 20),
        network=TierSpec(capacity_bytes=30 * block, bytes_per_s=block * 10),
        ssd=TierSpec(capacity_bytes=1e12, bytes_per_s=block * 4),
    )
    for k in range(2):
        store.put(turn(k, Session(k).grow(20), 20 * BLOCK + 1), 20 * BLOCK, WorkerId(0), "tool")
        clock.run(2.5)
    # The second context finds 10 blocks free of 30: the first goes to SSD, 20 blocks at 4 a second.
    seen = []
    for at_s in (7.4, 8.5, 9.6):
        clock.run(at_s)
        seen.append((len(store.ledger.waiting), PHASE_NAMES[store.ledger.contexts[1].phase]))
    assert seen == [(1, "waiting"), (0, "draining"), (0, "at rest")]


def test_hot_blobs_come_from_the_racks_own_cache_once_they_have_come_by() -> None:
    clock = HeapClock()
    store = store_with(clock, rack_cache_bytes=1e9, hot_holders=3)
    head = KvRun(99, 0, 10)
    views = []
    for k in range(4):
        view = turn(k, Session(k, head).grow(2), 12 * BLOCK + 1)
        store.put(view, 12 * BLOCK, WorkerId(0), "tool")
        clock.run()
        views.append(view)
    for view in views[:2]:
        store.fetch(view, 12 * BLOCK, WorkerId(3), lambda _: None, None)
        clock.run()
    hits = store.stats.hit_tokens
    assert hits[1] == (12 + 2) * BLOCK
    assert hits[-1] == 10 * BLOCK
