"""A coding agent's session, turn by turn.

A session is a root stream and, in some sessions, sub-agents. Its first prompt holds tools and system prompt (shared by
sessions of the same client version) and whatever it began with. Each later prompt keeps the one before it and adds
growth, unless its prefix breaks:

| break | prompt after | blocks kept of the prompt before |
|---|---|---|
| rewrite | equal size | tools and system prompt, up to a quarter |
| compaction | drawn; median 33 k | tools and system prompt |
| shrink | 50 to 90 % | 20 to 80 % of what remains |
| rewind | equal size, within 10 % | 25 to 90 % |
| grow | larger | 25 to 90 % |
| stalactite | a short side prompt, then back to the old prefix | tools and system prompt |

A compaction is forced when a prompt passes the session's own limit. Every new block gets a new id, so what a cache
could reuse follows from the ids alone, as in a recorded trace.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scenarios.workloads import blocks
from scenarios.workloads.blocks import Run
from scenarios.workloads.corpus import STARTERS, STOPS, Conversation, StreamBuilder
from scenarios.workloads.generate import draws, tables

BLOCK_TOKENS = 64
LEAST_TOKENS = 9_500
EARLY_TOKENS = 40_000
LEAST_RESULT_TOKENS = 40
"""A turn adds at least the answer before it and a few tokens of result."""
TOOL, HUMAN = STARTERS.index("tool"), STARTERS.index("human")
STOP_TOOL, STOP_ANSWER = STOPS.index("tool_use"), STOPS.index("end_turn")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentParams:
    """What may be turned; the defaults follow WEKA v8 (see `tables`)."""

    versions: int = 8
    """Client versions: each has its own tools and system prompt, which its sessions share."""
    length_against_first: float = -0.25
    """Rank correlation of a session's requests with its first prompt: captures that begin late are short."""
    session_spread: float = 0.30
    """Log spread of a session's own factor on its growth."""
    persistence: float = 0.3
    """Correlation of neighbouring draws (normal scores) of growth, answers and tool waits: work comes in phases. No
    figure for it is published; a round value."""
    person_habit: float = 0.8
    person_concentration: float = 20.0
    """How much a person's waits are that person's own (correlation of their normal scores within a session), and how
    alike sessions are in the share of turns that a person starts (Beta distributed). Set by the published lengths of
    sessions in time: quartiles 1,345, 3,598 and 7,355 s, 53,074 s at 95 %, mean 10,449 s."""
    limits_tokens: tuple[tuple[float, float, float], ...] = ((0.60, 150_000, 195_000), (0.40, 320_000, 950_000))
    """(share of sessions, from, to): the prompt length at which a session is compacted."""
    breaks_per_request: float = 1.45 * tables.BREAKS_PER_REQUEST
    """Chance of a break at a prompt of `break_at_tokens` or more; below, in proportion: large prompts break more."""
    break_at_tokens: float = 220_000
    late_growth: float = 0.57
    early_growth: float = 2.5
    """Growth of a turn is its table's value x (late + early e^(-prompt / 40 k)): a session that begins reads a lot."""
    subagent_sessions_ratio: float = tables.SUBAGENT_SESSIONS_RATIO
    subagents_per_such_session: float = tables.SUBAGENTS_PER_SUCH_SESSION
    background_ratio: float = tables.BACKGROUND_RATIO


class _Context:
    """The blocks of a growing prompt; ids are given out once."""

    __slots__ = ("ids", "prompt_tokens", "runs")

    def __init__(self, ids: _Ids, head: list[Run]) -> None:
        self.ids = ids
        self.runs = head
        self.prompt_tokens = 0

    def become(self, prompt_tokens: int, kept_blocks: int) -> None:
        """Keep the first blocks and fill up to the length with new ones (a partial tail has no id)."""
        full = prompt_tokens // BLOCK_TOKENS
        kept = blocks.head(self.runs, min(kept_blocks, full))
        fresh = full - blocks.count(kept)
        self.runs = blocks.join([*kept, (self.ids.take(fresh), fresh)]) if fresh else kept
        self.prompt_tokens = prompt_tokens


class _Ids:
    __slots__ = ("next",)

    def __init__(self) -> None:
        self.next = 1

    def take(self, count: int) -> int:
        first = self.next
        self.next += count
        return first


def session(name: str, rng: np.random.Generator, params: AgentParams) -> Conversation:
    """Make one session: lengths, blocks, think times and plausible server times.

    Parameters
    ----------
    name : str
    rng : numpy.random.Generator
        This session's own.
    params : AgentParams
    """
    u_first, u_count = draws.correlated(rng, params.length_against_first)
    first_tokens = int(tables.FIRST_PROMPT_TOKENS.draw(u_first))
    requests = max(1, round(float(tables.REQUESTS.draw(u_count))))
    root = StreamBuilder("", "root")
    version = int(rng.integers(params.versions))
    root.tool_tokens, root.system_tokens = _prefix(version, first_tokens)
    ids = _Ids()
    walk = _walk(_Context(ids, []), root, rng, params, first_tokens, requests)
    spawns = _spawns(rng, params, requests)
    inner = [_subagent(f"agent_{k + 1:03d}", ids, rng, params) for k in range(len(spawns))]
    return _laid_out(name, root, walk, spawns, inner, rng, params)


