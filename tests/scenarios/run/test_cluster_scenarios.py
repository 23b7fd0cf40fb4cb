"""Whole runs of the cluster: nothing lost, Little's law at every stage, one world for all candidates, true hits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from scenarios.analyze.analysis import expected_of_run
from scenarios.build.conversations import prepared
from scenarios.errors import UserError
from scenarios.run.execute import run
from scenarios.run.record import RunData
from scenarios.schema.load import load, validate
from scenarios.schema.trace_workloads import LanesWorkload
from scenarios.workloads.corpus import Conversation
from tests.paths import TRACES

TRACE = TRACES / "agentx_v8" / "sample"
SMALL = ["workload.turns=600", "horizon_s=40", "warmup_s=1", "record.signal_bin_s=0.5"]


def data(name: str, sets: list[str], candidate: str | None = None, **more: Any) -> RunData:
    done = run(load(name, sets), candidate, **more)
    return done.data


def test_little_s_law_is_an_identity_at_every_stage_of_a_drained_run() -> None:
    run = data("c1_constant", SMALL)
    turns, signals = run.turns, run.signals
    assert set(turns["outcome"]) == {"retired"}
    widths = np.diff(np.append(signals["t_s"], run.meta["end_s"]))
    stages = {
        "backlog": turns["released_s"] - turns["arrived_s"],
        "filling": turns["filled_s"] - turns["released_s"],
        "decoding": turns["ended_s"] - turns["filled_s"],
        "in_flight": turns["ended_s"] - turns["released_s"],
    }
    for name, stays in stages.items():
        held = float((signals[f"{name}_turns_mean"] * widths).sum())
        assert held == pytest.approx(float(stays.sum()), rel=1e-6, abs=1e-6), name


def test_candidates_of_one_seed_meet_the_same_turns() -> None:
    sets = [
        "horizon_s=120",
        "warmup_s=10",
        "workload.lanes=48",
        "workload.ramp_s=5",
        "workload.primer=false",  # the turn after a primer keeps its recorded instant, not its gap
        "workload.conversations.sessions=24",
    ]
    first, second = (
        data("agentx_slow_fill", sets, name).turns.set_index("key") for name in ("retirement_gate", "predictive_buffer")
    )
    common = first.index.intersection(second.index)
    assert len(common) > 0.8 * min(len(first), len(second))
    for column in ("prompt_tokens", "session_id", "ordinal", "class"):
        assert (first.loc[common, column] == second.loc[common, column]).all()
    both = common[(first.loc[common, "outcome"] == "retired") & (second.loc[common, "outcome"] == "retired")]
    assert (first.loc[both, "output_tokens"] == second.loc[both, "output_tokens"]).all()
    starts = {name: turns.loc[both].sort_values("arrived_s") for name, turns in (("a", first), ("b", second))}
    think = {name: thinks(turns) for name, turns in starts.items()}
    shared = think["a"].index.intersection(think["b"].index)
    assert len(shared) > 20
    assert np.allclose(think["a"][shared], think["b"][shared])


def thinks(turns: pd.DataFrame) -> pd.Series[float]:
    """Return the gap before each turn that follows another of its session, by key."""
    ordered = turns.reset_index().sort_values(["session_id", "ordinal"])
    after = (ordered["session_id"] == ordered["session_id"].shift()) & (
        ordered["ordinal"] == ordered["ordinal"].shift() + 1
    )
    gaps = ordered["arrived_s"] - ordered["ended_s"].shift()
    return pd.Series(gaps[after].to_numpy(), index=ordered["key"][after])


RECORDED = {
    "title": "Replay in recorded time",
    "question": "Does the store hit what the block ids say?",
    "seed": 1,
    "horizon_s": 4e6,
    "warmup_s": 0.0,
    "record": {"signal_bin_s": 60000.0},
    "plant": {
        "kind": "cluster",
        "configurations": {"replay": {"role": "aggregated", "times": {"kind": "recorded"}}},
        "racks": [{"workers": 1, "uplink_bytes_per_s": 1e9}],
        "pools": [{"configuration": "replay", "workers": 1}],
    },
    "candidates": [{"name": "open"}],
}
GENERATED = {"kind": "generated", "preset": "agentx", "sessions": 12, "main_stream_only": True}


RECORDED_TRACE = {"kind": "trace", "path": str(TRACE), "main_stream_only": True}
MISSING = pytest.mark.skipif(not TRACE.exists(), reason="the traces are not beside the repository")


@pytest.mark.slow
@pytest.mark.parametrize("source", [GENERATED, pytest.param(RECORDED_TRACE, marks=MISSING)])
def test_the_store_hits_what_the_raw_block_ids_say(source: dict[str, Any]) -> None:
    count = 12 if source["kind"] == "generated" else 8
    lanes = {"kind": "lanes", "lanes": count, "start_window": [0.0, 0.0], "primer": False, "recycle": False}
    scenario = validate({**RECORDED, "workload": {**lanes, "order": "in_turn", "conversations": source}}, "test")
    assert isinstance(scenario.workload, LanesWorkload)
    corpus = prepared(scenario.workload.conversations).corpus
    assert len(corpus.conversations) == count
    turns = run(scenario).data.turns
    assert set(turns["outcome"]) == {"retired"}
    assert len(turns) == corpus.requests
    played = {
        tuple(of_session["prompt_tokens"]): of_session["cached_tokens"].tolist()
        for _, of_session in turns.sort_values("ordinal").groupby("session_id")
    }
    for conversation in corpus.conversations:
        prompts = conversation.streams[0].prompt_tokens.tolist()
        assert played[tuple(prompts)] == hits_by_raw_ids(conversation)


def hits_by_raw_ids(conversation: Conversation) -> list[int]:
    """Cached tokens of each request by plain sets of ids; at least the last token of a prompt is always computed."""
    stream, seen, hits = conversation.streams[0], set[int](), list[int]()
    for k, prompt in enumerate(stream.prompt_tokens.tolist()):
        ids = [block for first, blocks in stream.runs(k) for block in range(first, first + blocks)]
        leading = next((i for i, block in enumerate(ids) if block not in seen), len(ids))
        hits.append(min(leading * conversation.block_tokens, prompt - 1))
        seen.update(ids)
    return hits


def test_pools_larger_than_the_racks_are_one_line() -> None:
    with pytest.raises(UserError, match=r"plant: the pools hold 17 workers, but the racks have 16 places"):
        run(load("c1_constant", [*SMALL, "plant.pools.0.workers=17"]))


def test_a_candidate_may_divide_the_racks_otherwise() -> None:
    sets = [
        "horizon_s=60",
        "warmup_s=5",
        "workload.lanes=20",
        "workload.ramp_s=1",
        "workload.conversations.sessions=10",
    ]
    for name, column in (("disaggregated", "pool.decode.busy_slots"), ("aggregated", "pool.both.busy_slots")):
        signals = data("aggregated_vs_disaggregated", sets, name).signals
        assert any(label.startswith(column) and signals[label].max() > 0 for label in signals.columns)


@pytest.mark.slow
def test_behind_a_slow_fill_the_retirement_gate_cycles_and_a_predicted_buffer_does_not() -> None:
    sets = ["horizon_s=1500", "warmup_s=500"]
    gate = data("agentx_slow_fill", sets, "retirement_gate").summary
    buffer = data("agentx_slow_fill", sets, "predictive_buffer").summary
    assert gate["verdict"]["decode_occupancy_ratio"]["verdict"] == "limit_cycle"
    assert buffer["verdict"]["decode_occupancy_ratio"]["verdict"] == "steady"
    assert buffer["goodput"]["turns_per_s"] >= gate["goodput"]["turns_per_s"]
    assert gate["flow"]["fed"] == "starved"


def test_a_run_says_what_its_plant_was_and_theory_what_it_would_do_there() -> None:
    sets = [
        "horizon_s=300",
        "warmup_s=150",
        "workload.lanes=256",
        "workload.ramp_s=5",
        "workload.conversations.sessions=24",
    ]
    scenario = load("agentx_slow_fill", sets)
    summary = run(scenario, "credit_n").data.summary
    seen = summary["measured"]
    assert seen["slots"] == 80.0
    assert seen["dead_time_ratio"] == pytest.approx(seen["dead_time_s"] / seen["residence_s"])
    assert seen["backlogged_ratio"] > 0.8
    theory = expected_of_run(scenario, "credit_n", summary)
    assert theory is not None
    # A cap of N turns on a lap of L + T keeps N T / (L + T) slots busy.
    assert theory["decode_utilization_ratio"] == pytest.approx(1 / (1 + seen["dead_time_ratio"]), rel=0.05)
