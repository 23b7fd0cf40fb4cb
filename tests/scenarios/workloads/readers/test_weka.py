"""The Weka / AgentX reader: fields, derived values, and every kind of defect."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
import zstandard

from scenarios.errors import UserError
from scenarios.workloads import derive
from scenarios.workloads.readers import weka
from scenarios.workloads.readers.rows import ReadOptions
from scenarios.workloads.script import script
from tests.scenarios.workloads.kit import conversation, row, written

GROWING = [row(0, 640), row(3, 700, input_types=["tool_result"]), row(6, 1000)]


def kinds(corpus: Any) -> dict[str, int]:
    return {r["kind"]: r["count"] for r in corpus.repairs.rows()}


def test_one_corpus_has_one_digest_however_it_is_packed(tmp_path: Path) -> None:
    talks = [conversation(GROWING, "b"), conversation(GROWING[:2], "a")]
    plain = written(tmp_path, *talks)
    (tmp_path / "t.jsonl.gz").write_bytes(gzip.compress(plain.read_bytes()))
    (tmp_path / "t.jsonl.zst").write_bytes(zstandard.ZstdCompressor().compress(plain.read_bytes()))
    (tmp_path / "folder").mkdir()
    for talk in talks:
        (tmp_path / "folder" / f"{talk['id']}.json").write_text(json.dumps(talk, indent=1), encoding="utf-8")
    (tmp_path / "list.json").write_text(json.dumps(talks, indent=1), encoding="utf-8")
    names = ("traces.jsonl", "t.jsonl.gz", "t.jsonl.zst", "folder", "list.json")
    assert len({weka.read(tmp_path / name).digest() for name in names}) == 1


def test_several_gzip_members_are_one_file(tmp_path: Path) -> None:
    pieces = [orjson.dumps(conversation(GROWING, name)) + b"\n" for name in "abc"]
    path = tmp_path / "t.jsonl.gz"
    path.write_bytes(b"".join(gzip.compress(piece) for piece in pieces))
    assert len(weka.read(path).conversations) == 3


@pytest.mark.parametrize("first_id", [0, 1])
@pytest.mark.parametrize("rounding", ["floor", "ceil"])
def test_both_roundings_and_both_first_ids_are_read_and_never_exceed_the_prompt(
    tmp_path: Path, first_id: int, rounding: str
) -> None:
    def blocks(prompt: int) -> list[int]:
        return list(range(first_id, first_id + (prompt // 64 if rounding == "floor" else -(-prompt // 64))))

    rows = [row(0, 418) | {"hash_ids": blocks(418)}, row(3, 418) | {"hash_ids": blocks(418)}]
    corpus = weka.read(written(tmp_path, conversation(rows)))
    (cached,) = derive.cached_tokens(corpus.conversations[0])
    assert cached.tolist() == [0, 384 if rounding == "floor" else 418]
    assert kinds(corpus) == {}


def test_inner_times_are_relative_or_absolute_and_the_report_says_which(tmp_path: Path) -> None:
    def with_agent(base: float) -> dict[str, Any]:
        inner = [row(base + t, 640, first=500) for t in (0, 5)]
        agent = {"type": "subagent", "t": 100.0, "agent_id": "x", "status": "completed", "requests": inner}
        return conversation([row(0, 640), agent, row(120, 700)], f"base {base}")

    corpus = weka.read(written(tmp_path, with_agent(0.0), with_agent(100.0)))
    assert [c.streams[1].t_s.tolist() for c in corpus.conversations] == [[100.0, 105.0]] * 2
    assert kinds(corpus)["sub-agent clock relative"] == kinds(corpus)["sub-agent clock absolute"] == 1


def test_a_parent_waits_for_a_sub_agent_that_ended_and_not_for_a_detached_one(tmp_path: Path) -> None:
    def agent(name: str, status: str) -> dict[str, Any]:
        inner = [row(t, 640, first=500) for t in (0, 5)]
        return {"type": "subagent", "t": 10.0, "agent_id": name, "status": status, "requests": inner}

    rows = [row(0, 640), agent("joined", "completed"), agent("detached", "async_launched"), row(40, 700)]
    (talk,) = weka.read(written(tmp_path, conversation(rows))).conversations
    assert [s.relation for s in talk.streams] == ["root", "spawn", "background"]
    assert talk.streams[0].waits == {1: ((1, 1),)}
    assert talk.streams[1].waits == talk.streams[2].waits == {0: ((0, 0),)}


def test_loader_demanded_an_exact_column_set_here_optional_fields_are_optional(tmp_path: Path) -> None:
    bare = [{"t": 0.5, "type": "n", "in": 640, "out": 5, "hash_ids": list(range(10))}]
    (talk,) = weka.read(written(tmp_path, {"block_size": 64, "requests": bare, "extra": 1})).conversations
    assert np.isnan(talk.streams[0].service_s).all()
    assert talk.streams[0].prompt_tokens.tolist() == [640]


def test_an_absent_service_time_is_not_zero(tmp_path: Path) -> None:
    rows = [row(0, 640) | {"api_time": None}, row(9, 700) | {"api_time": 0.0}]
    del rows[1]["think_time"]
    (talk,) = weka.read(written(tmp_path, conversation(rows))).conversations
    assert np.isnan(talk.streams[0].service_s[0])
    assert talk.streams[0].service_s[1] == 0.0
    assert talk.streams[0].ends_s().tolist() == [1.69 + 0.01457 * 10, 9.0]


def test_a_think_time_counted_from_an_earlier_end_is_not_played_as_a_wait(tmp_path: Path) -> None:
    # Streamed requests without api_time follow each other every 8 s; their think times run from the last end recorded.
    rows = [row(0, 640), row(8, 700, think_time=6.0), row(16, 800, think_time=14.0), row(24, 900, think_time=22.0)]
    for r in rows[1:]:
        r["api_time"] = None
    corpus = weka.read(written(tmp_path, conversation(rows)))
    served = 1.69 + 0.01457 * 10
    (part,) = script(corpus.conversations[0]).streams
    assert part.gap_s == pytest.approx([0.0, 6.0, 8.0 - served, 8.0 - served])
    assert kinds(corpus)["think_time longer than the interval between the starts"] == 2
    stated = weka.read(written(tmp_path, conversation(rows)), ReadOptions(stated_thinks=True))
    assert script(stated.conversations[0]).streams[0].gap_s == [0.0, 6.0, 14.0, 22.0]


BAD = {
    "in missing": ({"in": None}, "in: missing"),
    "in negative": ({"in": -5}, "in: -5"),
    "in zero": ({"in": 0}, "at least 1"),
    "out missing": ({"out": None}, "out: missing"),
    "out negative": ({"out": -1}, "out: -1"),
    "t missing": ({"t": None}, "t: missing"),
    "t not a time": ({"t": "noon"}, "'noon'"),
    "hash_ids not a list": ({"hash_ids": 7}, "hash_ids"),
}
MENDED = {
    "output zero": {"out": 0},
    "time going backwards": {"t": 1.0},
    "think_time negative": {"think_time": -3.0},
    "block count does not fit the length": {"hash_ids": [1, 2]},
    "block id repeated within a prompt": {"hash_ids": [1, 2, 3, 2, *range(20, 33)]},
}


@pytest.mark.parametrize("kind", BAD)
def test_a_defect_without_a_remedy_is_one_line_with_file_line_and_key(tmp_path: Path, kind: str) -> None:
    change, words = BAD[kind]
    path = written(tmp_path, conversation(GROWING, "good"), conversation([GROWING[0], row(3, 700) | change], "bad"))
    with pytest.raises(UserError, match=r"traces\.jsonl:2: requests\[1\]") as error:
        weka.read(path)
    assert words in str(error.value)
    assert "\n" not in str(error.value)
    skipped = weka.read(path, ReadOptions(on_error="skip"))
    assert [c.name for c in skipped.conversations] == ["good"]
    assert kinds(skipped) == {kind: 1}


@pytest.mark.parametrize("kind", MENDED)
def test_a_defect_with_a_remedy_is_counted_or_raised_never_passed_over(tmp_path: Path, kind: str) -> None:
    rows = [*GROWING, row(9, 1100) | MENDED[kind]]
    path = written(tmp_path, conversation(rows, "bad"), conversation(GROWING, "good"))
    assert kinds(weka.read(path))[kind] == 1
    assert [c.name for c in weka.read(path, ReadOptions(on_error="skip")).conversations] == ["good"]
    with pytest.raises(UserError, match=r"traces\.jsonl:1: requests\[3\]"):
        weka.read(path, ReadOptions(on_error="raise"))


def test_zero_output_once_raised_to_one_is_counted(tmp_path: Path) -> None:
    corpus = weka.read(written(tmp_path, conversation([row(0, 640, out=0)])))
    assert corpus.conversations[0].streams[0].output_tokens.tolist() == [1]
    assert kinds(corpus) == {"output zero": 1}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b'{"id": 1, "requests": [', "t.json:1: the JSON value is not closed: the file is truncated"),
        (b'{"id": 1, }', "byte 9: not JSON"),
        (b'{"id": 1}\n', "requests"),
        (b'{"id": 1, "block_size": 64, "requests": []}\n', "at least one request"),
        (gzip.compress(orjson.dumps(conversation(GROWING)) * 50)[:-20], "truncated"),
        (zstandard.ZstdCompressor().compress(orjson.dumps(conversation(GROWING)) * 50)[:-9], "truncated"),
        (b"\x1f\x8b" + b"x" * 50, "damaged"),
    ],
)
def test_a_broken_file_says_what_is_broken(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(content)
    with pytest.raises(UserError, match=words):
        weka.read(path)


def test_a_missing_file_and_an_empty_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nowhere: no such file"):
        weka.read(tmp_path / "nowhere")
    with pytest.raises(UserError, match="holds no"):
        weka.read(tmp_path)


def test_mixed_block_sizes_and_repeated_names_are_found(tmp_path: Path) -> None:
    twice = weka.read(written(tmp_path, conversation(GROWING, "a"), conversation(GROWING, "a")))
    assert [c.name for c in twice.conversations] == ["a", "a#2"]
    path = written(tmp_path, conversation(GROWING, "a"), conversation([row(0, 64)], "b", block_size=32))
    with pytest.raises(UserError, match=r":2: block_size: 32"):
        weka.read(path)
