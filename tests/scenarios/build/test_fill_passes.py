"""What a fill pass costs beside its tokens: an engine that stops decoding for fills loses what was measured."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from plant.model.times import ChargedFills, LinearTimes
from scenarios.errors import UserError
from scenarios.run import execute
from scenarios.schema.load import load

TIMES = LinearTimes(base_s=8e-3, per_sequence_s=48.4e-6, per_kv_token_s=0.0, per_new_token_s=1e-6)
LINEAR = "{ kind = 'linear', base_s = 8e-3, per_sequence_s = 48.4e-6, per_kv_token_s = 0.0, per_new_token_s = 1e-6 }"
SCENARIO = f"""
title = "128 callers, answers of different length"
question = "What does an engine lose that stops decoding for every fill?"
seed = 2
horizon_s = 90.0
warmup_s = 40.0
[workload]
kind = "lanes"
lanes = 128
start_window = [0.0, 0.0]
primer = false
order = "in_turn"
conversations = {{ kind = "trace", path = "TRACE" }}
[plant]
kind = "cluster"
racks = [{{ workers = 1, uplink_bytes_per_s = 50e9 }}]
pools = [{{ configuration = "serve", workers = 1 }}]
[plant.configurations.serve]
role = "ROLE"
slots = 128
times = {LINEAR}
[[candidates]]
name = "hold"
"""


def scenario(folder: Path, role: str = "aggregated") -> Path:
    draw = random.Random(14)
    rows = [{"timestamp": i, "input_length": 1000, "output_length": draw.randint(800, 1000),
             "hash_ids": [2 * i, 2 * i + 1]} for i in range(700)]  # fmt: skip
    (folder / "trace.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    (folder / "s.toml").write_text(SCENARIO.replace("TRACE", str(folder / "trace.jsonl")).replace("ROLE", role))
    return folder / "s.toml"


def tokens_per_s(path: Path, *sets: str) -> float:
    turns = execute.run(load(path, sets)).data.turns
    ended = turns[(turns["outcome"] == "retired") & (turns["ended_s"] > 40.0)]
    return float(ended["output_tokens"].sum()) / 50.0


def test_fills_apart_at_their_measured_price_halve_the_throughput_of_unequal_answers(tmp_path: Path) -> None:
    # sgl-project/sglang pull request 23189: 3,788 tokens/s for 9,018 with answers of 0.8 to 1.0 of one length; so
    # (128 x 900 / 3,788 - 900 x 14.2 ms) / 128 = 0.14 s a fill.
    path = scenario(tmp_path)
    priced = tokens_per_s(path, "plant.configurations.serve.fills=apart", "plant.configurations.serve.per_chunk_s=0.14")
    assert priced == pytest.approx(3800, rel=0.05)
    assert tokens_per_s(path) > 8500


def test_a_pass_apart_is_the_fill_and_then_the_step() -> None:
    apart = ChargedFills(times=TIMES, per_chunk_s=0.1, apart=True)
    shared = ChargedFills(times=TIMES, per_chunk_s=0.1, apart=False)
    assert apart.mixed_s(64, 9000, 512, 100) == pytest.approx(
        0.1 + TIMES.mixed_s(0, 0, 512, 100) + TIMES.step_s(64, 9000)
    )
    assert shared.mixed_s(64, 9000, 512, 100) == pytest.approx(0.1 + TIMES.mixed_s(64, 9000, 512, 100))
    assert apart.mixed_s(0, 0, 512, 100) == shared.mixed_s(0, 0, 512, 100)
    assert apart.mixed_s(64, 9000, 0, 0) == TIMES.step_s(64, 9000)
    assert apart.span_s(64, 9000, 7) == TIMES.span_s(64, 9000, 7)
    assert apart.steps_within(64, 9000, 1.0) == TIMES.steps_within(64, 9000, 1.0)


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        ("plant.configurations.serve.fills=apart", 'fills = "apart" would have no effect: the role decode never does'),
        ("plant.configurations.serve.per_chunk_s=0.1", "per_chunk_s would have no effect: this configuration has no"),
    ],
)
def test_a_price_of_fills_that_a_worker_never_runs_is_refused(tmp_path: Path, sets: str, words: str) -> None:
    with pytest.raises(UserError) as caught:
        load(scenario(tmp_path, "decode"), [sets])
    assert words in str(caught.value)
