"""Generate one session of a coding agent: a root stream, sub-agents in some sessions, and recorded times.

The first prompt holds tools and system prompt (shared by sessions of the same client version) and the initial context;
`prompts` describes how later prompts grow and break. Here the turns get service times, think times, and joins.
"""

from __future__ import annotations

import numpy as np

from scenarios.workloads.corpus import STOPS, Conversation, StreamBuilder
from scenarios.workloads.generate import draws, tables
from scenarios.workloads.generate.prompts import (
    BLOCK_TOKENS,
    HUMAN,
    AgentParams,
    BlockIds,
    GrowingPrompt,
    StreamDraws,
    draw_stream,
)

STOP_TOOL, STOP_ANSWER = STOPS.index("tool_use"), STOPS.index("end_turn")


def session(name: str, rng: np.random.Generator, params: AgentParams) -> Conversation:
    """Generate one session: lengths, blocks, think times and plausible service times.

    Parameters
    ----------
    name : str
    rng : numpy.random.Generator
        The generator of this session.
    params : AgentParams
    """
    u_first, u_count = draws.correlated(rng, params.length_against_first)
    first_tokens = int(tables.FIRST_PROMPT_TOKENS.draw(u_first))
    requests = max(1, round(float(tables.REQUESTS.draw(u_count))))
    root = StreamBuilder("", "root")
    version = int(rng.integers(params.versions))
    root.tool_tokens, root.system_tokens = _prefix(version, first_tokens)
    ids = BlockIds()
    turns = draw_stream(GrowingPrompt(ids, []), root, rng, params, first_tokens, requests)
    spawns = _spawns(rng, params, requests)
    subagents = [_subagent(f"agent_{k + 1:03d}", ids, rng, params) for k in range(len(spawns))]
    return _timed(name, root, turns, spawns, subagents, rng, params)


def _prefix(version: int, first_tokens: int) -> tuple[int, int]:
    """Return (tool, system) tokens of a client version: about 15 k in all, less where the first prompt is short."""
    tool, system = 11_600 + 260 * version, 2_300 + 90 * version
    if tool + system > first_tokens - BLOCK_TOKENS:
        tool, system = 7_000 + 60 * version, 1_500
    return tool, system


def _spawns(rng: np.random.Generator, params: AgentParams, requests: int) -> list[int]:
    """Return the ordinals of the root requests after which sub-agents are spawned, in order."""
    if rng.random() >= params.subagent_sessions_ratio:
        return []
    number = int(rng.geometric(min(1.0, 1.0 / params.subagents_per_such_session)))
    return sorted(int(k) for k in rng.integers(0, requests, number))


def _subagent(
    name: str, ids: BlockIds, rng: np.random.Generator, params: AgentParams
) -> tuple[StreamBuilder, StreamDraws]:
    background = rng.random() < params.background_ratio
    stream = StreamBuilder(name, "background" if background else "spawn")
    stream.tool_tokens, stream.system_tokens = 7_800, 2_000
    requests = round(float(tables.SUBAGENT_REQUESTS.draw(rng.random())))
    first = int(tables.SUBAGENT_FIRST_TOKENS.draw(rng.random()))
    turns = draw_stream(GrowingPrompt(ids, []), stream, rng, params, first, requests)
    turns.think_s = tables.SUBAGENT_THINK_S.draw(rng.random(requests)).tolist()
    return stream, turns


def _timed(
    name: str,
    root: StreamBuilder,
    turns: StreamDraws,
    spawns: list[int],
    subagents: list[tuple[StreamBuilder, StreamDraws]],
    rng: np.random.Generator,
    params: AgentParams,
) -> Conversation:
    """Set the recorded times of every turn, consistent with joins and gaps, and build the conversation."""
    answers = _answers(turns, rng)
    spawned_after: dict[int, list[int]] = {}
    for n, after in enumerate(spawns):
        spawned_after.setdefault(after, []).append(n)
    t_s = end_s = 0.0
    inner_streams: list[tuple[StreamBuilder, float]] = []
    for k in range(len(turns.prompt)):
        waits = [n for n in spawned_after.get(k - 1, ()) if subagents[n][0].relation == "spawn"]
        wait_end_s = max([end_s] + [inner_streams[n][1] for n in waits])
        t_s = wait_end_s + turns.think_s[k] if k else 0.0
        end_s = _add_turn(root, turns, answers, k, t_s, t_s - end_s if k else 0.0)
        if waits:
            root.waits[k] = tuple((1 + n, len(subagents[n][1].prompt) - 1) for n in waits)
        for n in spawned_after.get(k, ()):
            builder, sub = subagents[n]
            builder.waits[0] = ((0, k),)
            inner_streams.append((builder, _add_subagent(builder, sub, _answers(sub, rng), end_s + 0.5)))
    return Conversation(
        name=name,
        block_tokens=BLOCK_TOKENS,
        streams=(root.build(), *(builder.build() for builder, _ in inner_streams)),
        models=("generated",),
    )


def _answers(turns: StreamDraws, rng: np.random.Generator) -> tuple[list[int], list[float]]:
    n = len(turns.prompt)
    output = turns.output
    cached = np.array(turns.cached, dtype=np.float64)
    new_tokens = np.array(turns.prompt, dtype=np.float64) - cached
    service = tables.service_s(new_tokens, cached, output, rng.standard_normal(n))
    return [int(o) for o in output], [round(float(s), 3) for s in service]


def _add_turn(
    stream: StreamBuilder,
    turns: StreamDraws,
    answers: tuple[list[int], list[float]],
    k: int,
    t_s: float,
    think_s: float,
) -> float:
    """Append turn k and return its end."""
    output, service = answers
    last = k + 1 == len(turns.prompt)
    stream.add(
        t_s=t_s,
        prompt_tokens=turns.prompt[k],
        output_tokens=output[k],
        think_s=think_s,
        service_s=service[k],
        runs=turns.runs[k],
        stop=STOP_ANSWER if last or turns.starter[k + 1] == HUMAN else STOP_TOOL,
        starter=turns.starter[k] if k else HUMAN,
    )
    return t_s + service[k]


def _add_subagent(
    stream: StreamBuilder, turns: StreamDraws, answers: tuple[list[int], list[float]], start_s: float
) -> float:
    """Append a sub-agent's turns from `start_s` on and return when the last ends."""
    end_s = start_s
    for k in range(len(turns.prompt)):
        think_s = turns.think_s[k] if k else 0.0
        end_s = _add_turn(stream, turns, answers, k, end_s + think_s, think_s)
    return end_s
