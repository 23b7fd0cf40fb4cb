"""A scenario whose seconds are measured: from its CSV to a run, and every mistake as one line."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from plant.model.times import LinearTimes
from scenarios.errors import UserError
from scenarios.run import execute
from scenarios.schema.load import load
from scenarios.schema.plants import ClusterPlant

TRUE = LinearTimes(base_s=8e-3, per_sequence_s=5e-5, per_kv_token_s=2e-9, per_new_token_s=1e-5)
LINEAR = "{ kind = 'linear', base_s = 8e-3, per_sequence_s = 5e-5, per_kv_token_s = 2e-9, per_new_token_s = 1e-5 }"
SCENARIO = """
title = "measured"
question = "Does a table of measured steps serve as what it was measured on?"
seed = 3
horizon_s = 60.0
warmup_s = 10.0
[workload]
kind = "poisson"
rate_per_s = 4.0
prompt = {{ shape = "fixed", mean_tokens = 2048 }}
output = {{ shape = "fixed", mean_tokens = 100 }}
[plant]
kind = "cluster"
racks = [{{ workers = 2, uplink_bytes_per_s = 5e10 }}]
pools = [{{ configuration = "fill", workers = 1 }}, {{ configuration = "decode", workers = 1 }}]
configurations.fill = {{ role = "fill", times = {fill}, kv_bytes_per_token = 1000.0 }}
configurations.decode = {{ role = "decode", slots = 32, times = {decode} }}
[[candidates]]
name = "hold"
"""
TABLE = "{ kind = 'table', file = 'steps.csv' }"


def steps_csv(folder: Path) -> Path:
    lines = ["batch,kv_tokens,step_s,new_tokens,cached_tokens,pass_s"]
    for b, c in itertools.product((1, 4, 16, 32), (1000, 2000, 4000)):
        lines.append(f"{b},{b * c},{TRUE.step_s(b, b * c):.9f},,,")
    for n, c in itertools.product((1024, 2048, 4096), (0, 4096)):
        lines.append(f",,,{n},{c},{TRUE.mixed_s(0, 0, n, c):.9f}")
    (folder / "steps.csv").write_text("\n".join(lines) + "\n")
    return folder / "steps.csv"


def scenario_file(folder: Path, fill: str = TABLE, decode: str = TABLE) -> Path:
    path = folder / "measured.toml"
    path.write_text(SCENARIO.format(fill=fill, decode=decode))
    return path


def test_a_run_on_a_table_is_the_run_on_what_was_measured(tmp_path: Path) -> None:
    steps_csv(tmp_path)
    on_table = execute.run(load(scenario_file(tmp_path)))
    on_truth = execute.run(load(scenario_file(tmp_path, LINEAR, LINEAR)))
    for key in ("ttft_s", "tpot_s"):
        assert on_table.summary["latency"][key]["p50"] == pytest.approx(
            on_truth.summary["latency"][key]["p50"], rel=0.01
        )
    assert on_table.summary["counts"] == on_truth.summary["counts"]


def test_the_manifest_names_the_file_its_digest_its_region_and_the_fit(tmp_path: Path) -> None:
    steps_csv(tmp_path)
    facts = execute.run(load(scenario_file(tmp_path))).data.meta["times"]
    assert set(facts) == {"fill", "decode"}
    assert len(facts["decode"]["sha256"]["steps.csv"]) == 64
    assert facts["decode"]["measured"] == {"decode": "batch 1 to 32, kv_tokens 1,000 to 128,000"}
    assert facts["decode"]["fit"]["decode"]["worst_error_ratio"] < 1e-3


def test_the_file_is_looked_up_from_the_scenario_s_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps_csv(tmp_path)
    path = scenario_file(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    plant = load(path).plant
    assert isinstance(plant, ClusterPlant)
    assert plant.configurations["fill"].times.file == tmp_path / "steps.csv"  # type: ignore[union-attr]  # a table


def test_extrapolation_is_stated_among_the_warnings(tmp_path: Path) -> None:
    steps_csv(tmp_path)
    table = "{ kind = 'table', file = 'steps.csv', outside = 'extrapolate' }"
    warnings = execute.run(load(scenario_file(tmp_path, decode=table))).summary["warnings"]
    assert any(
        "times of decode are extrapolated outside their measurements (decode: batch 1 to 32" in w for w in warnings
    )


def test_a_step_outside_the_table_ends_the_run_in_one_line(tmp_path: Path) -> None:
    steps_csv(tmp_path)
    path = scenario_file(tmp_path)
    with pytest.raises(UserError, match=r"times: a fill of 512 new tokens after 0 cached ones lies outside"):
        execute.run(load(path, ["workload.prompt.mean_tokens=512"]))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "steps.csv: cannot be read: No such file"),
        ("batch,kv_tokens\n1,2\n", "steps.csv: column step_s is missing; a table has batch, kv_tokens, step_s"),
        ("batch,kv_token,step_s\n1,2,3\n", "column `kv_token` is unknown (did you mean `kv_tokens`?)"),
        ("batch,kv_tokens,step_s\n1,,0.01\n", "steps.csv, line 2: kv_tokens is empty; every row needs it"),
        ("batch,kv_tokens,step_s\n1,100,0.01\n2,100,-0.02\n", "line 3: step_s = -0.02; more than 0 would do"),
        ("batch,kv_tokens,step_s\n1,100,nan\n", "line 2: step_s = nan; more than 0 would do"),
        ("batch,kv_tokens,step_s\n1,many,0.1\n", "line 2: kv_tokens = many is no number"),
        ("batch,kv_tokens,step_s\n0,100,0.1\n", "line 2: batch = 0 of a step; at least 1 would do"),
        ("batch,kv_tokens,step_s\n1,100,0.1,7\n", "line 2: more cells than the 3 columns"),
        ("batch,kv_tokens,step_s\n", "steps.csv: holds no rows"),
        ("batch,kv_tokens,step_s\n1,2000,0.01\n", "the role fill needs rows of new_tokens, cached_tokens, pass_s"),
        ("new_tokens,cached_tokens,pass_s\n2048,0,0.01\n", "the role decode needs rows of batch, kv_tokens, step_s"),
        ("batch,kv_tokens,step_s,new_tokens,cached_tokens,pass_s\n8,16000,0.01,,,\n,,,2048,0,0.1\n",
         "slots = 32 exceed the largest measured batch of 8 in steps.csv"),
    ],
)  # fmt: skip
def test_a_table_that_cannot_be_used_says_where_and_what_would_do(
    tmp_path: Path, content: str | None, words: str
) -> None:
    if content is not None:
        (tmp_path / "steps.csv").write_text(content)
    with pytest.raises(UserError) as caught:
        execute.run(load(scenario_file(tmp_path)))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
