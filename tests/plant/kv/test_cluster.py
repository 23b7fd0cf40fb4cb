"""The tiers behind a cluster: fetches before fills, overlap with layers, true cost of rebuilding, idle memory."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from orchestrator.messages import RetentionCommand, RetentionRule, Role
from orchestrator.turn import ClassName, KvChain, KvRun, TurnId, TurnView, WorkerId
from orchestrator.virtual_clock import VirtualClock, run_virtual
from plant.cluster import Cluster
from plant.cluster_spec import RackSpec
from plant.faults import FaultSpec
from plant.hidden_turns import HiddenTurn, HiddenTurns
from plant.kv.spec import KvSpec, TierSpec
from plant.workers.fill import chunk_spans_s
from tests.plant.factory import ANY, TIMES, cluster, configuration

BYTES = 1000.0
BLOCKS = 80  # 5,120 tokens, 5.12 MB
FILL = configuration("fill", Role.FILL, chunk_tokens=512, kv_bytes_per_token=BYTES)
DECODE = configuration("decode", Role.DECODE, slots=8, kv_bytes_per_token=BYTES, kv_capacity_tokens=100_000)
W0, W1 = WorkerId(0), WorkerId(1)


def chain(blocks: int) -> KvChain:
    return KvChain((KvRun(7, 1, blocks),), 64)


class World:
    """One fill worker, one decode worker, tiers."""

    def __init__(
        self,
        clock: VirtualClock,
        faults: tuple[FaultSpec, ...] = (),
        racks: tuple[RackSpec, ...] = (),
        kv: KvSpec | None = None,
        **changes: Any,
    ) -> None:
        settings: dict[str, Any] = {
            "bytes_per_token": BYTES,
            "network": TierSpec(capacity_bytes=math.inf, bytes_per_s=1e6),
            "efficiency_ratio": 1.0,
        }
        self.clock = clock
        self.hidden_turns = HiddenTurns()
        self.plant: Cluster = cluster(
            clock,
            self.hidden_turns,
            (FILL, 1),
            (DECODE, 1),
            kv=kv or KvSpec(**{**settings, **changes}),
            faults=faults,
            racks=racks or None,
        )
        self.born = 0

    def turn(self, blocks: int, extra: int = 100, output: int = 5, waits_for: str = "tool") -> TurnView:
        turn_id = TurnId(self.born)
        self.born += 1
        self.hidden_turns[turn_id] = HiddenTurn(output, (), None, waits_for)
        return TurnView(turn_id, turn_id, ClassName("chat"), 1, 0, self.clock.now(), blocks * 64 + extra, chain(blocks))

    async def serve(self, turn: TurnView) -> tuple[float, int]:
        """Serve a turn whole; return the seconds to its first token, and what was cached."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        filled = await self.plant.fill(W0, turn, ANY)
        first_s = loop.time() - began
        staged = await self.plant.stage(W1, filled.kv)
        await self.plant.decode(W1, turn, staged)
        return first_s, filled.cached_tokens


def run(main: Callable[[VirtualClock], Awaitable[Any]]) -> Any:
    return run_virtual(main)  # type: ignore[arg-type]  # every main here is a coroutine function


def fill_s(new: int, cached: int) -> float:
    return sum(chunk_spans_s(TIMES, new, cached, 512))


def test_a_kept_context_is_fetched_before_its_fill_and_a_discarded_one_is_computed_anew() -> None:
    async def main(clock: VirtualClock) -> tuple[Any, ...]:
        world = World(clock)
        cold = await world.serve(world.turn(BLOCKS))
        await clock.sleep_until(100.0)
        asked = world.turn(BLOCKS)
        estimate = world.plant.cost_s(W0, asked)
        warm = await world.serve(asked)
        await clock.sleep_until(200.0)
        rule = RetentionRule(kind="tool", demote_after_s=0.0, discard_after_s=0.0)
        world.plant.apply(RetentionCommand(rules=(rule,)))
        again = await world.serve(world.turn(BLOCKS))
        assert world.plant.tiers is not None
        return cold, warm, again, estimate, world.plant.tiers.stats.rebuilt_tokens

    cold, warm, again, estimate, rebuilt = run(main)
    tokens = BLOCKS * 64
    assert cold == (pytest.approx(fill_s(tokens + 100, 0)), 0)
    assert warm == (pytest.approx(5.12 + fill_s(100, tokens)), tokens)
    assert estimate == pytest.approx(warm[0])
    assert again == (pytest.approx(cold[0]), 0)
    assert rebuilt == tokens + 100


