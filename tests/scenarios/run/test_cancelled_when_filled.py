"""A turn cancelled at the instant at which its fill ends gives up the slot and the memory that it was filled in."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.turn import TurnId
from orchestrator.virtual_clock import run_virtual
from plant.cluster import Cluster
from scenarios.build import assemble
from scenarios.run.sink import MemorySink
from scenarios.schema.load import load

SCENARIO = load("c1_constant", ["horizon_s=20", "warmup_s=1", "workload.turns=30"])


def filled_s(cancelled: TurnId | None, at_s: float) -> dict[int, float]:
    """Run thirty turns, one of them cancelled after all else that the plant does then; look at what is left."""
    sink = MemorySink()

    async def main(clock: Any) -> None:
        orchestrator, _ = assemble.orchestrator(SCENARIO, SCENARIO.candidates[0], 1, clock, sink)
        result: list[bool] = []

        def cancel(turn_id: TurnId) -> None:
            result.append(orchestrator.cancel(turn_id))

        if cancelled is not None:  # set just before, it is the last event of its instant
            clock.at(at_s - 1e-9, lambda _: clock.at(at_s, cancel, cancelled), None)
        assert await orchestrator.run() == "drained"
        assert isinstance(orchestrator.plant, Cluster)
        assert result == [True] * (cancelled is not None)
        for pool in orchestrator.plant.read().pools.values():
            assert (pool.busy_slots, pool.kv_used_tokens) == (0, 0)

    run_virtual(main)
    turns = sink.data("", "", "").turns
    assert list(turns.outcome == "failed:cancelled") == list(turns.turn_id == cancelled)
    return dict(zip(turns.turn_id.tolist(), turns.filled_s.tolist(), strict=True))


INSTANTS = filled_s(None, 0.0)


@pytest.mark.parametrize("number", range(0, 30, 3))
def test_no_slot_stays_behind(number: int) -> None:
    filled_s(TurnId(number), INSTANTS[number])
