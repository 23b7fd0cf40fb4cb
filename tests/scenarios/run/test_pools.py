"""What fill and decode do to each other: seconds accounted for to the step, phases as they were made."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from orchestrator.messages import Role
from orchestrator.turn import KvRef, WorkerId
from orchestrator.virtual_clock import VirtualClock, run_virtual
from scenarios.catalogue.verdict import SignalVerdict
from scenarios.run.execute import run
from scenarios.run.pools import stranded, swing
from scenarios.schema.load import load
from tests.plant.factory import ANY, TIMES, W0, Turns, cluster, configuration

FILL = configuration("fill", Role.FILL, chunk_tokens=256)
DECODE = configuration("decode", Role.DECODE)
BOTH = configuration("both", Role.AGGREGATED, chunk_tokens=256)


def test_the_seconds_of_a_lone_turn_are_its_chunks_and_its_steps() -> None:
    async def main(clock: VirtualClock) -> None:
        turns = Turns()
        plant = cluster(clock, turns.hidden, (BOTH, 1), (FILL, 1), (DECODE, 1))
        chunks_s = TIMES.mixed_s(0, 0, 256, 0) + TIMES.mixed_s(0, 0, 144, 256)
        steps_s = TIMES.span_s(1, 400, 60)
        for filler, decoder in ((W0, W0), (WorkerId(1), WorkerId(2))):
            turn = turns.make(400, 61)
            filled = await plant.fill(filler, turn, ANY)
            assert isinstance(filled.kv, KvRef)
            await plant.decode(decoder, turn, await plant.stage(decoder, filled.kv))
        await clock.sleep_until(clock.now() + 5.0)
        now_s = clock.now()
        spent = {name: (pool.compute_s(now_s), pool.step_span_s(now_s)) for name, pool in plant.pools.items()}
        assert spent["both"] == pytest.approx((chunks_s, steps_s))
        assert spent["fill"] == pytest.approx((chunks_s, 0.0))
        assert spent["decode"] == pytest.approx((0.0, steps_s))

    run_virtual(main)


@pytest.mark.parametrize("name", ["disaggregated", "aggregated"])
def test_no_worker_spends_more_seconds_than_there_are(name: str) -> None:
    sets = [
        "horizon_s=120",
        "warmup_s=30",
        "workload.lanes=60",
        "workload.ramp_s=5",
        "workload.conversations.sessions=20",
    ]
    stranded_ = run(load("aggregated_vs_disaggregated", sets), name).summary["stranded"]
    for each in stranded_["by_pool"].values():
        used = 2.0 - each["compute_ratio"] - each["bandwidth_ratio"]
        assert 0.0 <= used <= 1.0 + 1e-9
    assert (stranded_["decode_ratio"] is None) == (name == "aggregated")


def levels_of(fill: np.ndarray, decode: np.ndarray, step_s: float, **more: np.ndarray) -> pd.DataFrame:
    columns = {"t_s": np.arange(len(fill)) * step_s, "filling_turns_mean": fill, "decoding_turns_mean": decode, **more}
    return pd.DataFrame(columns)


@pytest.mark.parametrize("behind_deg", [20.0, 90.0, 180.0, 250.0])
def test_a_load_that_trails_by_an_angle_is_said_to(behind_deg: float) -> None:
    period_s, step_s = 12.0, 0.25
    t = np.arange(0.0, 600.0, step_s)
    noise = np.random.default_rng(5).normal(0.0, 0.5, (2, len(t)))
    fill = 30.0 + 5.0 * np.sin(2 * np.pi * t / period_s) + noise[0]
    decode = 60.0 + 8.0 * np.sin(2 * np.pi * t / period_s - np.radians(behind_deg)) + noise[1]
    cycle = SignalVerdict(
        signal="in_flight_turns", verdict="limit_cycle", reason="", amplitude_ratio=0.1, cost={}, period_s=period_s
    )
    phases = swing(levels_of(fill, decode, step_s), (0.0, 600.0), {"in_flight_turns": cycle})
    assert phases is not None
    assert phases["behind_deg"] == pytest.approx(behind_deg, abs=3.0)
    assert phases["fill_swing_ratio"] == pytest.approx(5.0 / np.sqrt(2) / 30.0, rel=0.05)


def test_loads_without_a_cycle_have_no_phase() -> None:
    rng = np.random.default_rng(5)
    phases = swing(levels_of(rng.normal(9, 1, 400), rng.normal(9, 1, 400), 1.0), (0.0, 400.0), {})
    assert phases is not None
    assert phases["behind_deg"] is None


def test_slots_are_stranded_only_beside_turns_that_wait_for_the_other_stage() -> None:
    async def main(clock: VirtualClock) -> None:
        plant = cluster(clock, Turns().hidden, (FILL, 2), (DECODE, 1))
        rows = 4
        columns = {
            "slots": np.full(rows, 8.0),
            "ready_turns_mean": np.array([0.0, 0.0, 3.0, 0.0]),
            "pool.fill.active_workers_mean": np.full(rows, 2.0),
        }
        filling, decoding = np.array([7.0, 2.0, 0.0, 5.0]), np.array([4.0, 4.0, 8.0, 8.0])
        signals = levels_of(filling, decoding, 1.0, **columns)
        shares = stranded({"fill": (8.0, 2.0, 0.0)}, plant.pools, signals, (0.0, 4.0))  # type: ignore[dict-item]  # a name
        assert shares["decode_ratio"] == pytest.approx(4.0 / 32.0)  # four idle slots beside five in line; else none
        assert shares["fill_ratio"] == pytest.approx(2.0 / 8.0)  # two idle workers beside three that are ready
        assert (shares["compute_ratio"], shares["bandwidth_ratio"]) == (0.75, 1.0)

    run_virtual(main)


def test_caps_above_the_slots_of_a_worker_change_nothing() -> None:
    def turns_and_slots(cap_turns: int) -> tuple[pd.DataFrame, pd.DataFrame]:
        law = "candidates.ratio_1.batching"
        sets = ["horizon_s=240", "warmup_s=60", f"{law}.least_turns={cap_turns}", f"{law}.most_turns={cap_turns}"]
        recorded = run(load("loops_apart", sets), "ratio_1")
        return recorded.turns, recorded.signals[["slots", "decode_occupancy_ratio_mean"]]

    turns, signals = turns_and_slots(64)
    turns_8, signals_8 = turns_and_slots(8)
    pd.testing.assert_frame_equal(turns, turns_8)
    pd.testing.assert_frame_equal(signals, signals_8)
    assert signals["slots"].max() <= 16 * 8, "at most 16 workers of 8 slots decode"
