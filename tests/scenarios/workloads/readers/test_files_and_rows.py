"""Folders, byte-order marks, CSV headers and offsets, extreme values, and defects under every policy."""

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
