"""Sessions as rows give them: without a name, out of order, with negative waits, incremental, late, coarse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scenarios.errors import UserError
from scenarios.trace import bursts
from scenarios.trace.inspect import inspect
from scenarios.workloads import derive
from scenarios.workloads.corpus import Corpus, assumed_service_s
from scenarios.workloads.player import SourceContext
from scenarios.workloads.readers import detect
from scenarios.workloads.readers.plausible import grain_s, shared_stamps
from scenarios.workloads.readers.rows import ReadOptions
from scenarios.workloads.script import script, scripts
from scenarios.workloads.sessions import SessionArrivals
from tests.scenarios.workloads.kit import Bench, conversation, jsonl, kinds, mooncake, row, text

LAB = "session_id,round_idx,prefix_len,input_len,output_len,tool_wait_after_ms\n"
BURST = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"


def turn(chat: int, parent: int, t: float, length: int, ids: list[int]) -> dict[str, Any]:
    base = {"chat_id": chat, "parent_chat_id": parent, "timestamp": t, "input_length": length, "output_length": 5}
    return base | {"type": "text", "turn": 1, "hash_ids": ids}


@pytest.mark.parametrize("nobody", [None, "", "null"])
def test_rows_of_a_null_session_stand_alone(tmp_path: Path, nobody: str | None) -> None:
    rows = [mooncake(700 * k, 512, [k], session_id=nobody) for k in range(8)]
    (only,) = detect.read(jsonl(tmp_path, *rows)).conversations
    assert (only.streams[0].relation, len(only.streams[0])) == ("independent", 8)


def test_turns_below_later_ones_are_sorted_within_their_session_and_counted(tmp_path: Path) -> None:
    rows = [
        mooncake(8_000, 1_024, [1, 2], session_id="x"),
        mooncake(3_000, 512, [7], session_id="y"),
        mooncake(1_000, 512, [1], session_id="x"),
    ]
    corpus = detect.read(jsonl(tmp_path, *rows))
    talk = next(c for c in corpus.conversations if c.name == "x")
    assert (talk.start_s, talk.streams[0].t_s.tolist()) == (1.0, [0.0, 7.0])
    assert talk.streams[0].prompt_tokens.tolist() == [512, 1_024]
    assert kinds(corpus) == {"time going backwards": 1}
    with pytest.raises(UserError, match="in one session"):
        detect.read(jsonl(tmp_path, *rows), on_error="raise")


def test_a_child_that_starts_before_its_parent_starts_with_it(tmp_path: Path) -> None:
    corpus = detect.read(jsonl(tmp_path, turn(1, -1, 12.0, 32, [1, 2]), turn(2, 1, 4.0, 48, [1, 2, 3])))
    (talk,) = corpus.conversations
    assert (talk.start_s, talk.streams[0].t_s.tolist()) == (12.0, [0.0, 0.0])
    assert kinds(corpus)["time going backwards"] == 2  # in the file, and against its parent


def test_rounds_are_sorted_by_their_number(tmp_path: Path) -> None:
    corpus = detect.read(text(tmp_path, LAB + "q,2,90,30,10,0\nq,1,0,90,10,250\n"))
    (talk,) = corpus.conversations
    assert derive.cached_tokens(talk)[0].tolist() == [0, 90]
    assert talk.streams[0].think_s.tolist() == [0.0, 0.25]
    assert kinds(corpus)["time going backwards"] == 1


def test_turns_of_a_multi_turn_set_are_sorted_by_stamp(tmp_path: Path) -> None:
    turns = [
        {"text": "w" * 80, "timestamp": 7_000, "output_length": 9},
        {"text": "v" * 40, "timestamp": 2_000, "output_length": 9},
    ]
    corpus = detect.read(jsonl(tmp_path, {"session_id": "s", "turns": turns}))
    (talk,) = corpus.conversations
    assert (talk.start_s, talk.streams[0].t_s.tolist()) == (2.0, [0.0, 5.0])
    assert talk.streams[0].prompt_tokens.tolist() == [10, 39]
    assert kinds(corpus)["time going backwards"] == 1


def test_negative_waits_are_missing_and_counted_in_every_format(tmp_path: Path) -> None:
    rows = [mooncake(0, 512, [1], session_id="a"), mooncake(None, 512, [1], session_id="a", delay=-700)]
    corpus = detect.read(jsonl(tmp_path, *rows))
    assert kinds(corpus)["delay negative"] == 1
    (talk,) = corpus.conversations
    assert talk.streams[0].t_s[1] == pytest.approx(float(assumed_service_s(np.array([20]))[0]))
    turns = [{"text": "w" * 80, "output_length": 9}, {"text": "v", "delay": -3, "output_length": 9}]
    assert kinds(detect.read(jsonl(tmp_path, {"turns": turns})))["delay negative"] == 1
    lab = detect.read(text(tmp_path, LAB + "q,0,0,90,10,-1\nq,1,90,30,10,\n"))
    assert kinds(lab)["tool_wait_after_ms negative"] == 1
    burst = detect.read(text(tmp_path, BURST + "5,1,-3,m,100,20,120,C\n9,1,1,m,100,20,120,C\n"))
    assert kinds(burst)["Elapsed time negative"] == 1
    assert np.isnan(burst.conversations[0].streams[0].service_s[0])


def test_every_edge_has_its_own_delay(tmp_path: Path) -> None:
    def edge(name: str, delay_ms: float) -> dict[str, Any]:
        return {"request_id": name, "relation": "join", "trigger": "completion", "delay_ms": delay_ms}

    base = {"play_id": "p", "input_length": 64, "output_length": 2, "recorded_api_time_ms": 1_000}
    head = {"schema": "dynamo.agentic_mooncake", "version": 2, "block_size": 64, "hash_id_scope": "local"}
    rows = [
        base | {"request_id": "a", "session_id": "m", "not_before_ms": 0, "hash_ids": [1]},
        base | {"request_id": "s", "session_id": "n", "hash_ids": [5], "dependencies": [edge("a", 3_000)]},
        base
        | {"request_id": "b", "session_id": "m", "hash_ids": [1], "dependencies": [edge("a", 8_000), edge("s", 50)]},
    ]
    (talk,) = detect.read(jsonl(tmp_path, head, *rows)).conversations
    assert talk.streams[0].t_s.tolist() == pytest.approx([0.0, 9.0])  # max(1 + 8, 5 + 0.05), not 5 + 8
    assert talk.streams[0].think_s[1] == pytest.approx(8.0)


def incremental(sessions: int, delta: bool) -> list[dict[str, Any]]:
    """Sessions of four turns: a head that all share, then a new block and an answer of a block each turn."""
    rows, new = [], 50
    for s in range(sessions):
        chain = [0, 1, 2, new]
        new += 1
        rows.append(mooncake(5_000 * s, 512 * 4, list(chain), session_id=f"s{s}", output_length=512))
        for _ in range(3):
            chain += [new, new + 1]  # the answer, then what is new
            part = [new + 1] if delta else list(chain)
            new += 2
            rows.append(mooncake(None, 512 * len(part), part, session_id=f"s{s}", output_length=512, delay=2_000))
    return rows


def test_incremental_rows_are_doubted_and_accumulate_to_the_whole_prompts(tmp_path: Path) -> None:
    accumulated = detect.read(jsonl(tmp_path, *incremental(6, False), name="whole.jsonl"))
    path = jsonl(tmp_path, *incremental(6, True))
    assert "turns look incremental" in kinds(detect.read(path))
    assert "turns look incremental" not in kinds(accumulated)
    parts = detect.read(path, options=ReadOptions(delta=True))
    assert (parts.scope, kinds(parts)) == ("global", {})
    for a, b in zip(derive.with_cached_tokens(accumulated), derive.with_cached_tokens(parts), strict=True):
        assert a[0].streams[0].prompt_tokens.tolist() == b[0].streams[0].prompt_tokens.tolist()
        assert a[1][0].tolist() == b[1][0].tolist()


@pytest.mark.parametrize("shift", [0.0, 4_000.0, 1.7e9])
def test_a_conversation_that_begins_late_is_the_same_conversation(tmp_path: Path, shift: float) -> None:
    inner = {
        "type": "subagent",
        "t": shift + 20,
        "agent_id": "g",
        "status": "completed",
        "requests": [row(shift + 21, 64)],
    }
    turns = [row(shift, 128), row(shift + 12, 256), inner, row(shift + 60, 320)]
    corpus = detect.read(jsonl(tmp_path, conversation(turns)), options=ReadOptions(subagent_clock="absolute"))
    (talk,) = corpus.conversations
    assert [s.t_s.tolist() for s in talk.streams] == [[0.0, 12.0, 60.0], [21.0]]
    assert ("first stamp later than 0 s" in kinds(corpus)) == (shift > 0)


def test_global_ids_are_walked_by_the_clock_and_not_one_conversation_after_the_other(tmp_path: Path) -> None:
    late = [900 + k for k in range(50)]
    path = jsonl(tmp_path, turn(1, -1, 0.0, 16, [1]), turn(2, -1, 7.0, 800, late), turn(3, 1, 800.0, 816, [1, *late]))
    corpus = detect.read(path)
    assert [[c.tolist() for c in cached] for _, cached in derive.with_cached_tokens(corpus)] == [[[0, 816]], [[0]]]
    figures = inspect(corpus)
    assert (figures["new_tokens"]["first_ratio"], figures["new_tokens"]["growth_ratio"]) == (1.0, 0.0)


def hits(corpus: Corpus, sessions: int) -> float:
    """Return the share of prompt tokens that an infinite cache supplies when sessions are drawn again and again."""
    bench = Bench(service_s=0.5)
    assert isinstance(bench.stage, SourceContext)
    plays = scripts(corpus)
    times = iter([3.0 * k for k in range(sessions)])
    turns = bench.play(SessionArrivals(bench.stage, plays, times, seed=3, sessions=sessions))
    seen: set[tuple[int, int]] = set()
    cached = prompt = 0
    for turn in turns:
        ids = [(run.scope, run.first + k) for run in turn.context.runs for k in range(run.blocks)]
        leading = next((k for k, i in enumerate(ids) if i not in seen), len(ids))
        seen.update(ids)
        cached += leading * turn.context.block_tokens
        prompt += turn.prompt_tokens
    return cached / prompt


def test_a_session_of_global_ids_drawn_again_does_not_find_its_first_play(tmp_path: Path) -> None:
    rows = [
        mooncake(2_000 * s + 100 * k, 512 * (k + 1), [100 * s + i for i in range(k + 1)], session_id=f"s{s}")
        for s in range(4)
        for k in range(3)
    ]
    corpus = detect.read(jsonl(tmp_path, *rows))
    assert hits(corpus, 40) == pytest.approx(derive.hit_token_ratio(corpus)) == pytest.approx(3 / 6)


def test_ids_that_sessions_share_keep_their_scope_on_every_play(tmp_path: Path) -> None:
    rows = [mooncake(1_000 * s, 1_536, [0, 1, 10 + s], session_id=f"s{s}") for s in range(3)]
    corpus = detect.read(jsonl(tmp_path, *rows))
    plays = 30
    assert hits(corpus, plays) == pytest.approx((plays - 1) * 2 / (plays * 3))
    assert script(corpus.conversations[0]).streams[0].known == []


def test_seconds_read_as_milliseconds_are_doubted_and_the_unit_can_be_stated(tmp_path: Path) -> None:
    rows = [mooncake(0.21 * k, 900, [2 * k, 2 * k + 1], output_length=150) for k in range(200)]
    path = jsonl(tmp_path, *rows)
    corpus = detect.read(path)
    assert "implausible rate" in kinds(corpus)
    assert any("--time-unit" in warning for warning in inspect(corpus)["warnings"])
    right = detect.read(path, options=ReadOptions(time_unit="s"))
    assert kinds(right) == {}
    assert inspect(right)["arrivals"]["rate_per_s"] == pytest.approx(1 / 0.21)


def test_waits_of_hours_and_answers_faster_than_any_engine_are_doubted(tmp_path: Path) -> None:
    slow = [row(9e4 * k, 640, think_time=8.9e4, api_time=2.0) for k in range(30)]
    assert "implausible waits" in kinds(detect.read(jsonl(tmp_path, conversation(slow))))
    fast = [row(9 * k, 640, out=400, think_time=5, api_time=0.002) for k in range(30)]
    assert "implausible service times" in kinds(detect.read(jsonl(tmp_path, conversation(fast))))
    fair = [row(9 * k, 640, out=400, think_time=5, api_time=4) for k in range(30)]
    assert not any(kind.startswith("implausible") for kind in kinds(detect.read(jsonl(tmp_path, conversation(fair)))))


def coarse(path: Path, grain_ms: int, fine: bool) -> Path:
    at = np.sort(np.random.default_rng(4).uniform(0, 400_000, 1_600))
    step = np.floor(at / grain_ms)
    stamps = at if fine else step * grain_ms + step % 3  # the clock of a grid drifts by a millisecond or two
    return jsonl(path, *(mooncake(round(float(t), 3), 64, [k]) for k, t in enumerate(np.sort(stamps))))


@pytest.mark.parametrize("grain_ms", [1_000, 2_500])
def test_the_grain_of_a_coarse_clock_is_told_and_rows_can_be_spread_within_it(tmp_path: Path, grain_ms: int) -> None:
    path = coarse(tmp_path, grain_ms, fine=False)
    corpus = detect.read(path)
    (note,) = [kind for kind in kinds(corpus) if kind.startswith("coarse stamps")]
    assert f"{grain_ms / 1e3:g} s" in note
    assert inspect(corpus)["arrivals"]["grain_s"] == pytest.approx(grain_ms / 1e3, rel=0.01)
    spread = detect.read(path, options=ReadOptions(spread_stamps=True, seed=2))
    stamps = shared_stamps(spread)
    assert stamps is not None
    assert grain_s(stamps) is None
    moved = spread.conversations[0].streams[0].t_s - corpus.conversations[0].streams[0].t_s
    assert moved.min() >= 0.0
    assert moved.max() <= 1.01 * grain_ms / 1e3
    assert bursts.dispersion(stamps, 1.0) == pytest.approx(1.0, abs=0.25)
    again = detect.read(path, options=ReadOptions(spread_stamps=True, seed=2))
    assert again.digest() == spread.digest() != corpus.digest()


def test_a_fine_clock_and_rows_that_truly_come_together_have_no_grain(tmp_path: Path) -> None:
    assert not any(k.startswith("coarse") for k in kinds(detect.read(coarse(tmp_path, 1_000, fine=True))))
    together = np.repeat(np.sort(np.random.default_rng(1).integers(0, 10**6, 60)) / 1e3, 5)
    assert grain_s(together) is None


def test_the_last_partial_bin_does_not_count_as_a_lull() -> None:
    steady = np.arange(0.0, 601.0)
    assert bursts.dispersion(steady, 60.0) == pytest.approx(0.0, abs=1e-9)
    poisson = np.cumsum(np.random.default_rng(0).exponential(0.25, 40_000))
    assert bursts.dispersion(poisson, 60.0) == pytest.approx(1.0, abs=0.25)
    ones = np.ones(len(poisson), dtype=np.int64)
    assert bursts.token_dispersion(poisson, ones, 60.0) == pytest.approx(bursts.dispersion(poisson, 60.0))


def test_two_rows_years_apart_cost_no_memory() -> None:
    assert bursts.dispersion(np.array([0.0, 1.0, 2e10]), 1.0) == pytest.approx(1.0, abs=1e-6)


def test_many_sessions_are_read_in_linear_time(tmp_path: Path) -> None:
    """Each row looks at its own session alone: counted in comparisons of sessions, not in seconds."""
    rows = "".join(json.dumps(mooncake(k, 512, [k], session_id=f"s{k}")) + "\n" for k in range(4_000))
    corpus = detect.read(text(tmp_path, rows, "many.jsonl"))
    assert len(corpus.conversations) == 4_000
