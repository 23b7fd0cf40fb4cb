"""Draw the prompts of one generated stream: lengths, block ids and prefix breaks, before the turns have times.

Each prompt keeps the one before it and adds growth, unless its prefix breaks:

| break | prompt after | blocks kept of the prompt before |
|---|---|---|
| rewrite | equal size | tools and system prompt, up to a quarter |
| compaction | drawn; median 33 k | tools and system prompt |
| shrink | 50 to 90 % | 20 to 80 % of what remains |
| rewind | equal size, within 10 % | 25 to 90 % |
| grow | larger | 25 to 90 % |
| stalactite | a short side prompt, then back to the old prefix | tools and system prompt |

A compaction is forced when a prompt exceeds the session's limit. Every new block gets a new id, so the possible reuse
follows from the ids alone, as in a recorded trace.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scenarios.workloads import blocks
from scenarios.workloads.blocks import Run
from scenarios.workloads.corpus import STARTERS, StreamBuilder
from scenarios.workloads.generate import draws, tables

BLOCK_TOKENS = 64
LEAST_TOKENS = 9_500
EARLY_TOKENS = 40_000
LEAST_RESULT_TOKENS = 40
"""A turn adds at least the answer before it and a few tokens of result."""
TOOL, HUMAN = STARTERS.index("tool"), STARTERS.index("human")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentParams:
    """Parameters of generated sessions; the defaults follow WEKA v8 (see `tables`)."""

    versions: int = 8
    """Client versions: each has a tools and system prompt that its sessions share."""
    length_against_first: float = -0.25
    """Rank correlation of a session's requests with its first prompt: captures that begin late are short."""
    session_spread: float = 0.30
    """Log spread of a per-session factor on growth."""
    persistence: float = 0.3
    """Correlation of neighbouring draws (normal scores) of growth, answers and tool waits: work comes in phases. No
    figure for it is published; a round value."""
    person_habit: float = 0.8
    person_concentration: float = 20.0
    """How strongly a person's waits depend on the person (correlation of their normal scores within a session), and how
    alike sessions are in the share of turns that a person starts (Beta distributed). Set by the published lengths of
    sessions in time: quartiles 1,345, 3,598 and 7,355 s, 53,074 s at 95 %, mean 10,449 s."""
    limits_tokens: tuple[tuple[float, float, float], ...] = ((0.60, 150_000, 195_000), (0.40, 320_000, 950_000))
    """(share of sessions, from, to): the prompt length at which a session is compacted."""
    breaks_per_request: float = 1.45 * tables.BREAKS_PER_REQUEST
    """Chance of a break at a prompt of `break_at_tokens` or more; below, in proportion: large prompts break more."""
    break_at_tokens: float = 220_000
    late_growth: float = 0.57
    early_growth: float = 2.5
    """Growth of a turn is its table's value x (late + early e^(-prompt / 40 k)): early turns read many files."""
    subagent_sessions_ratio: float = tables.SUBAGENT_SESSIONS_RATIO
    subagents_per_such_session: float = tables.SUBAGENTS_PER_SUCH_SESSION
    background_ratio: float = tables.BACKGROUND_RATIO


class GrowingPrompt:
    """The blocks of a growing prompt; every id is used once."""

    __slots__ = ("ids", "prompt_tokens", "runs")

    def __init__(self, ids: BlockIds, head: list[Run]) -> None:
        self.ids = ids
        self.runs = head
        self.prompt_tokens = 0

    def set_length(self, prompt_tokens: int, kept_blocks: int) -> None:
        """Keep the first blocks and fill up to the length with new ones (a partial tail has no id)."""
        total_blocks = prompt_tokens // BLOCK_TOKENS
        kept = blocks.head(self.runs, min(kept_blocks, total_blocks))
        new_blocks = total_blocks - blocks.count(kept)
        self.runs = blocks.join([*kept, (self.ids.take(new_blocks), new_blocks)]) if new_blocks else kept
        self.prompt_tokens = prompt_tokens


class BlockIds:
    """A counter of block ids."""

    __slots__ = ("next",)

    def __init__(self) -> None:
        self.next = 1

    def take(self, count: int) -> int:
        """Return the first of `count` new consecutive ids."""
        first = self.next
        self.next += count
        return first


