"""The other formats, each on rows as its documentation shows them: units, sessions, graphs and dirt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scenarios.errors import UserError
from scenarios.workloads import derive
from scenarios.workloads.corpus import Corpus, assumed_service_s
from scenarios.workloads.readers import azure, detect
from scenarios.workloads.readers.rows import ReadOptions
from tests.scenarios.workloads.kit import conversation, row, trace


def jsonl(folder: Path, *rows: Any, name: str = "t.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    return path


def text(folder: Path, content: str, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path


def kinds(corpus: Corpus) -> dict[str, int]:
    return {e.kind: e.count for e in corpus.repairs.entries.values()}


def mooncake(t: float | None, length: int, ids: list[int], **more: Any) -> dict[str, Any]:
    base = {"input_length": length, "output_length": 20, "hash_ids": ids} | more
    return base if t is None else {"timestamp": t} | base


def test_mooncake_stamps_are_milliseconds_and_its_ids_mean_the_same_in_the_whole_file(tmp_path: Path) -> None:
    path = jsonl(tmp_path, mooncake(1_000, 1_100, [0, 1, 2]), mooncake(3_500.5, 1_500, [0, 1, 9]))
    corpus = detect.read(path)
    assert (corpus.format, corpus.scope) == ("mooncake", "global")
    (stream,) = corpus.conversations[0].streams
    assert stream.relation == "independent"
    assert stream.t_s.tolist() == [1.0, 3.5005]
    (cached,) = derive.cached_tokens(corpus.conversations[0])
    assert cached.tolist() == [0, 1_024]


def test_hash_count_inconsistent_with_length_and_block_size_is_found(tmp_path: Path) -> None:
    path = jsonl(tmp_path, mooncake(0, 20, [1, 2]))
    assert kinds(detect.read(path)) == {"block count does not fit the length": 1}
    with pytest.raises(UserError, match=r"t\.jsonl:1: hash_ids: 2 block ids for 20 tokens in blocks of 512"):
        detect.read(path, on_error="raise")


def test_missing_arrival_stamp_fails_closed_and_is_never_dropped_in_silence(tmp_path: Path) -> None:
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


def test_cycles_in_wait_for_duplicate_ids_and_dangling_parents_are_found(tmp_path: Path) -> None:
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


def test_seven_digit_fractions_are_read_which_fromisoformat_cannot(tmp_path: Path) -> None:
    assert azure.stamp_s("2023-11-16 18:17:03.9799600") == pytest.approx(1_700_158_623.97996, abs=1e-6)
    assert azure.stamp_s("2024-05-10 00:00:00.009930+00:00") == pytest.approx(1_715_299_200.00993, abs=1e-6)
    stamps = ("2023-11-16 18:17:03.9799600,4808,10", "2023-11-16 18:17:04.0319600,3180,8")
    content = "\r\n".join(("TIMESTAMP,ContextTokens,GeneratedTokens", *stamps, ""))
    (stream,) = detect.read(text(tmp_path, content)).conversations[0].streams
    assert stream.t_s.tolist() == pytest.approx([0.0, 0.052], abs=1e-6)
    assert stream.prompt_tokens.tolist() == [4808, 3180]


def test_sets_without_prefix_information_say_so(tmp_path: Path) -> None:
    corpus = detect.read(text(tmp_path, "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,48,10\n"))
    assert "no prefix information" in kinds(corpus)
    assert corpus.scope == "none"


BURST = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"


def test_zero_token_rows_are_failures_and_sessions_keep_their_clock(tmp_path: Path) -> None:
    content = BURST + "5,,2.5,m,100,20,120,API\n6,,1,m,100,0,100,API\n9,s1,1,m,50,5,55,Conv\n20,s1,1,m,80,5,85,Conv\n"
    corpus = detect.read(text(tmp_path, content))
    assert kinds(corpus)["failed request"] == 1
    assert [(c.name, c.requests, c.start_s) for c in corpus.conversations] == [
        ("s1", 2, 9.0),
        ("without a session", 1, 0.0),
    ]
    assert corpus.conversations[0].streams[0].service_s.tolist() == [1.0, 1.0]


def test_replay_csv_gives_only_the_new_part_and_its_prefix_may_fall_back(tmp_path: Path) -> None:
    head = "session_id,round_idx,prefix_len,input_len,output_len,tool_wait_after_ms\n"
    corpus = detect.read(text(tmp_path, head + "0,0,0,500,20,250\n0,1,480,100,20,\n0,2,100,50,20,0\n"))
    (talk,) = corpus.conversations
    assert talk.streams[0].prompt_tokens.tolist() == [500, 580, 150]
    assert derive.cached_tokens(talk)[0].tolist() == [0, 480, 100]
    assert talk.streams[0].think_s.tolist() == [0.0, 0.25, 0.0]
    assert kinds(corpus)["tool wait absent"] == 1


def test_recorded_rounds_keep_stated_prefixes_starters_and_times() -> None:
    corpus = detect.read(trace("tracelab", "example_sessions", "sanitized", "round_trace.jsonl"))
    claude, codex = corpus.conversations
    path = trace("tracelab", "example_sessions", "sanitized", "round_trace.jsonl")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    stated = [r["prefix_tokens"] for r in rows]
    got = [c for talk in corpus.conversations for c in derive.cached_tokens(talk)[0].tolist()]
    beyond = kinds(corpus)["stated prefix beyond the last prompt, tokens"]
    assert (len(claude.streams[0]), len(codex.streams[0])) == (10, 9)
    assert sum(stated) - stated[0] - stated[len(claude.streams[0])] - sum(got) == beyond
    # The second round began with its last tool result, 19.291 s after the last call of the first.
    assert claude.streams[0].think_s[1] == pytest.approx(50.938 - 31.647, abs=1e-3)
    assert (codex.streams[0].starter[:6] == [2, 1, 1, 1, 1, 2]).all()


def test_aiperf_texts_are_counted_in_characters_and_the_report_says_so(tmp_path: Path) -> None:
    turns = [{"text": "x" * 400, "output_length": 50}, {"text": "y" * 40, "delay": 2_000}]
    corpus = detect.read(jsonl(tmp_path, {"session_id": "s", "turns": turns}))
    (talk,) = corpus.conversations
    assert talk.streams[0].prompt_tokens.tolist() == [100, 160]
    assert talk.streams[0].think_s.tolist() == [0.0, 2.0]
    assert kinds(corpus) == {"lengths from characters": 2, "output_length absent": 1}


def span(start: float, end: float, tokens: int, cached: int | None, otlp: bool) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        "gen_ai.usage.input_tokens": tokens,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.conversation.id": "c",
    }
    if cached is not None:
        attributes["gen_ai.usage.cache_read.input_tokens"] = cached
    if not otlp:
        return {
            "attributes": attributes,
            "start_time": f"2026-01-01T00:00:{start:06.3f}Z",
            "end_time": f"2026-01-01T00:00:{end:06.3f}Z",
        }
    listed = [
        {"key": k, "value": {"intValue": str(v)} if isinstance(v, int) else {"stringValue": v}}
        for k, v in attributes.items()
    ]
    return {"attributes": listed, "startTimeUnixNano": str(int(start * 1e9)), "endTimeUnixNano": str(int(end * 1e9))}


@pytest.mark.parametrize("otlp", [False, True])
def test_spans_become_turns_and_tool_spans_are_passed_over(tmp_path: Path, otlp: bool) -> None:
    spans = [span(1.0, 3.0, 100, 0, otlp), span(4.5, 6.0, 160, 90, otlp)]
    spans.append({**spans[0], "attributes": [] if otlp else {}})
    rows = [{"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}] if otlp else spans
    corpus = detect.read(jsonl(tmp_path, *rows))
    (talk,) = corpus.conversations
    assert corpus.format == "otel"
    assert talk.streams[0].service_s.tolist() == pytest.approx([2.0, 1.5])
    assert talk.streams[0].think_s.tolist() == pytest.approx([0.0, 1.5])
    assert derive.cached_tokens(talk)[0].tolist() == [0, 90]
    assert kinds(corpus) == {"span without token counts": 1}


def event(kind: str, t: float, message: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": kind, "sessionId": "s", "timestamp": f"2026-01-01T00:00:{t:06.3f}Z", "message": message} | more


def answer(name: str, read: int, output: int) -> dict[str, Any]:
    usage = {
        "input_tokens": 5,
        "cache_creation_input_tokens": 95,
        "cache_read_input_tokens": read,
        "output_tokens": output,
    }
    return {"id": name, "model": "m", "stop_reason": "tool_use", "usage": usage}


def test_usage_repeated_per_content_block_counts_once_and_the_last_line_is_right(tmp_path: Path) -> None:
    rows = [
        event("user", 1.0, {"content": "do it"}),
        event("assistant", 3.0, answer("m1", 0, 1)),
        event("assistant", 4.0, answer("m1", 0, 1)),
        event("assistant", 5.0, answer("m1", 0, 42)),
        event("user", 7.5, {"content": [{"type": "tool_result"}]}),
        event("assistant", 9.0, answer("m2", 100, 8)),
        event("user", 5.5, {"content": "look"}, isSidechain=True, agentId="x"),
        event("assistant", 7.0, answer("x1", 0, 3), isSidechain=True, agentId="x"),
    ]
    corpus = detect.read(jsonl(tmp_path, *rows))
    (talk,) = corpus.conversations
    assert corpus.format == "claude-code"
    assert talk.streams[0].output_tokens.tolist() == [42, 8]
    assert talk.streams[0].prompt_tokens.tolist() == [100, 200]
    assert talk.streams[0].service_s.tolist() == pytest.approx([4.0, 1.5])
    assert talk.streams[0].think_s.tolist() == pytest.approx([0.0, 2.5])
    assert talk.streams[0].waits == {1: ((1, 0),)}
    assert [c.tolist() for c in derive.cached_tokens(talk)] == [[0, 100], [0]]
    assert kinds(corpus)["usage repeated for each content block"] == 2


def servegen(folder: Path) -> Path:
    gamma = "0,5.0,2.0,Gamma,0.25,0.8\n600,0.0,,,,\n"
    (folder / "chunk-0-trace.csv").write_text(gamma, encoding="utf-8")
    (folder / "chunk-1-trace.csv").write_text(
        "0,2.0,1.0,Weibull,1.0,0.5\n600,2.0,1.0,Weibull,1.0,0.5\n", encoding="utf-8"
    )
    tables = {"0": {"input_tokens": "{100: 0.25, 300: 0.75}", "output_tokens": "{7: 1.0}"}}
    for k in (0, 1):
        (folder / f"chunk-{k}-dataset.json").write_text(json.dumps(tables), encoding="utf-8")
    return folder


def test_client_parameters_generate_their_rates_and_lengths_and_a_silent_window_is_silent(tmp_path: Path) -> None:
    corpus = detect.read(servegen(tmp_path), options=ReadOptions(horizon_s=1_200.0, seed=3))
    (stream,) = corpus.conversations[0].streams
    early, late = (stream.t_s < 600).sum(), (stream.t_s >= 600).sum()
    assert early == pytest.approx(600 * 7, rel=0.15)
    assert late == pytest.approx(600 * 2, rel=0.15)
    assert stream.prompt_tokens.mean() == pytest.approx(250, rel=0.05)
    again = detect.read(servegen(tmp_path), options=ReadOptions(horizon_s=1_200.0, seed=3))
    assert again.digest() == corpus.digest()


def test_an_unknown_format_says_what_was_tried_and_on_request_why_one_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        detect.read(jsonl(tmp_path, {"prompt": "hi"}))
    for name in detect.READERS:
        assert name in str(error.value)
    with pytest.raises(UserError, match="not weka: its first row has no `requests`"):
        detect.read(jsonl(tmp_path, {"prompt": "hi"}), form="weka")
    with pytest.raises(UserError, match="did you mean `mooncake`"):
        detect.read(jsonl(tmp_path, {}), form="moncake")
    with pytest.raises(UserError, match="empty"):
        detect.read(jsonl(tmp_path))


def test_an_empty_result_after_skipping_is_an_error_with_the_counts(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no request is left to play \(timestamp missing: 1"):
        detect.read(jsonl(tmp_path, mooncake(None, 20, [1])), on_error="skip")


def test_every_recorded_file_is_known_at_sight() -> None:
    want = {
        ("agentx_v8", "sample"): ("weka", 156),
        ("mooncake", "conversation_trace.jsonl.gz"): ("mooncake", 12_031),
        ("azure2023", "AzureLLMInferenceTrace_code.csv"): ("azure", 8_819),
        ("tracelab", "replay_examples", "multi_session_large.csv"): ("tracelab", 303),
        ("tracelab", "replay_examples", "session_workload_example.csv"): ("tracelab", 11),
    }
    got = {parts: (c.format, c.requests) for parts in want for c in [detect.read(trace(*parts))]}
    assert got == want


def test_weka_is_still_weka_when_detected(tmp_path: Path) -> None:
    assert detect.read(jsonl(tmp_path, conversation([row(0, 640)]))).format == "weka"
