"""Seconds of a real model in a scenario: what its placements make of it, and that it runs on real traffic."""

from __future__ import annotations

import pytest

from scenarios.build.cluster import gpus
from scenarios.build.conversations import with_trace
from scenarios.run.execute import run
from scenarios.schema.load import load
from tests.paths import TRACES

TRACE = TRACES / "agentx_v8" / "traces.jsonl.gz"
SHORT = ("horizon_s=240", "warmup_s=60", "workload.lanes=128")


def test_a_worker_has_the_accelerators_of_its_placement() -> None:
    scenario = load("kimi_k3_gb200")
    assert {name: gpus(configuration) for name, configuration in scenario.plant.configurations.items()} == {  # type: ignore[union-attr]
        "prefill": 16,
        "midfill": 16,
        "decode": 16,
    }


@pytest.mark.slow
def test_turns_with_a_prefix_go_to_midfill_and_first_turns_to_prefill() -> None:
    done = run(load("kimi_k3_gb200", SHORT))
    turns = done.turns[done.turns["outcome"] == "retired"]
    prefill_workers, midfill_workers = range(0, 5), range(5, 8)
    assert turns[turns["cached_tokens"] == 0]["fill_worker"].isin(prefill_workers).all()
    assert turns[turns["cached_tokens"] > 0]["fill_worker"].isin(midfill_workers).all()
    assert turns["decode_worker"].min() >= 8
    assert done.summary["gpu_hours"] == pytest.approx(12 * 16 * 240 / 3600)


@pytest.mark.slow
@pytest.mark.skipif(not TRACE.is_file(), reason="the public traces are not beside the repository")
def test_a_real_model_serves_a_real_trace() -> None:
    done = run(with_trace(load("kimi_k3_gb200", SHORT), TRACE))
    counts = done.summary["counts"]
    assert done.summary["trace"]["conversations"] == 240
    assert counts["failed"] == counts["rejected"] == 0
    assert counts["retired"] > 500