def test_a_fully_cached_prompt_still_computes_a_token() -> None:
    async def main(clock: VirtualClock) -> tuple[float, int]:
        world = World(clock)
        await world.serve(world.turn(BLOCKS, extra=0))
        await clock.sleep_until(100.0)
        return await world.serve(world.turn(BLOCKS, extra=0))

    assert run(main)[1] == BLOCKS * 64 - 1


@pytest.mark.parametrize("rate", [1e6, 1e9])
def test_state_in_parts_overlaps_the_fill_like_a_flow_shop_of_equal_jobs(rate: float) -> None:
    stages = 8

    async def main(clock: VirtualClock) -> tuple[float, int]:
        world = World(clock, stages=stages, network=TierSpec(capacity_bytes=math.inf, bytes_per_s=rate))
        await world.serve(world.turn(BLOCKS, extra=3000))
        await clock.sleep_until(100.0)
        return await world.serve(world.turn(BLOCKS, extra=3000))

    first_s, cached = run(main)
    fetch_s, compute_s = BLOCKS * 64 * BYTES / rate, fill_s(3000, BLOCKS * 64)
    assert cached == BLOCKS * 64
    assert first_s == pytest.approx(max(fetch_s / stages + compute_s, fetch_s + compute_s / stages), rel=1e-6)


@pytest.mark.parametrize("rate", [1e6, 4e7, 1e9])
def test_an_aggregated_worker_waits_for_the_last_part_like_a_fill_worker(rate: float) -> None:
    stages = 8

    async def main(clock: VirtualClock) -> tuple[float, int]:
        network = TierSpec(capacity_bytes=math.inf, bytes_per_s=rate)
        kv = KvSpec(bytes_per_token=BYTES, network=network, efficiency_ratio=1.0, stages=stages)
        hidden_turns = HiddenTurns()
        both = configuration("both", Role.AGGREGATED, slots=4, chunk_tokens=512, kv_capacity_tokens=100_000)
        plant = cluster(clock, hidden_turns, (both, 1), kv=kv)
        spans = []
        for k in range(2):
            turn_id = TurnId(k)
            hidden_turns[turn_id] = HiddenTurn(5, (), None, "tool")
            turn = TurnView(turn_id, k, ClassName("chat"), 1, 0, clock.now(), BLOCKS * 64 + 3000, chain(BLOCKS))
            began = clock.now()
            filled = await plant.fill(W0, turn, ANY)
            spans.append((clock.now() - began, filled.cached_tokens))
            await plant.decode(W0, turn, await plant.stage(W0, filled.kv))
            await clock.sleep_until(100.0)
        return spans[1]

    first_s, cached = run(main)
    fetch_s, compute_s = BLOCKS * 64 * BYTES / rate, fill_s(3000, BLOCKS * 64)
    assert cached == BLOCKS * 64
    assert first_s == pytest.approx(max(fetch_s / stages + compute_s, fetch_s + compute_s / stages), rel=1e-6)


def test_a_cancelled_fill_lets_go_of_its_fetch_and_a_stopped_link_only_delays_one() -> None:
    async def main(clock: VirtualClock) -> tuple[Any, ...]:
        down = FaultSpec(kind="link_down", at_s=102.0, until_s=110.0, link="network.0", factor=math.inf)
        world = World(clock, (down,))
        await world.serve(world.turn(BLOCKS))
        await clock.sleep_until(50.0)
        fill = world.plant.fill(W0, world.turn(BLOCKS), ANY)
        await clock.sleep_until(51.0)
        world.plant.withdraw(fill)
        tiers = world.plant.tiers
        assert tiers is not None
        assert tiers.engine is not None
        live = len(tiers.engine)
        await clock.sleep_until(100.0)
        delayed = await world.serve(world.turn(BLOCKS))
        return live, delayed

    live, delayed = run(main)
    assert live == 0
    assert delayed[0] == pytest.approx(5.12 + 8.0 + fill_s(100, BLOCKS * 64))


