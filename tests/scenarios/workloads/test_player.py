"""Live replay of session trees: conservation, dependencies, and independence from the policy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scenarios.workloads.arrivals import constant, times, unit_gaps
from scenarios.workloads.generate.presets import generate
from scenarios.workloads.lanes import LanesSource
from scenarios.workloads.readers import detect, weka
from scenarios.workloads.script import Script, script, scripts
from scenarios.workloads.sessions import SessionArrivals
from tests.scenarios.workloads.kit import Bench, conversation, row, trace, written


def one_script(tmp_path: Path, rows: list[Any], **more: Any) -> Script:
    return script(weka.read(written(tmp_path, conversation(rows, **more))).conversations[0])


def from_the_start(bench: Bench, plays: list[Script], **more: Any) -> LanesSource:
    options: dict[str, Any] = {"lanes": 1, "seed": 1, "start_window": (0.0, 0.0), "recycle": False} | more
    return LanesSource(bench.stage, plays, **options)


def agent(t: float, inner: list[Any], status: str = "completed") -> dict[str, Any]:
    return {"type": "subagent", "t": t, "agent_id": f"a{t}", "status": status, "requests": inner}


def test_the_next_turn_comes_after_the_answer_and_the_think_time(tmp_path: Path) -> None:
    bench = Bench(service_s=7.0)
    rows = [row(0, 640), row(3, 700, think_time=1.5), row(6, 800, think_time=0.25)]
    turns = bench.play(from_the_start(bench, [one_script(tmp_path, rows)]))
    assert [t.arrived_s for t in turns] == [0.0, 8.5, 15.75]
    assert bench.source.exhausted()


def test_start_to_start_gap_after_completion_double_counts_service_so_gaps_run_from_the_end(tmp_path: Path) -> None:
    recorded = [row(0, 640), row(30, 700)]
    for r in recorded:
        del r["think_time"]
        r["api_time"] = 25.0
    bench = Bench(service_s=25.0)
    turns = bench.play(from_the_start(bench, [one_script(tmp_path, recorded)]))
    assert [t.arrived_s for t in turns] == [0.0, 30.0]


def test_replayed_prompts_are_the_recorded_ones_though_contexts_compact(tmp_path: Path) -> None:
    corpus = generate("agentx_subagents", sessions=6, seed=3)
    bench = Bench()
    turns = bench.play(
        LanesSource(
            bench.stage, scripts(corpus), lanes=1, seed=1, start_window=(0.0, 0.0), recycle=False, tree_idle_cap_s=1.0
        )
    )
    played = corpus.conversations[LanesSource.draw(bench.source, 0, 0)]
    want = sorted(p for s in played.streams for p in s.prompt_tokens.tolist())
    assert sorted(t.prompt_tokens for t in turns) == want
    assert sorted(h.output_tokens for h in bench.hidden) == sorted(
        o for s in played.streams for o in s.output_tokens.tolist()
    )
    assert all(sum(r.blocks for r in t.context.runs) == t.prompt_tokens // 64 for t in turns)


def test_a_parent_waits_for_the_sub_agents_that_it_joins(tmp_path: Path) -> None:
    inner = [row(0, 640, first=500), row(5, 700, first=500, think_time=3.0)]
    rows = [row(0, 640), agent(4.0, inner), row(20, 700)]
    bench = Bench(service_s=10.0)
    turns = bench.play(from_the_start(bench, [one_script(tmp_path, rows)]))
    # Spawned 2 s after the first answer; two inner turns of 10 s with 3 s between; the parent, as recorded, 9 s after.
    assert [t.arrived_s for t in turns] == [0.0, 12.0, 25.0, 46.0 - 2.0]
    assert [t.ordinal for t in turns] == [0, 0, 1, 1]


def test_a_background_agent_gates_nothing_but_holds_its_lane(tmp_path: Path) -> None:
    inner = [row(0, 640, first=500)]
    rows = [row(0, 640), agent(2.0, inner, "async_launched"), row(4, 700, think_time=1.0)]
    bench = Bench(service_s=lambda turn, hidden: 500.0 if turn.context.runs[0].first == 500 else 1.0)
    source = from_the_start(bench, [one_script(tmp_path, rows)])
    turns = bench.play(source, until_s=100.0)
    assert sorted(t.arrived_s for t in turns) == [0.0, 1.0, 2.0]
    assert source.player.trees == 1
    bench.clock.run()
    assert source.player.trees == 0


def test_sub_agents_carried_the_parents_session_id_so_here_each_has_its_own(tmp_path: Path) -> None:
    rows = [row(0, 640), agent(3.0, [row(0, 640, first=500)]), row(20, 700)]
    bench = Bench()
    turns = bench.play(from_the_start(bench, [one_script(tmp_path, rows)]))
    assert turns[0].session_id == turns[2].session_id != turns[1].session_id
    assert all(0 <= t.session_id < 2**63 for t in turns)


def test_the_cap_must_not_bypass_a_join_gate(tmp_path: Path) -> None:
    rows = [row(0, 640), agent(1_000.0, [row(0, 640, first=500)]), row(2_000, 700)]
    bench = Bench(service_s=50.0)
    turns = bench.play(from_the_start(bench, [one_script(tmp_path, rows)], tree_idle_cap_s=10.0))
    assert [t.arrived_s for t in turns] == [0.0, 60.0, 120.0]


def test_the_tree_cap_is_exact_and_can_fail(tmp_path: Path) -> None:
    rows = [row(0, 640), row(3, 700, think_time=0.6)]
    for cap, start in ((0.25, 1.25), (0.7, 1.6)):
        bench = Bench()
        turns = bench.play(from_the_start(bench, [one_script(tmp_path, rows)], tree_idle_cap_s=cap))
        assert turns[1].arrived_s == pytest.approx(start, abs=1e-12)


def test_only_the_idle_time_of_the_whole_system_is_cut_by_the_system_cap(tmp_path: Path) -> None:
    slow = [row(0, 640), row(102, 700, think_time=100.0)]
    bench = Bench()
    alone = bench.play(
        from_the_start(bench, [one_script(tmp_path, slow)], tree_idle_cap_s=None, system_idle_cap_s=10.0)
    )
    assert [t.arrived_s for t in alone] == [0.0, 11.0]
    bench = Bench(service_s=lambda turn, hidden: 1.0 if turn.session_id == bench.turns[0].session_id else 60.0)
    both = bench.play(
        from_the_start(bench, [one_script(tmp_path, slow)], lanes=2, tree_idle_cap_s=None, system_idle_cap_s=10.0)
    )
    # Lane 0 idles from 1 s, lane 1 works until 60 s; only then is all at rest, and lane 0's 41 s shrink to 10.
    assert [t.arrived_s for t in both] == [0.0, 0.0, 70.0, pytest.approx(129.0)]


def test_duplicated_sessions_hit_each_others_cache_so_every_play_has_its_own_scope(tmp_path: Path) -> None:
    bench = Bench()
    source = from_the_start(bench, [one_script(tmp_path, [row(0, 640), row(3, 700)])], lanes=3, recycle=True)
    turns = bench.play(source, until_s=20.0)
    scopes = {t.session_id: t.context.runs[0].scope for t in turns}
    assert len(set(scopes.values())) == len(scopes) > 6


def test_a_shared_prefix_is_shared_and_the_rest_is_not(tmp_path: Path) -> None:
    talk = conversation([row(0, 640), row(3, 700)], tool_tokens=200, system_tokens=100)
    corpus = weka.read(written(tmp_path, talk))
    bench = Bench()
    plays = scripts(corpus, share_prefix=True)
    turns = bench.play(from_the_start(bench, plays, lanes=2))
    heads = {t.context.runs[0] for t in turns}
    assert len(heads) == 1
    assert heads.pop().blocks == 300 // 64
    assert len({t.context.runs[1].scope for t in turns}) == 2
    assert all(sum(r.blocks for r in t.context.runs) == t.prompt_tokens // 64 for t in turns)


def test_a_start_is_cut_inside_the_recorded_run_with_one_primer_before_it(tmp_path: Path) -> None:
    rows = [row(10.0 * k, 640 + 64 * k, think_time=8.0) for k in range(20)]
    play = one_script(tmp_path, rows)
    bench = Bench()
    turns = bench.play(from_the_start(bench, [play], start_window=(0.5, 0.5)))
    # The run lasts 192 s and is cut at 96 s: request 9 (at 90 s) primes, request 10 was due 4 s after the cut.
    assert [t.ordinal for t in turns] == list(range(9, 20))
    assert [t.arrived_s for t in turns[:3]] == [0.0, 4.0, 13.0]
    bench = Bench()
    turns = bench.play(from_the_start(bench, [play], start_window=(0.5, 0.5), primer=False))
    assert [t.ordinal for t in turns] == list(range(10, 20))


def test_an_overflow_ends_its_session_and_other_losses_do_not(tmp_path: Path) -> None:
    rows = [row(3.0 * k, 640, think_time=1.0) for k in range(4)]
    for outcome, played in (("context_overflow", 2), ("shed", 4)):
        bench = Bench()
        bench.outcomes = {1: outcome}
        source = from_the_start(bench, [one_script(tmp_path, rows)])
        assert len(bench.play(source)) == played
        assert source.player.abandoned_turns == 4 - played
        assert source.exhausted()


@pytest.mark.parametrize("kind", ["lanes", "sessions"])
def test_two_policies_on_one_seed_see_the_same_turn_under_the_same_key(kind: str) -> None:
    corpus = generate("agentx_subagents", sessions=30, seed=7)
    plays = scripts(corpus, share_prefix=True)

    def world(speed: float) -> dict[int, Any]:
        bench = Bench(service_s=lambda turn, hidden: speed * (hidden.service_s or 1.0), draws=2)
        source: Any
        if kind == "lanes":
            source = LanesSource(bench.stage, plays, lanes=8, seed=5, tree_idle_cap_s=20.0)
        else:
            source = SessionArrivals(bench.stage, plays, times(constant(0.05), unit_gaps(9)), seed=5)
        turns = bench.play(source, until_s=3_000.0)
        by_key = {t.key: (t[2:5], t.prompt_tokens, t.context, h) for t, h in zip(turns, bench.hidden)}
        assert len(by_key) == len(turns)
        return by_key

    fast, slow = world(0.5), world(3.0)
    common = fast.keys() & slow.keys()
    assert len(common) > 100
    assert all(fast[key] == slow[key] for key in common)


def test_lanes_hold_one_tree_each_and_never_run_dry(tmp_path: Path) -> None:
    corpus = generate("agentx", sessions=20, seed=7)
    bench = Bench(service_s=2.0)
    source = LanesSource(bench.stage, scripts(corpus), lanes=5, seed=5, tree_idle_cap_s=5.0)
    bench.play(source, until_s=4_000.0)
    assert source.player.trees == 5
    assert source.statistics()["sessions_begun"] > 5
    assert not source.exhausted()


def test_so_many_sessions_arrive_and_then_the_source_is_dry() -> None:
    plays = scripts(generate("chat", sessions=20, seed=2))
    bench = Bench()
    source = SessionArrivals(bench.stage, plays, times(constant(1.0), unit_gaps(3)), seed=1, sessions=50)
    turns = bench.play(source)
    assert source.exhausted()
    assert source.player.trees == 0
    assert len({t.session_id for t in turns}) == 50


def test_warm_up_turns_repeat_the_primer_for_one_token_and_then_the_recorded_run_goes_on(tmp_path: Path) -> None:
    rows = [row(10.0 * k, 640 + 64 * k, out=50, think_time=8.0) for k in range(20)]
    bench = Bench()
    turns = bench.play(from_the_start(bench, [one_script(tmp_path, rows)], start_window=(0.5, 0.5), warmup_turns=3))
    assert [t.ordinal for t in turns] == [9, 9, 9, 9, *range(10, 20)]
    assert [h.output_tokens for h in bench.hidden[:5]] == [50, 1, 1, 1, 50]
    assert len({t.key for t in turns}) == len(turns)
    assert len({t.context for t in turns[:4]}) == 1
    assert turns[4].arrived_s == 4.0
    assert bench.source.exhausted()


def test_lanes_of_rows_are_a_fixed_concurrency_and_wrapping_is_explicit_and_busts_the_cache(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    rows = [{"timestamp": k, "input_length": 1_024, "output_length": 5, "hash_ids": [0, k + 1]} for k in range(5)]
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    plays = scripts(detect.read(path))
    bench = Bench(service_s=1.0)
    source = LanesSource(bench.stage, plays, lanes=2, seed=1, start_window=(0.0, 0.0), order="in_turn")
    turns = bench.play(source, until_s=4.5)
    assert bench.most_in_flight == 2
    seen = [[run.first + run.blocks - 1 for run in t.context.runs][-1] for t in turns]
    assert sorted(seen[:5]) == [1, 2, 3, 4, 5]
    scopes = [t.context.runs[0].scope for t in turns]
    assert len(set(scopes[:5])) == 1
    assert scopes[5] not in scopes[:5]


def test_append_only_history_over_counted_input_so_every_recorded_turn_is_replayed_as_it_was() -> None:
    corpus = detect.read(trace("agentx_v8", "sample"))
    bench = Bench(service_s=2.0)
    source = LanesSource(
        bench.stage, scripts(corpus), lanes=8, seed=1, start_window=(0.0, 0.0), order="in_turn", recycle=False
    )
    turns = bench.play(source)
    assert source.exhausted()
    recorded = sorted(
        (p, o, tuple(runs))
        for c in corpus.conversations
        for s in c.streams
        for p, o, runs in zip(s.prompt_tokens.tolist(), s.output_tokens.tolist(), s.all_runs())
    )
    replayed = sorted(
        (t.prompt_tokens, h.output_tokens, tuple((r.first, r.blocks) for r in t.context.runs))
        for t, h in zip(turns, bench.hidden)
    )
    assert replayed == recorded


def test_a_recorded_run_at_recorded_speed_takes_its_recorded_time() -> None:
    for talk in detect.read(trace("agentx_v8", "sample")).conversations:
        bench = Bench(service_s=lambda turn, hidden: hidden.service_s or 0.0)
        if any((s.service_s != s.service_s).any() for s in talk.streams):
            continue
        source = from_the_start(bench, [script(talk)], tree_idle_cap_s=None)
        turns = bench.play(source)
        # Recorded clocks count whole seconds, so that each of the recorded waits may be off by one.
        assert abs(bench.clock.now() - talk.duration_s) <= len(turns)
