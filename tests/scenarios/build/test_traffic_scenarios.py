"""Workloads of sessions and traces from a scenario's tables to a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scenarios.build import conversations
from scenarios.errors import UserError
from scenarios.run import execute
from scenarios.schema.load import load
from tests.scenarios.workloads.kit import conversation, row, written

HEAD = """
title = "t"
question = "q"
seed = 3
horizon_s = 200.0
warmup_s = 20.0
[plant]
kind = "tandem"
slots = 16
dead_time_s = 1.0
residence = { shape = "exponential", mean_s = 2.0 }
[classes.agent]
[classes.person]
[[candidates]]
name = "open"
admission = { kind = "hold" }
[[candidates]]
name = "credit"
admission = { kind = "credit", cap_turns = 3 }
"""
CHAT = 'conversations = { kind = "generated", preset = "chat", sessions = 20 }\nservice_class = "person"\n'
SESSIONS = 'kind = "sessions"\n' + CHAT
POINTS = "[{ at_s = 0, rate_per_s = 0.1 }, { at_s = 200, rate_per_s = 1 }]"
AGENTS = 'conversations = { kind = "generated", preset = "agentx", sessions = 20 }\n'
KINDS = {
    "lanes": 'kind = "lanes"\nlanes = 6\nsystem_idle_cap_s = 10.0\n' + AGENTS,
    "poisson": SESSIONS + "rate_per_s = 0.2\n",
    "gamma": SESSIONS + "rate_per_s = 0.2\ngap_cv_ratio = 3.0\n",
    "mmpp": SESSIONS + 'arrivals = { kind = "mmpp", rates_per_s = [0.1, 1.0], dwells_s = [60, 20] }\n',
    "diurnal": SESSIONS + 'arrivals = { kind = "diurnal", mean_per_s = 0.3, swing_ratio = 0.8, period_s = 300 }\n',
    "ramp": SESSIONS + f'arrivals = {{ kind = "ramp", points = {POINTS} }}\n',
    "bursts": SESSIONS
    + 'arrivals = { kind = "bursts", base_per_s = 0.1, burst_per_s = 2, every_s = 60, length_s = 5 }\n',
}


def scenario(folder: Path, workload: str, *sets: str) -> Any:
    path = folder / "s.toml"
    path.write_text(HEAD + "[workload]\n" + workload, encoding="utf-8")
    return load(path, sets)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_traffic_runs_from_its_table(kind: str, tmp_path: Path) -> None:
    run = execute.run(scenario(tmp_path, KINDS[kind]))
    assert run.summary["counts"]["retired"] > 20
    assert run.summary["trace"]["conversations"] == 20
    counted = run.data.meta["notes"]["workload"]
    assert counted["sessions_begun"] >= 6
    assert counted["sessions_overflowed"] == counted["turns_abandoned"] == 0
    names = set(run.turns["class"].astype(str))
    assert names == {"agent" if kind == "lanes" else "person"}


def test_two_candidates_on_one_seed_meet_the_same_turns(tmp_path: Path) -> None:
    stated = scenario(tmp_path, KINDS["lanes"])
    seen = []
    for name in ("open", "credit"):
        turns = execute.run(stated, name).turns
        turns = turns[turns["outcome"].astype(str) == "retired"]
        seen.append({k: (p, o) for k, p, o in zip(turns["key"], turns["prompt_tokens"], turns["output_tokens"])})
    common = seen[0].keys() & seen[1].keys()
    assert len(common) > 20
    assert all(seen[0][key] == seen[1][key] for key in common)


def test_a_recorded_trace_takes_the_place_of_the_generated_one(tmp_path: Path) -> None:
    path = written(tmp_path, *(conversation([row(0, 640), row(5, 700), row(9, 900)], f"c{k}") for k in range(4)))
    run = execute.run(conversations.with_trace(scenario(tmp_path, KINDS["lanes"]), path))
    assert run.summary["trace"]["conversations"] == 4
    assert run.summary["trace"]["hit_token_ratio"] == pytest.approx((640 + 640) / (640 + 700 + 900))
    with pytest.raises(UserError, match="no such file"):
        conversations.with_trace(scenario(tmp_path, KINDS["lanes"]), tmp_path / "nowhere")


def test_replay_and_mixtures_keep_classes_and_every_request(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    rows = [{"timestamp": 500 * k, "input_length": 600, "output_length": 5, "hash_ids": [0, k + 1]} for k in range(40)]
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    source = f'conversations = {{ kind = "trace", path = "{path}" }}\n'
    replay = f'kind = "replay"\n{source}rate_factor = 2.0\nservice_class = "person"\n'
    run = execute.run(scenario(tmp_path, replay))
    assert run.summary["counts"]["arrived"] == 40
    assert run.turns["arrived_s"].max() == pytest.approx(39 * 0.25)
    mixed = f'kind = "mixture"\n[workload.parts.agents]\n{KINDS["lanes"]}[workload.parts.rows]\n{replay}'
    run = execute.run(scenario(tmp_path, mixed))
    assert (run.turns["class"].astype(str) == "person").sum() == 40
    assert run.turns["turn_id"].is_unique
    assert set(run.summary["trace"]["parts"]) == {"agents", "rows"}


def test_filters_of_a_table_are_counted_in_the_record(tmp_path: Path) -> None:
    talks = [conversation([row(0, 640 if k % 2 else 64_000), row(9, 700)], f"c{k}") for k in range(6)]
    path = written(tmp_path, *talks)
    table = f'kind = "trace", path = "{path}", max_context_tokens = 10000, limit = 2'
    run = execute.run(scenario(tmp_path, f'kind = "lanes"\nlanes = 3\nconversations = {{ {table} }}\n'))
    counts = {row["kind"]: row["count"] for row in run.summary["trace"]["repairs"]}
    assert run.summary["trace"]["conversations"] == 2
    assert counts == {"context above 10,000 tokens": 3, "beyond the first 2 conversations": 1}


def test_a_trace_is_read_once_for_all_runs_and_again_when_it_changes(tmp_path: Path) -> None:
    path = written(tmp_path, conversation([row(0, 640)]))
    part = conversations.with_trace(scenario(tmp_path, KINDS["lanes"]), path).workload.conversations
    first = conversations.prepared(part)
    assert conversations.prepared(part) is first
    written(tmp_path, conversation([row(0, 640)]), conversation([row(0, 64)], "d"))
    assert len(conversations.prepared(part).scripts) == 2


@pytest.mark.parametrize(
    ("workload", "words"),
    [
        (KINDS["lanes"] + 'service_class = "agnt"\n', "did you mean `agent`"),
        (KINDS["lanes"] + "start_window = [0.7, 0.2]\n", "start_window must rise"),
        (SESSIONS, "give one of them"),
        ('kind = "replay"\n' + CHAT, "no clock shared"),
    ],
)
def test_a_wrong_table_is_one_line(workload: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        execute.run(scenario(tmp_path, workload))
    assert words in str(error.value)
    assert "\n" not in str(error.value)
