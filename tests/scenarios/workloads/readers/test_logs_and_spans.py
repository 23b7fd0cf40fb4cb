"""Logs and spans of real tools: sessions of Claude Code, OpenTelemetry spans, stated prefixes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scenarios.errors import UserError
from scenarios.workloads.readers import detect
from tests.scenarios.workloads.kit import jsonl, kinds, text


def log(kind: str, t: str, message: dict[str, Any], session: str = "s", **more: Any) -> dict[str, Any]:
    return {"type": kind, "sessionId": session, "timestamp": f"2026-02-01T08:{t}Z", "message": message} | more


def answer(name: str | None, new: object, cached: int = 0, **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": new, "cache_read_input_tokens": cached, "output_tokens": 30}
    return {"id": name, "model": "m", "usage": usage} | more


ASK = {"content": "go on"}


def test_a_log_of_the_current_client_begins_with_rows_that_are_no_events(tmp_path: Path) -> None:
    rows = [{"type": "mode", "sessionId": "s"}, {"type": "permission-mode", "sessionId": "s"}] * 3
    corpus = detect.read(
        jsonl(tmp_path, *rows, log("user", "00:00", ASK), log("assistant", "00:09", answer("m1", 700)))
    )
    assert (corpus.format, corpus.requests) == ("claude-code", 1)


def test_an_answer_of_the_client_itself_is_passed_over(tmp_path: Path) -> None:
    failed = answer("x", 0) | {"model": "<synthetic>"}
    failed["usage"] = {"input_tokens": 0, "output_tokens": 0}
    rows = [log("user", "00:00", ASK), log("assistant", "00:09", answer("m1", 700)), log("assistant", "00:20", failed)]
    corpus = detect.read(jsonl(tmp_path, *rows))
    assert (corpus.requests, kinds(corpus)) == (1, {"answer written by the client itself": 1})


def test_a_resumed_session_repeats_no_answer(tmp_path: Path) -> None:
    first = [log("user", "00:00", ASK), log("assistant", "00:09", answer("m1", 700))]
    again = [row | {"sessionId": "t"} for row in first]
    jsonl(tmp_path, *first, name="a.jsonl")
    jsonl(
        tmp_path,
        *again,
        log("user", "05:00", ASK, "t"),
        log("assistant", "05:09", answer("m2", 90, 700), "t"),
        name="b.jsonl",
    )
    corpus = detect.read(tmp_path)
    assert (corpus.requests, kinds(corpus)["answer copied from another session"]) == (2, 1)
    assert kinds(corpus)["stated prefix beyond the last prompt, tokens"] == 700


def test_sub_agents_in_a_folder_of_their_own_belong_to_their_session(tmp_path: Path) -> None:
    jsonl(tmp_path, log("user", "00:00", ASK), log("assistant", "00:09", answer("m1", 700)), name="s.jsonl")
    (tmp_path / "s" / "subagents").mkdir(parents=True)
    side = [log(k, t, m, isSidechain=True, agentId="g") for k, t, m in (("user", "00:20", ASK),)]
    side.append(log("assistant", "00:29", answer("m2", 300), isSidechain=True, agentId="g"))
    jsonl(tmp_path / "s" / "subagents", *side, name="agent.jsonl")
    (talk,) = detect.read(tmp_path).conversations
    assert [s.relation for s in talk.streams] == ["root", "spawn"]


def test_answers_without_ids_are_told_apart_by_the_inputs_between_them(tmp_path: Path) -> None:
    rows = [
        log("user", "00:00", ASK),
        log("assistant", "00:09", answer(None, 700)),
        log("assistant", "00:10", answer(None, 700)),
    ]
    rows += [log("user", "01:00", ASK), log("assistant", "01:09", answer(None, 90, 700))]
    corpus = detect.read(jsonl(tmp_path, *rows))
    assert (corpus.requests, kinds(corpus)) == (2, {"usage repeated for each content block": 1})


def test_usage_that_is_text_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"t\.jsonl:2: input_tokens: '7'"):
        detect.read(jsonl(tmp_path, log("user", "00:00", ASK), log("assistant", "00:09", answer("m", "7"))))


def call(
    span: str, at_s: int, tokens: int, output: int | None = 9, cached: int | None = 0, **more: Any
) -> dict[str, Any]:
    attributes: dict[str, Any] = {"gen_ai.usage.input_tokens": tokens} | more.pop("attributes", {})
    if output is not None:
        attributes["gen_ai.usage.output_tokens"] = output
    if cached is not None:
        attributes["gen_ai.usage.cache_read.input_tokens"] = cached
    times = {"startTimeUnixNano": f"{at_s}000000000", "endTimeUnixNano": f"{at_s + 2}000000000"}
    return {"traceId": "t", "spanId": span, "attributes": attributes} | times | more


def test_a_span_that_sums_up_its_children_is_no_request(tmp_path: Path) -> None:
    named = call("0", 1, 900, attributes={"gen_ai.operation.name": "invoke_agent"})
    unnamed = call("9", 1, 900, parentSpanId="0")
    step = {"traceId": "t", "spanId": "4", "parentSpanId": "9", "attributes": {}, "startTimeUnixNano": "1"}
    calls = [call("1", 1, 400, parentSpanId="4"), call("2", 5, 500, cached=400, parentSpanId="9")]
    corpus = detect.read(jsonl(tmp_path, named, unnamed, step, *calls))
    assert corpus.requests == 2
    assert kinds(corpus) == {"span that sums up others": 2, "span without token counts": 1}


def test_a_span_exported_twice_is_one_request_and_spans_of_no_session_are_strangers(tmp_path: Path) -> None:
    corpus = detect.read(jsonl(tmp_path, call("1", 1, 400), call("1", 1, 400)))
    assert (corpus.requests, kinds(corpus)["span exported twice"]) == (1, 1)
    lone = [{k: v for k, v in call("", 9 * n, 100).items() if k not in ("traceId", "spanId")} for n in range(1, 4)]
    assert len(detect.read(jsonl(tmp_path, *lone)).conversations) == 3


def test_input_that_is_counted_without_its_cached_part_is_found_in_the_whole_file(tmp_path: Path) -> None:
    corpus = detect.read(jsonl(tmp_path, call("1", 1, 100), call("2", 9, 60, cached=50), call("3", 20, 40, cached=900)))
    assert corpus.conversations[0].streams[0].prompt_tokens.tolist() == [100, 110, 940]
    assert kinds(corpus)["more cached tokens than input"] == 1


@pytest.mark.parametrize("on_error", ["repair", "skip"])
def test_a_failed_call_is_left_out_alone(tmp_path: Path, on_error: Any) -> None:
    failed = call("2", 9, 100, output=None, attributes={"error.type": "timeout"})
    corpus = detect.read(jsonl(tmp_path, call("1", 1, 100), failed), on_error=on_error)
    assert (corpus.requests, kinds(corpus)) == (1, {"failed request": 1})


def test_what_a_first_prompt_states_as_cached_is_counted(tmp_path: Path) -> None:
    spans = detect.read(jsonl(tmp_path, call("1", 1, 500, cached=450), call("2", 9, 600, cached=500)))
    assert kinds(spans) == {"stated prefix beyond the last prompt, tokens": 450}
    logs = [log("user", "00:00", ASK), log("assistant", "00:09", answer("m1", 50, 450))]
    assert kinds(detect.read(jsonl(tmp_path, *logs))) == {"stated prefix beyond the last prompt, tokens": 450}
    lab = "session_id,round_idx,prefix_len,input_len,output_len,tool_wait_after_ms\nq,0,450,50,9,0\n"
    assert kinds(detect.read(text(tmp_path, lab))) == {"stated prefix beyond the last prompt, tokens": 450}
