"""Folders, byte-order marks, CSV headers and offsets; logs and spans of real tools; defects under every policy."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from scenarios.errors import UserError
from scenarios.workloads import derive
from scenarios.workloads.readers import detect, files
from tests.scenarios.workloads.kit import conversation, jsonl, kinds, mooncake, row, text

AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n"


def test_a_byte_order_mark_is_stripped_and_utf_16_is_named(tmp_path: Path) -> None:
    plain = json.dumps(mooncake(0, 512, [1])) + "\n"
    (tmp_path / "a.jsonl").write_bytes(b"\xef\xbb\xbf" + plain.encode())
    assert detect.read(tmp_path / "a.jsonl").requests == 1
    (tmp_path / "b.jsonl").write_bytes(plain.encode("utf-16"))
    with pytest.raises(UserError, match="UTF-16"):
        detect.read(tmp_path / "b.jsonl")


def test_one_file_plain_and_packed_or_twice_under_two_names_is_refused(tmp_path: Path) -> None:
    content = json.dumps(mooncake(0, 512, [1])) + "\n"
    (tmp_path / "a.jsonl").write_text(content, encoding="utf-8")
    (tmp_path / "b.jsonl").write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=r"b\.jsonl: the same content as a\.jsonl"):
        detect.read(tmp_path)
    (tmp_path / "b.jsonl").unlink()
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(content.encode()))
    with pytest.raises(UserError, match=r"a\.jsonl\.gz: the same file as a\.jsonl"):
        detect.read(tmp_path)


def test_a_folder_of_two_formats_is_refused_and_files_that_are_not_read_are_counted(tmp_path: Path) -> None:
    text(tmp_path, AZURE + "2023-11-16 18:17:03,48,10\n", "a.csv")
    other = jsonl(tmp_path, mooncake(0, 512, [1]), name="b.jsonl")
    with pytest.raises(UserError, match=r"b\.jsonl: mooncake, in a folder of azure"):
        detect.read(tmp_path)
    other.unlink()
    (tmp_path / "below").mkdir()
    jsonl(tmp_path / "below", mooncake(0, 512, [1]))
    text(tmp_path, json.dumps({"note": 1}), "c.json")
    assert kinds(detect.read(tmp_path))["file not read"] == 2


@pytest.mark.parametrize("pack", ["gzip", "zstd"])
def test_an_archive_that_grows_without_bound_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: str
) -> None:
    import zstandard

    monkeypatch.setattr(files, "MOST_UNPACKED_BYTES", 1 << 20)
    line = json.dumps(mooncake(0, 512, [1])).encode() + b"\n"
    content = line * 40_000
    packed = gzip.compress(content) if pack == "gzip" else zstandard.ZstdCompressor().compress(content)
    path = tmp_path / "bomb.jsonl"
    path.write_bytes(packed)
    monkeypatch.setattr(files, "MOST_RATIO", 20)
    with pytest.raises(UserError, match="20 times its size"):
        detect.read(path)


def test_a_line_without_an_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LONGEST_LINE_BYTES", 1 << 19)
    path = tmp_path / "long.jsonl"
    path.write_bytes(b"[" + b"0," * (1 << 19))
    with pytest.raises(UserError, match="a line of more than"):
        detect.read(path)


def test_more_fields_than_columns_and_a_column_named_twice_are_errors(tmp_path: Path) -> None:
    wide = text(tmp_path, AZURE + "2023-11-16 18:17:03,1,204,10\n2023-11-16 18:17:04,48,10\n")
    with pytest.raises(UserError, match=r"t\.csv:2: 4 fields under 3 column names"):
        detect.read(wide)
    assert kinds(detect.read(wide, on_error="skip"))["more fields than columns"] == 1
    assert detect.read(text(tmp_path, AZURE + "2023-11-16 18:17:03,48,10,\n")).requests == 1
    twice = text(
        tmp_path, AZURE.replace("GeneratedTokens", "GeneratedTokens,ContextTokens") + "2023-11-16 18:17:03,1,2,3\n"
    )
    with pytest.raises(UserError, match="names the column 'ContextTokens' twice"):
        detect.read(twice)


def test_stamps_with_and_without_an_offset_are_two_clocks(tmp_path: Path) -> None:
    rows = "2024-05-10 01:00:00+00:00,48,10\n2024-05-10 01:00:01,48,10\n"
    with pytest.raises(UserError, match=r"t\.csv:3: TIMESTAMP: .*two clocks"):
        detect.read(text(tmp_path, AZURE + rows))


def chat(chat_id: int | None, parent: int | None, t: float) -> dict[str, Any]:
    return {"chat_id": chat_id, "parent_chat_id": parent, "timestamp": t, "input_length": 16, "output_length": 5} | {
        "type": "text",
        "turn": 1,
        "hash_ids": [int(t)],
    }


@pytest.mark.parametrize(
    ("rows", "left"),
    [
        ([chat(1, 2, 0), chat(2, 1, 9), chat(3, -1, 10)], 1),
        ([chat(1, -1, 0), chat(2, 66, 9), chat(3, 2, 10)], 1),
        ([chat(1, -1, 0), chat(1, -1, 9)], 1),
        ([chat(1, -1, 0), chat(None, -1, 9), chat(3, None, 11)], 2),
    ],
)
def test_skip_leaves_out_what_the_graph_finds_wrong(tmp_path: Path, rows: list[dict[str, Any]], left: int) -> None:
    assert detect.read(jsonl(tmp_path, *rows), on_error="skip").requests == left


def test_followers_of_a_row_that_is_left_out_are_left_out_too(tmp_path: Path) -> None:
    rows = [mooncake(k, 512, [1], request_id=f"r{k}", wait_for=[f"r{k - 1}"] if k else []) for k in range(6)]
    rows[2]["input_length"] = -4
    corpus = detect.read(jsonl(tmp_path, *rows), on_error="skip")
    assert (corpus.requests, kinds(corpus)) == (2, {"input_length negative": 1, "dangling parent": 3})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"timestamp": 1e307}, "timestamp: 1e\\+307"),
        ({"timestamp": 1.7e18}, "timestamp: .*is the unit of time right"),
        ({"input_length": 10**19}, "input_length: 10+; at most"),
        ({"input_length": 10**15}, "input_length: 10+; at most"),
        ({"output_length": 10**12}, "output_length: 10+; at most"),
    ],
)
def test_extreme_values_are_refused_in_one_line(tmp_path: Path, change: dict[str, float], message: str) -> None:
    path = jsonl(tmp_path, mooncake(0, 512, [1]), mooncake(5, 512, [1]) | change)
    with pytest.raises(UserError, match=r"t\.jsonl:2: " + message):
        detect.read(path)
    assert detect.read(path, on_error="skip").requests == 1


def test_hundreds_of_models_are_read(tmp_path: Path) -> None:
    turns = [row(9 * k, 64, model=f"m{k}") for k in range(300)]
    (talk,) = detect.read(jsonl(tmp_path, conversation(turns))).conversations
    assert (len(talk.models), talk.streams[0].model[-1]) == (300, 299)


def test_prompts_sent_twice_are_found_in_sub_agents_too(tmp_path: Path) -> None:
    inner = {"type": "subagent", "t": 5, "agent_id": "g", "status": "completed"}
    inner["requests"] = [row(0, 64, type="s"), row(2, 64, type="n")]
    path = jsonl(tmp_path, conversation([row(0, 128), inner, row(30, 192)]))
    assert kinds(detect.read(path))["same prompt sent twice, streamed and plain"] == 1
    dropped = detect.read(path, options=detect.ReadOptions(drop_doubles=True))
    assert dropped.requests == 3


def log(kind: str, t: str, message: dict[str, Any], session: str = "s", **more: Any) -> dict[str, Any]:
    return {"type": kind, "sessionId": session, "timestamp": f"2026-02-01T08:{t}Z", "message": message} | more


def said(name: str | None, new: object, cached: int = 0, **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": new, "cache_read_input_tokens": cached, "output_tokens": 30}
    return {"id": name, "model": "m", "usage": usage} | more


ASK = {"content": "go on"}


def test_a_log_of_the_current_client_begins_with_rows_that_are_no_events(tmp_path: Path) -> None:
    rows = [{"type": "mode", "sessionId": "s"}, {"type": "permission-mode", "sessionId": "s"}] * 3
    corpus = detect.read(jsonl(tmp_path, *rows, log("user", "00:00", ASK), log("assistant", "00:09", said("m1", 700))))
    assert (corpus.format, corpus.requests) == ("claude-code", 1)


def test_an_answer_of_the_client_itself_is_passed_over(tmp_path: Path) -> None:
    failed = said("x", 0) | {"model": "<synthetic>"}
    failed["usage"] = {"input_tokens": 0, "output_tokens": 0}
    rows = [log("user", "00:00", ASK), log("assistant", "00:09", said("m1", 700)), log("assistant", "00:20", failed)]
    corpus = detect.read(jsonl(tmp_path, *rows))
    assert (corpus.requests, kinds(corpus)) == (1, {"answer written by the client itself": 1})


def test_a_resumed_session_repeats_no_answer(tmp_path: Path) -> None:
    first = [log("user", "00:00", ASK), log("assistant", "00:09", said("m1", 700))]
    again = [row | {"sessionId": "t"} for row in first]
    jsonl(tmp_path, *first, name="a.jsonl")
    jsonl(
        tmp_path,
        *again,
        log("user", "05:00", ASK, "t"),
        log("assistant", "05:09", said("m2", 90, 700), "t"),
        name="b.jsonl",
    )
    corpus = detect.read(tmp_path)
    assert (corpus.requests, kinds(corpus)["answer copied from another session"]) == (2, 1)
    assert kinds(corpus)["stated prefix beyond the last prompt, tokens"] == 700


def test_sub_agents_in_a_folder_of_their_own_belong_to_their_session(tmp_path: Path) -> None:
    jsonl(tmp_path, log("user", "00:00", ASK), log("assistant", "00:09", said("m1", 700)), name="s.jsonl")
    (tmp_path / "s" / "subagents").mkdir(parents=True)
    side = [log(k, t, m, isSidechain=True, agentId="g") for k, t, m in (("user", "00:20", ASK),)]
    side.append(log("assistant", "00:29", said("m2", 300), isSidechain=True, agentId="g"))
    jsonl(tmp_path / "s" / "subagents", *side, name="agent.jsonl")
    (talk,) = detect.read(tmp_path).conversations
    assert [s.relation for s in talk.streams] == ["root", "spawn"]


def test_answers_without_ids_are_told_apart_by_the_inputs_between_them(tmp_path: Path) -> None:
    rows = [
        log("user", "00:00", ASK),
        log("assistant", "00:09", said(None, 700)),
        log("assistant", "00:10", said(None, 700)),
    ]
    rows += [log("user", "01:00", ASK), log("assistant", "01:09", said(None, 90, 700))]
    corpus = detect.read(jsonl(tmp_path, *rows))
    assert (corpus.requests, kinds(corpus)) == (2, {"usage repeated for each content block": 1})


def test_usage_that_is_text_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"t\.jsonl:2: input_tokens: '7'"):
        detect.read(jsonl(tmp_path, log("user", "00:00", ASK), log("assistant", "00:09", said("m", "7"))))


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
    logs = [log("user", "00:00", ASK), log("assistant", "00:09", said("m1", 50, 450))]
    assert kinds(detect.read(jsonl(tmp_path, *logs))) == {"stated prefix beyond the last prompt, tokens": 450}
    lab = "session_id,round_idx,prefix_len,input_len,output_len,tool_wait_after_ms\nq,0,450,50,9,0\n"
    assert kinds(detect.read(text(tmp_path, lab))) == {"stated prefix beyond the last prompt, tokens": 450}


def test_rows_with_texts_or_without_output_lengths_are_read_and_counted(tmp_path: Path) -> None:
    bare = [{"timestamp": k, "input_length": 512, "hash_ids": [k]} for k in range(3)]
    corpus = detect.read(jsonl(tmp_path, *bare))
    assert corpus.conversations[0].streams[0].output_tokens.tolist() == [128] * 3
    assert kinds(corpus) == {"output_length absent": 3}
    texts = [{"timestamp": k, "text_input": "abcd" * 30, "output_length": 7} for k in range(3)]
    corpus = detect.read(jsonl(tmp_path, *texts))
    assert corpus.conversations[0].streams[0].prompt_tokens.tolist() == [30] * 3
    assert kinds(corpus)["lengths from characters"] == 3


def test_pools_with_a_client_missing_or_with_images(tmp_path: Path) -> None:
    for client in (0, 1):
        (tmp_path / f"chunk-{client}-trace.csv").write_text("0,1.0,1.0,Gamma,1.0,1.0\n", encoding="utf-8")
    table = {"0": {"input_tokens": "{90: 1.0}", "output_tokens": "{7: 1.0}"}}
    (tmp_path / "chunk-0-dataset.json").write_text(json.dumps(table), encoding="utf-8")
    with pytest.raises(UserError, match=r"chunk-1-dataset\.json: missing"):
        detect.read(tmp_path)
    assert kinds(detect.read(tmp_path, on_error="skip"))["client without its data set"] == 1
    images = {"0": {"text_tokens": "{90: 1.0}", "image_tokens": "{7: 1.0}", "output_tokens": "{7: 1.0}"}}
    (tmp_path / "chunk-0-dataset.json").write_text(json.dumps(images), encoding="utf-8")
    with pytest.raises(UserError, match="multimodal pool"):
        detect.read(tmp_path, on_error="skip")


def test_the_theoretical_hit_of_a_null_parent_is_its_own(tmp_path: Path) -> None:
    corpus = detect.read(jsonl(tmp_path, chat(1, None, 0), chat(2, None, 9)))
    assert len(corpus.conversations) == 2
    assert derive.hit_token_ratio(corpus) == 0.0