@dataclass(slots=True)
class StreamDraws:
    """A stream's turns before they have times."""

    prompt: list[int]
    cached: list[int]
    runs: list[list[Run]]
    think_s: list[float]
    starter: list[int]
    output: NDArray[np.float64]


def draw_stream(
    context: GrowingPrompt,
    stream: StreamBuilder,
    rng: np.random.Generator,
    params: AgentParams,
    first: int,
    requests: int,
) -> StreamDraws:
    """Draw the turns of a stream: prompts with their breaks, answers, and think times."""
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
    turns = StreamDraws([], [], [], think.tolist(), [HUMAN if a else TOOL for a in after_answer], output)
    prefix_to_restore: list[Run] | None = None
    for k in range(requests):
        prompt_tokens = context.prompt_tokens
        pace = params.late_growth + params.early_growth * math.exp(-prompt_tokens / EARLY_TOKENS)
        answered = output[k - 1] if k else 0.0
        grown = prompt_tokens + int(max(BLOCK_TOKENS, answered + LEAST_RESULT_TOKENS, growth[k] * pace))
        kind = (breaks[k] if thin[k] * params.break_at_tokens < prompt_tokens else "") if k else "first"
        before = context.runs
        if prefix_to_restore is not None:
            context.runs, prefix_to_restore = prefix_to_restore, None
            context.set_length(blocks.count(context.runs) * BLOCK_TOKENS + int(growth[k]), blocks.count(context.runs))
        elif kind == "first":
            context.set_length(first, 0)
        elif kind == "compaction" or grown > limit:
            after = min(int(tables.AFTER_COMPACTION_TOKENS.draw(rng.random())), context.prompt_tokens // 2)
            context.set_length(max(after, head * BLOCK_TOKENS + 500), head)
            turns.think_s[k] = float(tables.THINK_BEFORE_COMPACTION_S.draw(rng.random()))
            turns.starter[k] = HUMAN
        elif kind == "stalactite":
            prefix_to_restore = context.runs
            context.set_length(head * BLOCK_TOKENS + int(growth[k]), head)
        elif kind == "":
            context.set_length(grown, blocks.count(context.runs))
        else:
            _break(context, kind, grown, head, float(rng.random()), float(rng.random()))
        turns.cached.append(blocks.common(before, context.runs) * BLOCK_TOKENS if k else 0)
        turns.prompt.append(context.prompt_tokens)
        turns.runs.append(context.runs)
    return turns


def _breaks(rng: np.random.Generator, params: AgentParams, size: int) -> list[str]:
    kinds = list(tables.BREAK_SHARE)
    # Most compactions are forced by the session's limit; the drawn ones are those before it.
    weights = np.array([w * (0.25 if k == "compaction" else 1.0) for k, w in tables.BREAK_SHARE.items()])
    kind_index = rng.choice(len(kinds), size=size, p=weights / weights.sum())
    is_break = rng.random(size) < params.breaks_per_request
    return [kinds[d] if b else "" for d, b in zip(kind_index, is_break)]


def _limit(rng: np.random.Generator, params: AgentParams) -> float:
    u, v = rng.random(2)
    for share, low, high in params.limits_tokens:
        if u < share:
            return float(low + (high - low) * v)
        u -= share
    return float(params.limits_tokens[-1][2])


def _break(context: GrowingPrompt, kind: str, grown: int, head: int, u: float, v: float) -> None:
    size = context.prompt_tokens
    if kind == "rewrite":
        context.set_length(size, head)
    elif kind == "shrink":
        after = max(LEAST_TOKENS, int(size * (0.5 + 0.4 * u)))
        context.set_length(after, int(after / BLOCK_TOKENS * (0.2 + 0.6 * v)))
    elif kind == "rewind":
        context.set_length(
            max(LEAST_TOKENS, int(size * (0.92 + 0.16 * u))), int(size / BLOCK_TOKENS * (0.25 + 0.64 * v))
        )
    else:
        context.set_length(grown + int(0.1 * size * u), int(size / BLOCK_TOKENS * (0.25 + 0.64 * v)))
