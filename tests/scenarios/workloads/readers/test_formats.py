"""The other readers, on rows as the formats' documentation shows them: units, sessions, and defects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scenarios.errors import UserError
from scenarios.workloads import derive
from scenarios.workloads.readers import detect
from scenarios.workloads.readers.moments import moment
from scenarios.workloads.readers.rows import ReadOptions
from tests.scenarios.workloads.kit import conversation, jsonl, kinds, mooncake, row, text, trace


def test_seven_digit_fractions_are_read_which_fromisoformat_cannot(tmp_path: Path) -> None:
    assert moment("2023-11-16 18:17:03.9799600") == (pytest.approx(1_700_158_623.97996, abs=1e-6), False)
    assert moment("2024-05-10 00:00:00.009930+00:00") == (pytest.approx(1_715_299_200.00993, abs=1e-6), True)
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
    assert sum(stated) - sum(got) == beyond
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
def test_spans_become_turns_and_tool_spans_are_skipped(tmp_path: Path, otlp: bool) -> None:
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


def test_an_unknown_format_names_the_known_ones_and_a_forced_one_gives_its_reason(tmp_path: Path) -> None:
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


def test_every_recorded_file_is_detected() -> None:
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
