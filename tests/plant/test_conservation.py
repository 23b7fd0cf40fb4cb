"""Nothing is lost and nothing is held twice, whatever is filled, decoded, cancelled or broken, and in any order."""

from __future__ import annotations

from asyncio import Future
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from orchestrator.errors import ContextOverflow, Preempted, WorkerLost
from orchestrator.messages import Role
from orchestrator.ports import Staged
from orchestrator.turn import KvChain, KvRef, KvRun, TurnView, WorkerId
from orchestrator.virtual_clock import VirtualClock
from orchestrator.virtual_loop import VirtualLoop
from plant.cluster import Cluster
from plant.cluster_spec import RackSpec
from plant.faults import FaultSpec
from tests.plant.factory import ANY, Turns, cluster, configuration

FILL = configuration("fill", Role.FILL, chunk_tokens=128, staging_turns=8, kv_capacity_tokens=900)
DECODE = configuration(
    "decode", Role.DECODE, slots=3, kv_capacity_tokens=700, kv_bytes_per_token=1e5, headroom_tokens=16
)
BOTH = configuration("both", Role.AGGREGATED, slots=3, kv_capacity_tokens=800, chunk_tokens=96, headroom_tokens=8)
RACKS = [RackSpec(count=3, workers=2, uplink_bytes_per_s=2e8, latency_s=0.001)]
ROLES = (FILL, FILL, DECODE, DECODE, BOTH, BOTH)


class Live:
    """A turn of the test, and what it asked of the plant last."""

    def __init__(self, turn: TurnView) -> None:
        self.turn = turn
        self.kv: KvRef | None = None
        self.staged: Staged | None = None
        self.worker: WorkerId | None = None
        self.future: Future[Any] | None = None
        self.verb = ""


class Conservation(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = VirtualLoop()
        self.clock = VirtualClock(self.loop)
        self.turns = Turns()
        self.live: list[Live] = []
        self.counts = {"filled": 0, "retired": 0, "preempted": 0, "lost": 0, "overflowed": 0}

    @initialize(at_s=st.floats(0.1, 9.0), worker=st.integers(0, 5))
    def build(self, at_s: float, worker: int) -> None:
        fault = FaultSpec(kind="lost", at_s=at_s, until_s=at_s + 1.0, worker=worker)
        parts = ((FILL, 2), (DECODE, 2), (BOTH, 2))
        self.plant: Cluster = cluster(self.clock, self.turns.hidden, *parts, racks=RACKS, faults=[fault])
        assert len(list(self.plant.facts())) == 6

    def teardown(self) -> None:
        for entry in self.live:
            if entry.future is not None and not entry.future.done():
                self.plant.withdraw(entry.future)
            if entry.worker is not None:
                self.plant.evict(entry.worker, entry.turn.turn_id)
        self.let(50.0)
        for pool in self.plant.read().pools.values():
            assert (pool.busy_slots, pool.queued_turns, pool.queued_tokens) == (0, 0, 0)
            assert pool.kv_used_tokens == 0
        self.loop.close()

    def let(self, seconds: float) -> None:
        self.loop.run_until_complete(self.clock.sleep_until(self.clock.now() + seconds))
        for entry in list(self.live):
            if entry.future is not None and entry.future.done():
                self.handle_result(entry)

    def handle_result(self, entry: Live) -> None:
        future, entry.future = entry.future, None
        assert future is not None
        if future.cancelled():
            self.live.remove(entry)
            return
        error = future.exception()
        if error is None:
            if entry.verb == "fill":
                self.counts["filled"] += 1
                entry.kv = future.result().kv
                assert future.result().cached_tokens < entry.turn.prompt_tokens
            elif entry.verb == "stage":
                entry.staged = future.result()
            else:
                self.counts["retired"] += 1
                self.live.remove(entry)
        elif isinstance(error, Preempted):
            self.counts["preempted"] += 1
            entry.staged = None
        elif isinstance(error, WorkerLost):
            self.counts["lost"] += 1
            entry.kv = entry.staged = None
        else:
            assert isinstance(error, ContextOverflow)
            self.counts["overflowed"] += 1
            self.live.remove(entry)

    @rule(prompt=st.integers(1, 400), output=st.integers(1, 400), worker=st.sampled_from([0, 1, 4, 5]))
    def fill(self, prompt: int, output: int, worker: int) -> None:
        chain = KvChain((KvRun(prompt % 3, 0, prompt // 16),), 16)
        entry = Live(self.turns.make(prompt, output, chain))
        self.start_fill(entry, worker)
        self.live.append(entry)

    @rule(share=st.integers(1, 3), worker=st.sampled_from([2, 3]))
    def go_on(self, share: int, worker: int) -> None:
        """Ask the next verb of every, every second or every third turn that has its answer."""
        for entry in [entry for entry in self.live if entry.future is None][::share]:
            here = entry.worker in (4, 5)
            if entry.kv is None:
                self.start_fill(entry, worker + 2 if here else worker - 2)
            elif not here and entry.staged is None:
                entry.worker, entry.verb = WorkerId(worker), "stage"
                entry.future = self.plant.stage(entry.worker, entry.kv)
            else:
                assert entry.worker is not None
                entry.verb = "decode"
                entry.future = self.plant.decode(entry.worker, entry.turn, entry.staged or Staged(entry.kv, 0.0))

    def start_fill(self, entry: Live, worker: int) -> None:
        entry.worker, entry.verb = WorkerId(worker), "fill"
        entry.future = self.plant.fill(entry.worker, entry.turn, ANY)

    @rule(pick=st.integers(0, 50))
    def cancel(self, pick: int) -> None:
        awaited = [entry for entry in self.live if entry.future is not None]
        if awaited:
            entry = awaited[pick % len(awaited)]
            assert entry.future is not None
            self.plant.withdraw(entry.future)
            self.let(0.0)

    @rule(seconds=st.sampled_from([0.0, 0.0137, 0.31, 3.3]))
    def wait(self, seconds: float) -> None:
        self.let(seconds)

    @invariant()
    def counters_add_up(self) -> None:
        if not hasattr(self, "plant"):
            return
        reading = self.plant.read()
        pools = reading.pools.values()
        assert sum(pool.preempted_total for pool in pools) >= self.counts["preempted"]
        served = sum(pool.served_total for pool in pools if pool.role is not Role.FILL)
        assert served >= self.counts["retired"]
        unfinished = sum(
            entry.future is not None and not entry.future.done() and entry.verb != "stage" for entry in self.live
        )
        inside = sum(pool.busy_slots + pool.queued_turns for pool in pools)
        assert inside >= unfinished - sum(entry.future is not None and entry.future.done() for entry in self.live)
        for pool, spec in zip(pools, (FILL, DECODE, BOTH)):
            assert 0 <= pool.busy_slots <= pool.slots
            if pool.role is not Role.FILL:
                assert pool.kv_used_tokens is not None
                assert 0 <= pool.kv_used_tokens <= (spec.kv_capacity_tokens or 0) * pool.active_workers
        totals = self.plant.totals()
        assert 0 <= totals["hit_tokens"] <= totals["prompt_tokens"]


TestConservation = pytest.mark.slow(Conservation.TestCase)
TestConservation.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
