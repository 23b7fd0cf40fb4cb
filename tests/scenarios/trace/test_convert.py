"""Conversion between formats: a round trip is lossless where the format allows it, and losses are counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from scenarios.cli.trace import app
from scenarios.errors import UserError
from scenarios.trace.convert import convert
from scenarios.workloads import derive
from scenarios.workloads.corpus import Corpus
from scenarios.workloads.generate.presets import generate
from scenarios.workloads.readers import detect
from tests.scenarios.workloads.kit import conversation, row, trace, written

RECORDED = (
    ("agentx_v8", "sample"),
    ("mooncake", "conversation_trace.jsonl.gz"),
    ("azure2023", "AzureLLMInferenceTrace_code.csv"),
    ("tracelab", "replay_examples", "multi_session_large.csv"),
)


@pytest.mark.parametrize("parts", RECORDED, ids=lambda p: p[0])
def test_parquet_holds_everything(parts: tuple[str, ...], tmp_path: Path) -> None:
    corpus = detect.read(trace(*parts))
    convert(corpus, tmp_path / "t.parquet", "parquet")
    back = detect.read(tmp_path / "t.parquet")
    assert back.digest() == corpus.digest()
    assert (back.name, back.scope, back.source_sha256) == (corpus.name, corpus.scope, corpus.source_sha256)
    assert back.repairs.rows() == corpus.repairs.rows()


@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.gz", "t.jsonl.zst", "folder"])
def test_weka_brings_conversations_back_whatever_packs_them(name: str, tmp_path: Path) -> None:
    corpus = generate("agentx_subagents", sessions=6, seed=3)
    assert convert(corpus, tmp_path / name, "weka").rows() == []
    same_but_for_joins(detect.read(tmp_path / name), corpus)


def same_but_for_joins(back: Corpus, corpus: Corpus) -> None:
    assert [c.name for c in back.conversations] == [c.name for c in corpus.conversations]
    for got, want in zip(back.conversations, corpus.conversations):
        assert [s.relation for s in got.streams] == [s.relation for s in want.streams]
        for a, b in zip(got.streams, want.streams):
            np.testing.assert_allclose(a.t_s, b.t_s, atol=1e-6)
            for column in ("think_s", "service_s", "prompt_tokens", "output_tokens", "stop", "run_first", "run_blocks"):
                np.testing.assert_array_equal(getattr(a, column), getattr(b, column))
            assert (a.tool_tokens, a.system_tokens) == (b.tool_tokens, b.system_tokens)


def test_a_recorded_folder_comes_back_through_weka_equal_in_every_figure(tmp_path: Path) -> None:
    corpus = detect.read(trace("agentx_v8", "sample"))
    convert(corpus, tmp_path / "t.jsonl.gz", "weka")
    back = detect.read(tmp_path / "t.jsonl.gz")
    assert back.digest() == corpus.digest()


def test_mooncake_rows_come_back_as_they_were(tmp_path: Path) -> None:
    corpus = detect.read(trace("mooncake", "conversation_trace.jsonl.gz"))
    assert convert(corpus, tmp_path / "conversation_trace.jsonl.gz", "mooncake").rows() == []
    assert detect.read(tmp_path / "conversation_trace.jsonl.gz").digest() == corpus.digest()


def test_sessions_in_mooncake_keep_lengths_waits_and_hit_and_their_ids_are_moved_apart(tmp_path: Path) -> None:
    corpus = generate("chat", sessions=20, seed=2)
    lost = convert(corpus, tmp_path / "t.jsonl", "mooncake")
    assert {"no shared clock", "blocks of 64"} == set(lost.entries)
    from scenarios.workloads.readers.rows import ReadOptions

    back = detect.read(tmp_path / "t.jsonl", options=ReadOptions(block_tokens=64))
    assert sum(c.requests for c in back.conversations) == corpus.requests
    assert derive.hit_token_ratio(back) == pytest.approx(derive.hit_token_ratio(corpus))
    by_name = {c.name: c.streams[0] for c in back.conversations}
    for talk in corpus.conversations:
        np.testing.assert_array_equal(by_name[talk.name].prompt_tokens, talk.streams[0].prompt_tokens)
        np.testing.assert_allclose(by_name[talk.name].think_s[1:], talk.streams[0].think_s[1:], atol=1e-6)


def test_what_a_form_cannot_hold_is_refused_or_counted(tmp_path: Path) -> None:
    azure = detect.read(trace("azure2023", "AzureLLMInferenceTrace_code.csv"))
    with pytest.raises(UserError, match="independent rows are not conversations"):
        convert(azure, tmp_path / "t.jsonl", "weka")
    rows: list[Any] = [row(0, 640)]
    rows.append(
        {"type": "subagent", "t": 4.0, "agent_id": "x", "status": "completed", "requests": [row(0, 64, first=90)]}
    )
    agents = detect.read(written(tmp_path, conversation(rows)))
    assert "waits between streams" in convert(agents, tmp_path / "m.jsonl", "mooncake").entries
    with pytest.raises(UserError, match="known: parquet, weka, mooncake"):
        convert(agents, tmp_path / "t", "csv")


def test_the_command_says_what_it_wrote_and_wants_a_form(tmp_path: Path) -> None:
    path = written(tmp_path, conversation([row(0, 640, out=0)]))
    result = CliRunner().invoke(app, ["convert", str(path), str(tmp_path / "t.parquet")])
    assert result.exit_code == 0, result.output
    assert "1 conversations, 1 requests" in result.output
    assert "output zero" in result.output
    refused = CliRunner().invoke(app, ["convert", str(path), str(tmp_path / "t.jsonl")])
    assert isinstance(refused.exception, UserError)
