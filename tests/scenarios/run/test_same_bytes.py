"""Equal seed, equal bytes, in any process: turns, signals and events; and every candidate meets the same turns."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from scenarios.run.execute import run
from scenarios.schema.load import load, override, validate
from tests.paths import ROOT

SHORT = ["--set", "horizon_s=40", "--set", "warmup_s=10", "--set", 'record={events="all"}']
MIXED = [
    *("--set", "classes={chat={priority=2}, batch={weight=3.0}}", "--set", 'admission.order="weighted_fair"'),
    *("--set", "telemetry={period_s=0.1, age_s=0.2, noise_ratio=0.05, drop_ratio=0.1}"),
    *("--set", 'control={admission_period_s=0.5}', "--set", "ready={capacity_turns=100}", "--set", "drain_s=5"),
]  # fmt: skip


def recorded(out: Path, hash_seed: str, more: list[str]) -> None:
    command = [sys.executable, "-m", "scenarios", "run", "full_empty_reference", "--candidate", "predictive_buffer"]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    subprocess.run(
        [*command, "--out", str(out), "--json", *SHORT, *more],
        env=environment, cwd=out.parent, check=True, capture_output=True,
    )  # fmt: skip


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        # What a machine took for it is no part of what happened.
        mine = ("cpu_s_by_part", "turns_per_cpu_s", "peak_rss_mb")
        return {key: rounded(inner) for key, inner in value.items() if key not in mine}
    if isinstance(value, list):
        return [rounded(inner) for inner in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


@pytest.mark.slow
def test_two_processes_with_different_hash_seeds_write_the_same_bytes(tmp_path: Path) -> None:
    for name, hash_seed in (("one", "1"), ("two", "4242")):
        recorded(tmp_path / name, hash_seed, MIXED)
    for file in ("turns.parquet", "signals.parquet", "events.jsonl.zst"):
        first, two = ((tmp_path / name / file).read_bytes() for name in ("one", "two"))
        assert len(first) > 1000
        assert first == two, file
    verdicts = [rounded(orjson.loads((tmp_path / name / "verdict.json").read_bytes())) for name in ("one", "two")]
    assert verdicts[0] == verdicts[1]


def small(seed: int, **sets: Any) -> Any:
    raw = load("full_empty_reference").model_dump(mode="json", exclude_none=True)
    raw |= {"horizon_s": 30.0, "warmup_s": 5.0, "expect": {}}
    for path, value in {
        "plant.slots": 40,
        "workload.waiting_turns": 40,
        "admission.max_release_per_s": 16.0,
        **sets,
    }.items():
        override(raw, path, value)
    return run(validate(raw, "small"), sets.get("candidate", "retirement_gate"), seed=seed)


def test_every_policy_meets_the_same_turns() -> None:
    lengths = {"shape": "lognormal", "mean_tokens": 500.0, "cv_ratio": 1.0}
    worlds = []
    for candidate in ("retirement_gate", "credit_3n", "predictive_buffer"):
        raw = load("full_empty_reference").model_dump(mode="json", exclude_none=True)
        raw |= {"horizon_s": 40.0, "warmup_s": 5.0, "expect": {}}
        for path, value in (("plant.slots", 40), ("workload.output", lengths), ("workload.prompt", lengths)):
            override(raw, path, value)
        override(raw, "admission.max_release_per_s", 16.0)
        turns = run(validate(raw, "small"), candidate).turns
        turns = turns[turns["outcome"] == "retired"]
        stay_s = (turns["ended_s"] - turns["joined_s"]).round(9)
        worlds.append(dict(zip(turns["key"], zip(turns["prompt_tokens"], turns["output_tokens"], stay_s))))
    first, *others = worlds
    for other in others:
        common = set(first) & set(other)
        assert len(common) > 100
        assert {key: first[key] for key in common} == {key: other[key] for key in common}


def test_another_seed_is_another_world_and_the_same_seed_the_same() -> None:
    first, again, other = small(1).turns, small(1).turns, small(2).turns
    assert first.equals(again)
    assert set(first["key"]).isdisjoint(other["key"])
