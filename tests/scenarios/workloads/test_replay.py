"""Replay by time stamp: intervals from the first stamp, caps in recorded seconds, no dependence on answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scenarios.errors import UserError
from scenarios.workloads.corpus import Corpus
from scenarios.workloads.mixture import Mixture
from scenarios.workloads.readers import detect
from scenarios.workloads.select import select
from scenarios.workloads.trace_replay import TraceReplay, time_line
from tests.scenarios.workloads.kit import Bench, conversation, row, trace, written


def stamped(folder: Path, *stamps_ms: float) -> Corpus:
    rows = [
        {"timestamp": t, "input_length": 600, "output_length": 5, "hash_ids": [0, k + 1]}
        for k, t in enumerate(stamps_ms)
    ]
    path = folder / "t.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    return detect.read(path)


def played(corpus: Corpus, **options: Any) -> list[float]:
    return [r.at_s for r in time_line(corpus, **options)]


def test_the_rate_factor_scales_intervals_from_a_first_stamp_that_is_not_zero(tmp_path: Path) -> None:
    corpus = stamped(tmp_path, 10_535, 11_535, 14_535)
    assert played(corpus) == [0.0, 1.0, 4.0]
    assert played(corpus, rate_factor=2.0) == [0.0, 0.5, 2.0]


def test_offsets_are_inclusive_at_both_ends_and_counted_from_the_first_stamp(tmp_path: Path) -> None:
    corpus = stamped(tmp_path, 5_000, 6_000, 7_000, 9_000)
    assert played(corpus, from_s=1.0, to_s=2.0) == [0.0, 1.0]
    with pytest.raises(UserError, match="no request lies between"):
        time_line(corpus, from_s=2.1, to_s=3.9)


def test_a_speed_up_scales_the_idle_cap_with_the_intervals(tmp_path: Path) -> None:
    corpus = stamped(tmp_path, 0, 10_000, 130_000, 140_000)
    assert played(corpus, idle_cap_s=60.0) == [0.0, 10.0, 70.0, 80.0]
    assert played(corpus, idle_cap_s=60.0, rate_factor=10.0) == [0.0, 1.0, 7.0, 8.0]


def test_unordered_stamps_are_sorted_and_the_global_first_is_the_origin(tmp_path: Path) -> None:
    corpus = stamped(tmp_path, 9_000, 2_000, 5_000)
    assert played(corpus) == [0.0, 3.0, 7.0]
    assert corpus.repairs.entries["time going backwards"].count == 2


def test_arrivals_keep_their_intended_instants_however_slow_the_plant_is(tmp_path: Path) -> None:
    rows = time_line(stamped(tmp_path, 0, 100, 200, 300))
    bench = Bench(service_s=1_000.0)
    turns = bench.play(TraceReplay(bench.stage, rows, block_tokens=512, global_scope=True, seed=1))
    assert [t.arrived_s for t in turns] == pytest.approx([0.0, 0.1, 0.2, 0.3])
    assert bench.most_in_flight == 4
    assert bench.source.exhausted()
    assert len({t.session_id for t in turns}) == 4
    assert len({t.context.runs[0].scope for t in turns}) == 1


@pytest.mark.parametrize(
    "parts", [("mooncake", "conversation_trace.jsonl.gz"), ("azure2023", "AzureLLMInferenceTrace_code.csv")]
)
def test_recorded_files_replay_with_every_prompt_as_it_was(parts: tuple[str, str]) -> None:
    corpus = detect.read(trace(*parts))
    (stream,) = corpus.conversations[0].streams
    bench = Bench(service_s=3.0)
    block_tokens = corpus.conversations[0].block_tokens
    rows = time_line(corpus)
    turns = bench.play(TraceReplay(bench.stage, rows, block_tokens=block_tokens, global_scope=True, seed=1))
    order = np.argsort(stream.t_s, kind="stable")
    assert [t.prompt_tokens for t in turns] == stream.prompt_tokens[order].tolist()
    assert [h.output_tokens for h in bench.hidden] == stream.output_tokens[order].tolist()
    assert np.abs(np.array([t.arrived_s for t in turns]) - (stream.t_s[order] - stream.t_s.min())).max() < 1e-6


def test_conversations_without_a_shared_clock_cannot_be_replayed_by_it(tmp_path: Path) -> None:
    corpus = detect.read(written(tmp_path, conversation([row(0, 640)])))
    with pytest.raises(UserError, match="no clock shared"):
        time_line(corpus)


def test_a_mixture_has_one_count_of_births_and_each_part_its_own_turns(tmp_path: Path) -> None:
    bench = Bench(service_s=2.0)
    rows = time_line(stamped(tmp_path, 0, 1_000, 2_000))
    parts = [
        TraceReplay(bench.stage, rows, block_tokens=512, global_scope=True, seed=1, name=name)
        for name in ("one", "two")
    ]
    turns = bench.play(Mixture(parts))
    assert sorted(t.turn_id for t in turns) == list(range(6))
    assert len({t.key for t in turns}) == 6
    assert bench.source.exhausted()


def test_the_cap_came_before_the_filter_and_left_clones_so_here_filters_come_first(tmp_path: Path) -> None:
    talks = [conversation([row(0, 640 if k % 3 else 64_000)], f"c{k}") for k in range(9)]
    corpus = detect.read(written(tmp_path, *talks))
    kept = select(corpus, max_context_tokens=10_000, limit=4)
    assert [c.name for c in kept.conversations] == ["c1", "c2", "c4", "c5"]
    counts = {e.kind: e.count for e in kept.repairs.entries.values()}
    assert counts == {"context above 10,000 tokens": 3, "beyond the first 4 conversations": 2}
    with pytest.raises(UserError, match="no conversation is left after the filters"):
        select(corpus, max_context_tokens=100)


def test_rows_that_stand_alone_are_filtered_row_by_row(tmp_path: Path) -> None:
    rows = [
        {"timestamp": k, "input_length": n, "output_length": 5, "hash_ids": [k, k + 9][: -(-n // 512)]}
        for k, n in enumerate((600, 100, 700))
    ]
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    (stream,) = select(detect.read(path), max_context_tokens=650).conversations[0].streams
    assert stream.prompt_tokens.tolist() == [600, 100]
    assert stream.all_runs() == [[(0, 1), (9, 1)], [(1, 1)]]
