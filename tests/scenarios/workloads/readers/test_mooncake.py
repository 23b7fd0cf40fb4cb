"""The Mooncake and Bailian readers: units, sessions, dependency graphs, and defects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scenarios.errors import UserError
from scenarios.workloads import derive
from scenarios.workloads.corpus import assumed_service_s
from scenarios.workloads.readers import detect
from scenarios.workloads.readers.rows import ReadOptions
from tests.scenarios.workloads.kit import jsonl, kinds, mooncake


def test_mooncake_stamps_are_milliseconds_and_its_ids_mean_the_same_in_the_whole_file(tmp_path: Path) -> None:
    path = jsonl(tmp_path, mooncake(1_000, 1_100, [0, 1, 2]), mooncake(3_500.5, 1_500, [0, 1, 9]))
    corpus = detect.read(path)
    assert (corpus.format, corpus.scope) == ("mooncake", "global")
    (stream,) = corpus.conversations[0].streams
    assert stream.relation == "independent"
    assert stream.t_s.tolist() == [1.0, 3.5005]
    (cached,) = derive.cached_tokens(corpus.conversations[0])
    assert cached.tolist() == [0, 1_024]


def test_hash_count_inconsistent_with_length_and_block_size_is_detected(tmp_path: Path) -> None:
    path = jsonl(tmp_path, mooncake(0, 20, [1, 2]))
    assert kinds(detect.read(path)) == {"block count does not fit the length": 1}
    with pytest.raises(UserError, match=r"t\.jsonl:1: hash_ids: 2 block ids for 20 tokens in blocks of 512"):
        detect.read(path, on_error="raise")


def test_missing_arrival_stamp_fails_closed_and_is_never_dropped_silently(tmp_path: Path) -> None:
    path = jsonl(tmp_path, mooncake(None, 20, [1]), mooncake(100, 20, [1]))
    with pytest.raises(UserError, match=r"t\.jsonl:1: timestamp: missing"):
        detect.read(path)
    assert kinds(detect.read(path, on_error="skip")) == {"timestamp missing": 1}


def test_mooncake_sessions_follow_their_delays_from_the_end_of_the_turn_before(tmp_path: Path) -> None:
    rows = [
        mooncake(2_000, 600, [1, 2], session_id="a"),
        mooncake(2_500, 600, [5, 6], session_id="b"),
        mooncake(None, 900, [1, 2], session_id="a", delay=1_500),
    ]
    corpus = detect.read(jsonl(tmp_path, *rows))
    first, second = corpus.conversations
    assert [c.name for c in corpus.conversations] == ["a", "b"]
    assert (first.start_s, second.start_s) == (2.0, 2.5)
    assert first.streams[0].t_s[1] == pytest.approx(float(assumed_service_s(np.array([20]))[0]) + 1.5)
    assert first.streams[0].think_s[1] == 1.5


def test_delta_lengths_accumulate_with_the_answers(tmp_path: Path) -> None:
    rows = [mooncake(0, 100, [], session_id="a"), mooncake(None, 30, [], session_id="a", delay=5)]
    corpus = detect.read(jsonl(tmp_path, *rows), options=ReadOptions(delta=True))
    (talk,) = corpus.conversations
    assert talk.streams[0].prompt_tokens.tolist() == [100, 150]
    assert derive.cached_tokens(talk)[0].tolist() == [0, 100]


AGENTIC = [
    {"schema": "dynamo.agentic_mooncake", "version": 2, "block_size": 64, "hash_id_scope": "local", "source": {}},
    {"request_id": "r0", "session_id": "main", "not_before_ms": 0.0, "recorded_api_time_ms": 1_000},
    {"request_id": "l0", "session_id": "left", "dependencies": [("r0", "spawn", 200)]},
    {"request_id": "l1", "session_id": "left", "dependencies": [("l0", "sequence", 100)]},
    {"request_id": "r1", "session_id": "main", "dependencies": [("r0", "sequence", 0), ("l1", "join", 50)]},
]


def agentic() -> list[dict[str, Any]]:
    out = [AGENTIC[0]]
    for k, r in enumerate(AGENTIC[1:]):
        edges = [
            {"request_id": n, "relation": kind, "trigger": "completion", "delay_ms": d}
            for n, kind, d in r.get("dependencies", [])
        ]
        base = {"play_id": "p", "model": "m", "input_length": 128, "output_length": 2, "hash_ids": [2 * k, 2 * k + 1]}
        out.append(base | r | {"dependencies": edges})
    return out


def test_an_agentic_graph_becomes_streams_that_spawn_and_join(tmp_path: Path) -> None:
    (talk,) = detect.read(jsonl(tmp_path, *agentic())).conversations
    assert [(s.relation, len(s)) for s in talk.streams] == [("root", 2), ("spawn", 2)]
    assert talk.streams[1].waits == {0: ((0, 0),)}
    assert talk.streams[0].waits == {1: ((1, 1),)}
    served = float(assumed_service_s(np.array([2]))[0])
    assert talk.streams[0].t_s[1] == pytest.approx(1.0 + 0.2 + served + 0.1 + served + 0.05)


def test_plain_agentic_rows_wait_for_all_they_name_then_delay_and_tool(tmp_path: Path) -> None:
    rows = [
        mooncake(0, 64, [1], request_id="root", session_id="s"),
        mooncake(None, 64, [1], request_id="child", session_id="s", wait_for=["root"], delay=2, tool_wait_ms=3),
    ]
    (talk,) = detect.read(jsonl(tmp_path, *rows)).conversations
    assert talk.streams[0].think_s[1] == pytest.approx(0.005)


def test_cycles_in_wait_for_duplicate_ids_and_dangling_parents_are_detected(tmp_path: Path) -> None:
    a = mooncake(0, 64, [1], request_id="a", session_id="s", wait_for=["b"])
    b = mooncake(0, 64, [1], request_id="b", session_id="s", wait_for=["a"])
    with pytest.raises(UserError, match=r"t\.jsonl:1: 'a' waits for itself"):
        detect.read(jsonl(tmp_path, a, b))
    dangling = mooncake(0, 64, [1], request_id="c", session_id="s", wait_for=["gone"])
    path = jsonl(tmp_path, dangling, mooncake(5, 64, [1], request_id="c", session_id="s"))
    assert kinds(detect.read(path)) == {"duplicate request id": 1, "dangling parent": 1}
    with pytest.raises(UserError, match="appears twice"):
        detect.read(path, on_error="raise")


def bailian(chat: int, parent: int, t: float, length: int, ids: list[int]) -> dict[str, Any]:
    base = {"chat_id": chat, "parent_chat_id": parent, "timestamp": t, "type": "text", "turn": 1}
    return base | {"input_length": length, "output_length": 10, "hash_ids": ids}


def test_same_file_type_with_seconds_and_milliseconds_each_format_states_its_unit(tmp_path: Path) -> None:
    path = jsonl(tmp_path, bailian(1, -1, 10.0, 30, [1, 2]), bailian(2, 1, 40.0, 60, [1, 2, 3, 4]))
    (talk,) = detect.read(path).conversations
    assert (talk.start_s, talk.streams[0].t_s.tolist()) == (10.0, [0.0, 30.0])
    with pytest.raises(UserError, match=r"not mooncake: .*in seconds"):
        detect.read(path, form="mooncake")


def test_a_wrong_unit_is_caught_by_the_rate_that_it_implies(tmp_path: Path) -> None:
    rows = [mooncake(k * 1e-5, 64, [k]) for k in range(200)]
    assert "implausible rate" in kinds(detect.read(jsonl(tmp_path, *rows)))


def test_siblings_of_one_parent_branch_and_a_missing_parent_begins_a_session(tmp_path: Path) -> None:
    rows = [
        bailian(1, -1, 0, 16, [1]),
        bailian(2, 1, 9, 32, [1, 2]),
        bailian(3, 1, 9, 32, [1, 3]),
        bailian(4, 77, 5, 16, [8]),
    ]
    corpus = detect.read(jsonl(tmp_path, *rows))
    assert sorted(len(c.streams) for c in corpus.conversations) == [1, 2]
    assert kinds(corpus)["dangling parent"] == 1
