"""A worker that is to change: its turns end there, move with their state or are filled again, and none is ever lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.admission import ClassSpec
from orchestrator.messages import CapacityCommand, CapacityReading, Role
from orchestrator.orchestrator import Orchestrator, OrchestratorSpec
from orchestrator.ports import Every
from orchestrator.reconfigure import ReconfigureSpec
from orchestrator.turn import ConfigurationName
from orchestrator.virtual_clock import VirtualClock, run_virtual
from plant.cluster import Cluster
from plant.cluster_spec import PoolSpec, RackSpec
from plant.faults import FaultSpec
from plant.hidden_turns import HiddenTurns
from policies.routing.least_loaded import LeastLoaded
from tests.orchestrator.kit import CHAT, Coming, ListSink, Script
from tests.plant.factory import TIMES, configuration

DRAINS = ("wait", "migrate", "retry")
PROMPT = 100  # what `Script` gives every turn
RATE = 1e6
FILL = configuration("fill", Role.FILL, chunk_tokens=64, staging_turns=3)
DECODE = configuration("decode", Role.DECODE, slots=3, kv_bytes_per_token=1e3, chunk_tokens=64, load_s=0.5)
BOTH = configuration("both", Role.AGGREGATED, slots=3, kv_bytes_per_token=1e3, chunk_tokens=64, load_s=0.5)
SPARE = configuration("spare", Role.IDLE)


class Wants:
    """A capacity law that asks for one number of workers after another, and stays with the last."""

    def __init__(self, configuration: str, *numbers: int, period_s: float = 1.0) -> None:
        self.cadence = Every(period_s=period_s)
        self._name, self._numbers = ConfigurationName(configuration), list(numbers)

    def act(self, y: CapacityReading) -> CapacityCommand:
        number = self._numbers.pop(0) if len(self._numbers) > 1 else self._numbers[0]
        return CapacityCommand(target_workers={self._name: number})


class House:
    """An orchestrator over a cluster, a rack to each worker; its capacity law moves workers to and from `spare`."""

    def __init__(
        self,
        clock: VirtualClock,
        coming: Sequence[Coming],
        drain: Any,
        parts: Sequence[tuple[Any, int]],
        law: Wants,
        faults: Sequence[FaultSpec] = (),
        **spec: Any,
    ) -> None:
        self.clock, hidden_turns = clock, HiddenTurns()
        self.sink, self.source = ListSink(), Script(clock, hidden_turns, coming)
        self.plant = Cluster(
            clock,
            hidden_turns,
            racks=[RackSpec(count=8, workers=1, uplink_bytes_per_s=RATE)],
            configurations=[part for part, _ in parts],
            pools=[PoolSpec(configuration=part.name, workers=number) for part, number in parts],
            faults=faults,
        )
        reconfigure = ReconfigureSpec(reserve=SPARE.name, atomic=False, drain=drain)
        orchestrator_spec = OrchestratorSpec(
            seed=1,
            horizon_s=2000.0,
            classes=(ClassSpec(name=CHAT),),
            reconfigure=reconfigure,
            retries=1000,
            record_moves=True,
            **spec,
        )
        self.orchestrator = Orchestrator(
            clock,
            orchestrator_spec,
            self.plant,
            self.source,
            {"capacity": law},
            [LeastLoaded()],
            [LeastLoaded()],
            self.sink,
        )

    async def run(self) -> House:
        assert await self.orchestrator.run() == "drained"
        await self.clock.sleep_until(self.clock.now() + 1.0)  # what still stands at this instant is done
        self.orchestrator.ledger.check()
        rows = self.sink.rows
        assert sorted(row["turn_id"] for row in rows) == list(range(self.orchestrator.ledger.arrived)), (
            "lost or doubled"
        )
        # While every worker of a kind is lost, the door refuses what comes; what it let in is owed its end.
        assert {row["outcome"] for row in rows} <= {"retired", "rejected:context_overflow"}
        for pool in self.plant.read().pools.values():
            assert (pool.busy_slots, pool.queued_turns, pool.queued_tokens) == (0, 0, 0)
            assert not pool.kv_used_tokens, pool
        for worker in self.orchestrator.registry.workers.values():
            assert (worker.load_turns, worker.load_tokens, worker.inside) == (0, 0, 0)
            assert not worker.asking
            assert not worker.places
        return self

    def at(self, state: str) -> list[float]:
        """Return when workers of the flips entered a state."""
        return [
            event["at_s"] for event in self.sink.events if event["kind"] == "reconfigure" and event["state"] == state
        ]

    def tokens(self) -> int:
        return sum(pool.tokens_total for pool in self.plant.read().pools.values() if pool.role is not Role.FILL)


SPLIT = ((FILL, 1), (DECODE, 2), (SPARE, 2))


def alone(drain: str, flips: bool, parts: Any = SPLIT) -> House:
    """One turn of 401 tokens on one of two decode workers; at 1 s one worker is enough (`flips`)."""

    async def main(clock: VirtualClock) -> House:
        name = parts[-2][0].name
        return await House(
            clock, [Coming(0.0, output_tokens=401)], drain, parts, Wants(name, 2, 1 if flips else 2)
        ).run()

    return run_virtual(main)


def test_waiting_lasts_as_long_as_the_answer_does() -> None:
    stays, waits = alone("wait", False).sink.rows[0], alone("wait", True)
    assert waits.sink.rows[0] == stays
    assert waits.at("loading") == [stays["ended_s"]]
    assert waits.orchestrator.lifecycle.drain_s == pytest.approx(stays["ended_s"] - 1.0)


def test_a_turn_that_migrates_loses_the_seconds_of_its_transfer_and_nothing_else() -> None:
    stays, moves = alone("migrate", False).sink.rows[0], alone("migrate", True)
    row = moves.sink.rows[0]
    assert row["decode_worker"] != stays["decode_worker"]
    transfer_s = row["ended_s"] - stays["ended_s"]
    # It left at a step's end, with all of its state, and the worker was free once that had passed both uplinks.
    generated = transfer_s * RATE / DECODE.kv_bytes_per_token - PROMPT
    assert generated == pytest.approx(round(generated), abs=1e-6)
    left_s = stays["joined_s"] + TIMES.span_s(1, PROMPT, round(generated))
    assert 1.0 <= left_s < 1.0 + TIMES.step_s(1, 400)
    assert moves.at("loading") == [pytest.approx(left_s + transfer_s)]
    assert (moves.orchestrator.drainer.moved_turns, moves.orchestrator.drainer.refilled_turns) == (1, 0)


def test_a_turn_moves_between_aggregated_workers_too() -> None:
    parts = ((BOTH, 2), (SPARE, 2))
    stays, moves = alone("migrate", False, parts).sink.rows[0], alone("migrate", True, parts)
    transfer_s = moves.sink.rows[0]["ended_s"] - stays["ended_s"]
    generated = transfer_s * RATE / BOTH.kv_bytes_per_token - PROMPT
    assert generated == pytest.approx(round(generated), abs=1e-6)
    assert generated > 0
    assert moves.orchestrator.drainer.moved_turns == 1
    assert moves.at("loading") == [pytest.approx(moves.at("draining")[0] + transfer_s, abs=TIMES.step_s(1, 500))]


def test_a_turn_that_is_filled_again_pays_for_all_that_it_had() -> None:
    stays, again = alone("retry", False).sink.rows[0], alone("retry", True)
    row = again.sink.rows[0]
    assert again.at("loading") == [1.0], "the worker is free at once"
    assert row["filled_s"] == stays["filled_s"], "the first token came when it came"
    generated = TIMES.steps_within(1, PROMPT, 1.0 - stays["joined_s"])
    fill_s = TIMES.mixed_s(0, 0, 64, 0) + TIMES.mixed_s(0, 0, 36, 64)
    stage_s = PROMPT * DECODE.kv_bytes_per_token / RATE
    chunks = [(min(64, generated - done), PROMPT + done) for done in range(0, generated, 64)]
    rebuild_s = sum(TIMES.mixed_s(0, 0, new, held) for new, held in chunks)
    rest_s = TIMES.span_s(1, PROMPT + generated, 400 - generated)
    assert row["ended_s"] == pytest.approx(1.0 + fill_s + stage_s + rebuild_s + rest_s)
    assert (again.orchestrator.drainer.moved_turns, again.orchestrator.drainer.refilled_turns) == (0, 1)


def test_a_state_whose_worker_is_lost_while_it_moves_is_filled_again() -> None:
    async def main(clock: VirtualClock) -> House:
        parts = ((FILL, 1), (DECODE, 2), (SPARE, 2))
        lost = FaultSpec(kind="lost", at_s=1.1, until_s=5.0, worker=1)
        house = House(clock, [Coming(0.0, output_tokens=401)], "migrate", parts, Wants("decode", 2, 1), [lost])
        return await house.run()

    house = run_virtual(main)
    assert house.orchestrator.drainer.moved_turns == 1
    assert [event["kind"] for event in house.sink.events if event["kind"] == "retry"] == ["retry"]
    assert house.sink.rows[0]["output_tokens"] == 401


def test_where_nobody_has_room_a_turn_goes_on_where_it_is() -> None:
    async def main(clock: VirtualClock) -> House:
        parts = ((FILL, 3), (configuration("decode", Role.DECODE, slots=1, staging_turns=0), 2), (SPARE, 2))
        coming = [Coming(0.0, output_tokens=n) for n in (201, 401)]
        return await House(clock, coming, "migrate", parts, Wants("decode", 2, 1)).run()

    short, long = sorted(run_virtual(main).sink.rows, key=lambda row: row["ended_s"])
    for row, steps in ((short, 200), (long, 400)):
        assert row["ended_s"] == pytest.approx(row["filled_s"] + TIMES.span_s(1, PROMPT, steps))


@st.composite
def worlds(draw: st.DrawFn) -> dict[str, Any]:
    """Traffic, a plant, a law that keeps changing its mind, and faults that heal."""
    memory = draw(st.sampled_from([None, 700]))
    preemption = draw(st.sampled_from(["recompute", "swap"]))
    aggregated = draw(st.booleans())
    serving = configuration(
        "serve",
        Role.AGGREGATED if aggregated else Role.DECODE,
        slots=3,
        staging_turns=draw(st.integers(0, 2)),
        kv_bytes_per_token=1e3,
        kv_capacity_tokens=memory,
        headroom_tokens=8,
        chunk_tokens=64,
        preemption=preemption,
        swap_bytes_per_s=1e6,
        load_s=0.3,
        load_cv_ratio=0.5,
        fail_ratio=0.2,
    )
    filling = configuration("fill", Role.FILL, chunk_tokens=64, staging_turns=2, load_s=0.2)
    parts = [(serving, 3), (SPARE, 2)] if aggregated else [(filling, 2), (serving, 3), (SPARE, 2)]
    name = "serve" if aggregated else draw(st.sampled_from(["serve", "serve", "fill"]))
    number = st.integers(1, 3 if name == "fill" else 5)
    span = st.floats(0.05, 12.0)
    fault = st.builds(
        lambda kind, at_s, for_s, worker: FaultSpec(
            kind=kind,
            at_s=at_s,
            until_s=at_s + for_s,
            worker=None if kind == "link_down" else worker,
            rack=worker if kind == "link_down" else None,
            factor=2.5,
        ),
        st.sampled_from(["lost", "lost", "slowed", "link_down"]), span, span, st.integers(0, len(parts) + 2),
    )  # fmt: skip
    return {
        "drain": draw(st.sampled_from(DRAINS)),
        "coming": draw(
            st.lists(
                st.builds(Coming, st.floats(0.0, 10.0), st.just(CHAT), output_tokens=st.integers(1, 500)),
                min_size=1,
                max_size=14,
            )
        ),
        "parts": parts,
        "law": Wants(name, *draw(st.lists(number, min_size=1, max_size=12)), 2, period_s=draw(st.floats(0.1, 2.0))),
        "faults": draw(st.lists(fault, max_size=3)),
        "ready_capacity_turns": draw(st.sampled_from([None, 1, 4])),
    }


@settings(max_examples=150, deadline=None)
@given(worlds())
def test_every_turn_retires_once_with_all_its_tokens_whatever_changes_and_breaks(world: dict[str, Any]) -> None:
    async def main(clock: VirtualClock) -> House:
        return await House(clock, **world).run()

    house = run_virtual(main)
    wanted = sorted(world["coming"], key=lambda coming: coming.at_s)
    retired = [row for row in house.sink.rows if row["outcome"] == "retired"]
    assert all(row["output_tokens"] == wanted[row["turn_id"]].output_tokens for row in retired)
    assert house.tokens() == sum(row["output_tokens"] for row in retired)
    if not any(fault.kind == "lost" for fault in world["faults"]):
        assert len(retired) == len(wanted)
    if world["drain"] == "wait":
        assert (house.orchestrator.drainer.moved_turns, house.orchestrator.drainer.refilled_turns) == (0, 0)


def test_a_turn_given_to_a_lost_worker_that_nobody_has_heard_of_does_not_wait_in_its_line() -> None:
    async def main(clock: VirtualClock) -> House:
        lost = FaultSpec(kind="lost", at_s=0.5, until_s=900.0, worker=0)
        rarely = Wants("both", 2, period_s=1e3)  # no sample, and so no news, for a long time
        house = House(clock, [Coming(0.6, output_tokens=3)], "wait", ((BOTH, 2), (SPARE, 1)), rarely, [lost])
        return await house.run()

    (row,) = run_virtual(main).sink.rows
    assert row["ended_s"] < 1.0
