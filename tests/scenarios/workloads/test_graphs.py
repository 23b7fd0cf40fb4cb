"""Session graphs of any shape, played on plants of any speed: laws of order, of gaps and of conservation."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from scenarios.workloads.corpus import Conversation, StreamBuilder
from scenarios.workloads.player import Player
from scenarios.workloads.script import Script, script
from scenarios.workloads.session_play import SessionPlay
from tests.scenarios.workloads.kit import Bench

Starts = dict[tuple[int, int], float]

times = st.integers(0, 40).map(lambda k: k * 0.5)


@st.composite
def trees(draw: st.DrawFn) -> Conversation:
    """A root and up to three sub-agents, spawned after and joined before drawn requests of the root."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    builders = [StreamBuilder("" if s == 0 else f"a{s}", "root" if s == 0 else "spawn") for s in range(len(sizes))]
    for s, size in enumerate(sizes):
        t = draw(times)
        for k in range(size):
            service = draw(st.one_of(st.none(), times))
            builders[s].add(
                t_s=t,
                prompt_tokens=64 * (1 + s) + k,
                output_tokens=1 + k,
                service_s=service,
                think_s=draw(st.one_of(st.none(), times)),
                runs=[(100 * s, 1 + s)],
            )
            t += draw(times)
    for s in range(1, len(sizes)):
        after = draw(st.integers(-1, sizes[0] - 1))
        if after >= 0:
            builders[s].waits[0] = ((0, after),)
        joined = draw(st.one_of(st.none(), st.integers(after + 1, sizes[0])))
        if joined is not None and joined < sizes[0] and joined > after:
            builders[0].waits[joined] = (*builders[0].waits.get(joined, ()), (s, sizes[s] - 1))
    return Conversation(name="c", block_tokens=64, streams=tuple(b.build() for b in builders))


def play(conversation: Conversation, speed: float, **options: Any) -> tuple[Script, Bench, Starts]:
    bench = Bench(service_s=lambda turn, hidden: speed * (1.0 + turn.prompt_tokens % 7))
    compiled = script(conversation)
    ended: list[SessionPlay] = []
    cut = {name: options.pop(name) for name in ("cut_s", "primer", "warmup_turns") if name in options}
    player = Player(bench.stage, lambda tree, at_s: ended.append(tree), **options)
    bench.source = player
    player.start(bench.arrive)
    player.play(compiled, key=11, scope=5, **cut)
    bench.clock.run()
    assert len(ended) == 1
    assert player.trees == 0
    starts = {((t.prompt_tokens // 64) - 1, t.ordinal): t.arrived_s for t in bench.turns}
    return compiled, bench, starts


def predecessors(conversation: Conversation, s: int, k: int) -> list[tuple[int, int]]:
    previous = [(s, k - 1)] if k else []
    return previous + list(conversation.streams[s].waits.get(k, ()))


@given(trees(), st.sampled_from([0.0, 0.5, 3.0]))
@settings(max_examples=150, deadline=None)
def test_every_request_is_played_once_with_its_own_lengths_after_all_that_it_waits_for(
    conversation: Conversation, speed: float
) -> None:
    compiled, bench, starts = play(conversation, speed)
    assert len(bench.turns) == conversation.requests == len(starts)
    assert len({t.key for t in bench.turns}) == len(bench.turns)
    ends = {((t.prompt_tokens // 64) - 1, t.ordinal): bench.ends[t.turn_id] for t in bench.turns}
    for s, stream in enumerate(conversation.streams):
        for k in range(len(stream)):
            before = [ends[node] for node in predecessors(conversation, s, k)]
            gap_s = compiled.streams[s].gap_s[k]
            expected = max(before) + gap_s if before else float(stream.t_s[0])
            assert abs(starts[s, k] - expected) < 1e-9
    outputs = sorted(h.output_tokens for h in bench.hidden)
    assert outputs == sorted(o for stream in conversation.streams for o in stream.output_tokens.tolist())


@given(trees())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
def test_a_plant_as_fast_as_recorded_gives_the_recorded_run_back(conversation: Conversation) -> None:
    assume(not _shifted(conversation))
    starts = play_at_recorded_speed(conversation)
    for s, stream in enumerate(conversation.streams):
        for k in range(len(stream)):
            assert abs(starts[s, k] - float(stream.t_s[k])) < 1e-9


def play_at_recorded_speed(conversation: Conversation) -> Starts:
    bench = Bench()
    spans = {
        ((s + 1) * 64 + k): float(stream.ends_s()[k] - stream.t_s[k])
        for s, stream in enumerate(conversation.streams)
        for k in range(len(stream))
    }
    bench.service = lambda turn, hidden: spans[turn.prompt_tokens]
    player = Player(bench.stage, lambda tree, at_s: None)
    bench.source = player
    player.start(bench.arrive)
    player.play(script(conversation), key=11, scope=5)
    bench.clock.run()
    return {((t.prompt_tokens // 64) - 1, t.ordinal): t.arrived_s for t in bench.turns}


def _shifted(conversation: Conversation) -> bool:
    """Tell whether any request starts before what it waits for has ended, or states a wait of its own."""
    for s, stream in enumerate(conversation.streams):
        if any(x == x for x in stream.think_s[1:].tolist()):
            return True
        for k in range(len(stream)):
            ends = [float(conversation.streams[ws].ends_s()[wk]) for ws, wk in predecessors(conversation, s, k)]
            if ends and float(stream.t_s[k]) < max(ends):
                return True
    return False


@given(trees(), st.sampled_from([0.5, 3.0]), st.sampled_from([0.0, 2.0, 5.0]))
@settings(max_examples=150, deadline=None)
def test_an_idle_cap_bounds_idle_time_and_opens_no_gate(conversation: Conversation, speed: float, cap_s: float) -> None:
    _, bench, starts = play(conversation, speed, tree_idle_cap_s=cap_s)
    assert len(starts) == conversation.requests
    ends = {((t.prompt_tokens // 64) - 1, t.ordinal): bench.ends[t.turn_id] for t in bench.turns}
    for s, stream in enumerate(conversation.streams):
        for k in range(len(stream)):
            assert all(starts[s, k] >= ends[node] - 1e-9 for node in predecessors(conversation, s, k))
    for at in sorted(starts.values()):
        running = [e for node, e in ends.items() if starts[node] < at <= e]
        if not running and at > 0.0:
            idle_from = max([e for node, e in ends.items() if e <= at and starts[node] < at], default=0.0)
            assert at - idle_from <= cap_s + 1e-9


@given(trees(), st.floats(0.0, 1.2), st.booleans(), st.integers(0, 3))
@settings(max_examples=150, deadline=None)
def test_a_cut_plays_what_starts_at_or_after_it_and_one_primer(
    conversation: Conversation, share: float, primer: bool, warmup_turns: int
) -> None:
    cut_s = share * max(float(stream.t_s[-1]) for stream in conversation.streams)
    compiled, bench, starts = play(conversation, 0.5, cut_s=cut_s, primer=primer, warmup_turns=warmup_turns)
    after = {(s, k) for s, part in enumerate(compiled.streams) for k, t in enumerate(part.t_s) if t >= cut_s}
    extra = starts.keys() - after
    assert after <= starts.keys()
    assert len(extra) <= (1 if primer else 0)
    assert len(bench.turns) == len(starts) + (warmup_turns if extra else 0)
    ends = {((t.prompt_tokens // 64) - 1, t.ordinal): bench.ends[t.turn_id] for t in bench.turns}
    for s, k in after:
        assert all(starts[s, k] >= ends[n] - 1e-9 for n in predecessors(conversation, s, k) if n in ends)