def test_state_that_waits_between_fill_and_decode_is_counted_as_idle_memory() -> None:
    async def main(clock: VirtualClock) -> float:
        world = World(clock)
        turn = world.turn(BLOCKS)
        filled = await world.plant.fill(W0, turn, ANY)
        staged = await world.plant.stage(W1, filled.kv)
        await clock.sleep_until(clock.now() + 3.0)
        await world.plant.decode(W1, turn, staged)
        assert world.plant.tiers is not None
        return world.plant.tiers.stats.idle_hbm_byte_s

    assert run(main) == pytest.approx(3.0 * (BLOCKS * 64 + 100) * BYTES)


def test_a_hand_off_reaches_the_measured_share_of_the_line_and_pays_its_set_up() -> None:
    """What goes from fill to decode worker is an object of KV state like any other."""
    rack = RackSpec(count=2, workers=1, uplink_bytes_per_s=1e9, flow_bytes_per_s=1e6, latency_s=0.25)

    async def main(clock: VirtualClock, ratio: float, set_up_s: float) -> float:
        network = TierSpec(capacity_bytes=math.inf)
        kv = KvSpec(bytes_per_token=BYTES, network=network, efficiency_ratio=ratio, per_object_s=set_up_s)
        world = World(clock, racks=(rack,), kv=kv)
        filled = await world.plant.fill(W0, world.turn(BLOCKS), ANY)
        began = clock.now()
        await world.plant.stage(W1, filled.kv)
        return clock.now() - began

    size_bytes = (BLOCKS * 64 + 100) * BYTES
    for ratio, set_up_s in ((1.0, 0.0), (0.71, 0.0), (0.71, 0.5)):
        span_s = run(lambda clock, ratio=ratio, set_up_s=set_up_s: main(clock, ratio, set_up_s))
        assert span_s == pytest.approx(0.25 + set_up_s + size_bytes / (ratio * 1e6))


def test_a_context_is_known_by_who_filled_and_by_who_decoded_it() -> None:
    """A router of either pool finds the one in its own."""

    async def main(clock: VirtualClock) -> list[Any]:
        world = World(clock)
        turn = world.turn(BLOCKS)
        seen = [world.plant.holding(turn.context)]
        filled = await world.plant.fill(W0, turn, ANY)
        seen.append(world.plant.holding(turn.context))
        await world.plant.decode(W1, turn, await world.plant.stage(W1, filled.kv))
        return [*seen, world.plant.holding(turn.context)]

    tokens = BLOCKS * 64
    assert run(main) == [(), ((W0, tokens),), ((W1, tokens), (W0, tokens))]


def test_a_worker_that_cannot_hold_a_block_and_two_sizes_of_one_models_state_are_refused() -> None:
    kv = KvSpec(bytes_per_token=500.0, network=TierSpec(capacity_bytes=1e9))
    with pytest.raises(ValueError, match="one model has one size"):
        run(lambda clock: _built(clock, kv))
    with pytest.raises(ValueError, match="does not hold one block"):
        run(lambda clock: _built(clock, KvSpec(**{**_as_dict(kv), "bytes_per_token": BYTES, "block_tokens": 200_000})))


async def _built(clock: VirtualClock, kv: KvSpec) -> None:
    cluster(clock, HiddenTurns(), (FILL, 1), (DECODE, 1), kv=kv)


def _as_dict(kv: KvSpec) -> dict[str, Any]:
    return {name: getattr(kv, name) for name in KvSpec.__dataclass_fields__}


def test_a_tier_without_bandwidth_is_refused() -> None:
    with pytest.raises(ValueError, match="no bandwidth"):
        KvSpec(bytes_per_token=1.0, network=TierSpec(capacity_bytes=1e9, bytes_per_s=0.0))