@dataclass(slots=True)
class _Walk:
    """A stream's turns before they have times."""

    prompt: list[int]
    cached: list[int]
    runs: list[list[Run]]
    think_s: list[float]
    starter: list[int]
    output: NDArray[np.float64]


def _prefix(version: int, first_tokens: int) -> tuple[int, int]:
    """Return (tool, system) tokens of a client version: about 15 k in all, less where the first prompt is short."""
    tool, system = 11_600 + 260 * version, 2_300 + 90 * version
    if tool + system > first_tokens - BLOCK_TOKENS:
        tool, system = 7_000 + 60 * version, 1_500
    return tool, system


def _walk(
    context: _Context, stream: StreamBuilder, rng: np.random.Generator, params: AgentParams, first: int, requests: int
) -> _Walk:
    size = requests
    rho = params.persistence
    growth = tables.GROWTH_TOKENS.draw(draws.phases(rng, size, rho)) * np.exp(
        params.session_spread * rng.standard_normal() - 0.5 * params.session_spread**2
    )
    output = np.maximum(1.0, np.round(tables.OUTPUT_TOKENS.draw(draws.phases(rng, size, rho))))
    after_answer = rng.random(size) < draws.share(rng, tables.AFTER_ANSWER_RATIO, params.person_concentration)
    think = np.where(
        after_answer,
        tables.THINK_AFTER_ANSWER_S.draw(draws.habits(rng, size, params.person_habit)),
        tables.THINK_AFTER_TOOL_S.draw(draws.phases(rng, size, rho)),
    )
    breaks, thin = _breaks(rng, params, size), rng.random(size)
    limit = max(_limit(rng, params), first + 4_000)
    head = (stream.tool_tokens + stream.system_tokens) // BLOCK_TOKENS
    walk = _Walk([], [], [], think.tolist(), [HUMAN if a else TOOL for a in after_answer], output)
    back: list[Run] | None = None
    for k in range(requests):
        held = context.prompt_tokens
        pace = params.late_growth + params.early_growth * math.exp(-held / EARLY_TOKENS)
        answered = output[k - 1] if k else 0.0
        grown = held + int(max(BLOCK_TOKENS, answered + LEAST_RESULT_TOKENS, growth[k] * pace))
        kind = (breaks[k] if thin[k] * params.break_at_tokens < held else "") if k else "first"
        before = context.runs
        if back is not None:
            context.runs, back = back, None
            context.become(blocks.count(context.runs) * BLOCK_TOKENS + int(growth[k]), blocks.count(context.runs))
        elif kind == "first":
            context.become(first, 0)
        elif kind == "compaction" or grown > limit:
            after = min(int(tables.AFTER_COMPACTION_TOKENS.draw(rng.random())), context.prompt_tokens // 2)
            context.become(max(after, head * BLOCK_TOKENS + 500), head)
            walk.think_s[k] = float(tables.THINK_BEFORE_COMPACTION_S.draw(rng.random()))
            walk.starter[k] = HUMAN
        elif kind == "stalactite":
            back = context.runs
            context.become(head * BLOCK_TOKENS + int(growth[k]), head)
        elif kind == "":
            context.become(grown, blocks.count(context.runs))
        else:
            _break(context, kind, grown, head, float(rng.random()), float(rng.random()))
        walk.cached.append(blocks.common(before, context.runs) * BLOCK_TOKENS if k else 0)
        walk.prompt.append(context.prompt_tokens)
        walk.runs.append(context.runs)
    return walk


def _breaks(rng: np.random.Generator, params: AgentParams, size: int) -> list[str]:
    kinds = list(tables.BREAK_SHARE)
    # Most compactions are forced by the session's limit; the drawn ones are those before it.
    weights = np.array([w * (0.25 if k == "compaction" else 1.0) for k, w in tables.BREAK_SHARE.items()])
    drawn = rng.choice(len(kinds), size=size, p=weights / weights.sum())
    broken = rng.random(size) < params.breaks_per_request
    return [kinds[d] if b else "" for d, b in zip(drawn, broken)]


def _limit(rng: np.random.Generator, params: AgentParams) -> float:
    u, v = rng.random(2)
    for share, low, high in params.limits_tokens:
        if u < share:
            return float(low + (high - low) * v)
        u -= share
    return float(params.limits_tokens[-1][2])


def _break(context: _Context, kind: str, grown: int, head: int, u: float, v: float) -> None:
    size = context.prompt_tokens
    if kind == "rewrite":
        context.become(size, head)
    elif kind == "shrink":
        after = max(LEAST_TOKENS, int(size * (0.5 + 0.4 * u)))
        context.become(after, int(after / BLOCK_TOKENS * (0.2 + 0.6 * v)))
    elif kind == "rewind":
        context.become(max(LEAST_TOKENS, int(size * (0.92 + 0.16 * u))), int(size / BLOCK_TOKENS * (0.25 + 0.64 * v)))
    else:
        context.become(grown + int(0.1 * size * u), int(size / BLOCK_TOKENS * (0.25 + 0.64 * v)))


def _spawns(rng: np.random.Generator, params: AgentParams, requests: int) -> list[int]:
    """Return after which root requests sub-agents are spawned, in order."""
    if rng.random() >= params.subagent_sessions_ratio:
        return []
    number = int(rng.geometric(min(1.0, 1.0 / params.subagents_per_such_session)))
    return sorted(int(k) for k in rng.integers(0, requests, number))


def _subagent(name: str, ids: _Ids, rng: np.random.Generator, params: AgentParams) -> tuple[StreamBuilder, _Walk]:
    background = rng.random() < params.background_ratio
    stream = StreamBuilder(name, "background" if background else "spawn")
    stream.tool_tokens, stream.system_tokens = 7_800, 2_000
    requests = round(float(tables.SUBAGENT_REQUESTS.draw(rng.random())))
    first = int(tables.SUBAGENT_FIRST_TOKENS.draw(rng.random()))
    walk = _walk(_Context(ids, []), stream, rng, params, first, requests)
    walk.think_s = tables.SUBAGENT_THINK_S.draw(rng.random(requests)).tolist()
    return stream, walk


def _laid_out(
    name: str,
    root: StreamBuilder,
    walk: _Walk,
    spawns: list[int],
    inner: list[tuple[StreamBuilder, _Walk]],
    rng: np.random.Generator,
    params: AgentParams,
) -> Conversation:
    """Give every turn its recorded times, so that joins and gaps fit one another, and build the record."""
    served = _served(walk, rng)
    joined: dict[int, list[int]] = {}
    for n, after in enumerate(spawns):
        joined.setdefault(after, []).append(n)
    t_s = end_s = 0.0
    inner_streams: list[tuple[StreamBuilder, float]] = []
    for k in range(len(walk.prompt)):
        waits = [n for n in joined.get(k - 1, ()) if inner[n][0].relation == "spawn"]
        wait_end_s = max([end_s] + [inner_streams[n][1] for n in waits])
        t_s = wait_end_s + walk.think_s[k] if k else 0.0
        end_s = _add(root, walk, served, k, t_s, t_s - end_s if k else 0.0)
        if waits:
            root.waits[k] = tuple((1 + n, len(inner[n][1].prompt) - 1) for n in waits)
        for n in joined.get(k, ()):
            builder, sub = inner[n]
            builder.waits[0] = ((0, k),)
            inner_streams.append((builder, _play(builder, sub, _served(sub, rng), end_s + 0.5)))
    return Conversation(
        name=name,
        block_tokens=BLOCK_TOKENS,
        streams=(root.build(), *(builder.build() for builder, _ in inner_streams)),
        models=("generated",),
    )


def _served(walk: _Walk, rng: np.random.Generator) -> tuple[list[int], list[float]]:
    n = len(walk.prompt)
    output = walk.output
    cached = np.array(walk.cached, dtype=np.float64)
    new = np.array(walk.prompt, dtype=np.float64) - cached
    service = tables.service_s(new, cached, output, rng.standard_normal(n))
    return [int(o) for o in output], [round(float(s), 3) for s in service]


def _add(
    stream: StreamBuilder, walk: _Walk, served: tuple[list[int], list[float]], k: int, t_s: float, think_s: float
) -> float:
    """Append turn k and return its end."""
    output, service = served
    last = k + 1 == len(walk.prompt)
    stream.add(
        t_s=t_s,
        prompt_tokens=walk.prompt[k],
        output_tokens=output[k],
        think_s=think_s,
        service_s=service[k],
        runs=walk.runs[k],
        stop=STOP_ANSWER if last or walk.starter[k + 1] == HUMAN else STOP_TOOL,
        starter=walk.starter[k] if k else HUMAN,
    )
    return t_s + service[k]


def _play(stream: StreamBuilder, walk: _Walk, served: tuple[list[int], list[float]], start_s: float) -> float:
    """Append a sub-agent's turns from `start_s` on and return when the last ends."""
    end_s = start_s
    for k in range(len(walk.prompt)):
        think_s = walk.think_s[k] if k else 0.0
        end_s = _add(stream, walk, served, k, end_s + think_s, think_s)
    return end_s
