"""Rows of sessions, one turn each: put into the order of time, linked into chains, and accumulated where incremental.

Incremental rows state only what a turn adds (AIPerf's and Dynamo's multi-turn form). The prompt of a turn is then the
prompt before it, the answer before it, and the new part; the ids that a row states are those of its new part, so they
are chained behind what the session had. Every id stands for its tokens one by one, as parts need not end with a block;
an answer has ids that no other session knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

from scenarios.workloads import blocks
from scenarios.workloads.blocks import Run
from scenarios.workloads.readers.graph import Request
from scenarios.workloads.repairs import Repairs, Skip

FEWEST_TURNS = 10
MOST_OF = 0.9
FIRST_ANSWER = 1 << 61
"""Token ids of answers and of parts without ids; below them, an id's tokens are id x block size onwards."""
LARGEST_ID = 1 << 48


def in_time_order(turns: Mapping[str, list[Request]], repairs: Repairs) -> list[list[Request]]:
    """Return the turns of each session by time stamp; a turn without one stays behind the turn above it."""
    sessions = []
    for listed in turns.values():
        kept: list[tuple[float, Request]] = []
        latest_s = stamp_s = float("-inf")
        for request in listed:
            stamp_s = stamp_s if request.t_s is None else request.t_s
            if request.t_s is not None and request.t_s < latest_s:
                problem = f"{request.t_s:g} s after {latest_s:g} s in one session"
                try:
                    repairs.repair("time going backwards", request.at, problem, "sorted by time stamp")
                except Skip:
                    continue
            latest_s = max(latest_s, stamp_s)
            kept.append((stamp_s, request))
        kept.sort(key=lambda entry: entry[0])
        if kept:
            sessions.append([request for _, request in kept])
    return sessions


def chained(sessions: list[list[Request]], repairs: Repairs) -> list[Request]:
    """Return all turns, each after the one before it in its session; a session whose start is missing is refused."""
    out: list[Request] = []
    for listed in sessions:
        if listed[0].t_s is None:
            problem = "missing; the first turn of a session needs its start"
            rejection = repairs.rejection("timestamp missing", f"{listed[0].at}: timestamp", problem)
            if isinstance(rejection, Skip):
                continue
            raise rejection
        listed[0].delay_s = None
        for before, request in pairwise(listed):
            request.after = [before.name]
            if request.delay_s is None and request.t_s is None:
                repairs.note("wait absent", request.at, "taken as 0 s after the turn before")
                request.delay_s = 0.0
        out.extend(listed)
    return out


def accumulate(sessions: list[list[Request]], block_tokens: int) -> None:
    """Make whole prompts of incremental turns, in ids of one token."""
    next_answer = FIRST_ANSWER
    numbers: dict[int, int] = {}
    for listed in sessions:
        context: list[Run] = []
        for request in listed:
            part = _token_runs(request, block_tokens, numbers)
            missing_tokens = request.prompt_tokens - blocks.count(part)
            if missing_tokens:
                part.append((next_answer, missing_tokens))
            context = blocks.join([*context, *part])
            request.runs, request.prompt_tokens = context, blocks.count(context)
            next_answer += missing_tokens
            context = [*context, (next_answer, request.output_tokens)]
            next_answer += request.output_tokens


def _token_runs(request: Request, block_tokens: int, numbers: dict[int, int]) -> list[Run]:
    """Return the stated ids as ids of tokens, up to the part's length; large ids (raw hashes) are numbered."""
    out = []
    for first, count in request.runs:
        for block in range(first, first + count) if first >= LARGEST_ID or first < 0 else ():
            out.append((numbers.setdefault(block, LARGEST_ID + len(numbers)) * block_tokens, block_tokens))
        if 0 <= first < LARGEST_ID:
            out.append((first * block_tokens, count * block_tokens))
    return blocks.head(blocks.join(out), request.prompt_tokens)


def doubt_incremental(sessions: list[list[Request]], path: Path, repairs: Repairs) -> None:
    """Doubt prompts that look incremental: later turns repeat nothing of the turn before and are shorter than it."""
    pairs = [(before, request) for listed in sessions for before, request in pairwise(listed)]
    if len(pairs) < FEWEST_TURNS:
        return
    signs = sum(
        request.prompt_tokens < before.prompt_tokens + before.output_tokens
        and not blocks.common(before.runs, request.runs)
        for before, request in pairs[:: max(1, len(pairs) // 10_000)]
    )
    if signs >= MOST_OF * len(pairs[:: max(1, len(pairs) // 10_000)]):
        problem = (
            f"{signs} later turns repeat no block of the turn before and are shorter than its prompt and answer: "
            "the rows may state only what is new"
        )
        repairs.doubt("turns look incremental", f"{path}", problem, "--delta accumulates them")
