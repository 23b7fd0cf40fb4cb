"""Rows of time, prompt and answer, whatever their form: gathered here, and made into sessions or independent rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from scenarios.workloads.blocks import Run
from scenarios.workloads.corpus import Conversation, Corpus, StreamBuilder, assumed_service_s
from scenarios.workloads.readers import rows
from scenarios.workloads.repairs import Repairs


@dataclass(slots=True, kw_only=True)
class PlainRow:
    """One request. `t_s` None: the source has no clock. `turn`: its place within its session, where that is stated."""

    at: str
    prompt_tokens: int
    output_tokens: int
    t_s: float | None = None
    service_s: float | None = None
    session: str | None = None
    turn: float | None = None
    runs: list[Run] = field(default_factory=list)


def corpus_of(
    listed: list[PlainRow],
    path: Path,
    form: str,
    repairs: Repairs,
    *,
    block_tokens: int = 64,
    scope: Literal["global", "none"] = "none",
) -> Corpus:
    """Return the corpus of these rows.

    Rows of one session follow each other, by their turns or their stamps. Where no session has two rows, and for rows
    without a session, each stands alone. Without a clock, rows can be played in lanes or as arriving sessions.
    """
    if scope == "none":
        repairs.note("no prefix information", f"{path}", "a cache policy cannot be judged on this trace")
    if any(row.t_s is None for row in listed):
        repairs.note("no clock", f"{path}", "rows have no time of their own: play them in lanes or as sessions")
    sessions: dict[str, list[PlainRow]] = {}
    alone: list[PlainRow] = []
    for row in listed:
        if row.session is None:
            alone.append(row)
        else:
            sessions.setdefault(row.session, []).append(row)
    if all(len(turns) == 1 for turns in sessions.values()):
        sessions, alone = {}, listed
    conversations = [
        Conversation(name=name, block_tokens=block_tokens, streams=(stream.build(),), start_s=start_s)
        for name, turns in sessions.items()
        for stream, start_s in [_session(turns, repairs)]
    ]
    if alone:
        conversations.append(
            _independent(alone, path.name if not sessions else "without a session", block_tokens, repairs)
        )
    corpus = Corpus(name=path.name, format=form, conversations=conversations, scope=scope, repairs=repairs)
    return rows.with_digest(corpus, path)


def _independent(listed: list[PlainRow], name: str, block_tokens: int, repairs: Repairs) -> Conversation:
    stream = StreamBuilder("", "independent")
    clocked = all(row.t_s is not None for row in listed)
    for row in listed:
        t_s = rows.check_order(stream, row.t_s or 0.0, row.at, repairs) if clocked else 0.0
        stream.add(
            t_s=t_s,
            prompt_tokens=row.prompt_tokens,
            output_tokens=row.output_tokens,
            service_s=row.service_s,
            runs=row.runs,
        )
    return Conversation(
        name=name, block_tokens=block_tokens, streams=(stream.build(),), start_s=0.0 if clocked else None
    )


def _session(turns: list[PlainRow], repairs: Repairs) -> tuple[StreamBuilder, float | None]:
    by_turn = all(row.turn is not None for row in turns)
    clocked = all(row.t_s is not None for row in turns)

    def place(row: PlainRow) -> float:
        return (row.turn if by_turn else row.t_s) or 0.0

    ordered = sorted(turns, key=place) if by_turn or clocked else turns
    if ordered != turns:
        repairs.note("time going backwards", turns[0].at, "sorted within the session")
    start_s = ordered[0].t_s if clocked else None
    stream = StreamBuilder("", "root")
    end_s = 0.0
    for row in ordered:
        t_s = max(stream.last_t_s, (row.t_s or 0.0) - (start_s or 0.0)) if clocked else end_s
        stream.add(
            t_s=t_s,
            prompt_tokens=row.prompt_tokens,
            output_tokens=row.output_tokens,
            service_s=row.service_s,
            think_s=None if clocked else 0.0,
            runs=row.runs,
        )
        stream.last_t_s = t_s
        end_s = t_s + (row.service_s or float(assumed_service_s(np.array([row.output_tokens]))[0]))
    return stream, start_s
