"""Read TraceLab traces: rounds of coding agents, as JSONL rows or as replay CSV.

JSONL row: `session_id`, `round_index`, `input_tokens_total` = `prefix_tokens` (cached) + `newly_append_tokens`,
`output_tokens` [tokens], `timing_events` [{event_type, timestamp ISO}], `first_input_event_type`. A round starts at its
last input event (a person's message or a tool's result) and ends at its last output event.

CSV: `session_id` (or `id`), `round_idx`, `prefix_len`, `input_len` (only the NEW part), `output_len` [tokens],
`tool_wait_after_ms` [ms after this round's end], and optional `arrival_time` [ms]. No service times: assumed.

Both state the prefix instead of giving block ids: see `synthetic_blocks`. Source: github.com/uw-syfi/TraceLab (CC BY
4.0).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from scenarios.workloads.corpus import STARTERS, STOPS, Conversation, Corpus, StreamBuilder, assumed_service_s
from scenarios.workloads.readers import fields, rows
from scenarios.workloads.readers.rows import ReadOptions, Sample
from scenarios.workloads.readers.synthetic_blocks import StatedPrefix
from scenarios.workloads.repairs import Repairs, Skip

FORMAT = "tracelab"
INPUT_EVENTS = ("user_message", "tool_result")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def mismatch(sample: Sample) -> str:
    """Return why this is neither form of a TraceLab trace, '' when it is one."""
    if not rows.missing_columns(sample.header, "round_idx", "prefix_len", "input_len", "output_len"):
        return ""
    if isinstance(sample.first, dict):
        return rows.missing_keys(sample.first, "session_id", "round_index", "prefix_tokens", "newly_append_tokens")
    return rows.missing_columns(sample.header, "round_idx", "prefix_len", "input_len", "output_len")


class _Session:
    """One session being read."""

    def __init__(self, start_s: float | None) -> None:
        self.stream = StreamBuilder("", "root")
        self.chain = StatedPrefix()
        self.start_s = start_s
        self.end_s = 0.0
        self.wait_s: float | None = None

    def add(self, prompt_tokens: int, prefix_tokens: int, **more: Any) -> None:
        # Any: the keywords of StreamBuilder.add.
        if not len(self.stream):
            self.stream.system_tokens = prefix_tokens
        self.stream.add(prompt_tokens=prompt_tokens, runs=self.chain.extend(prompt_tokens, prefix_tokens), **more)


def read(path: Path, options: ReadOptions) -> Corpus:
    """Read rounds of either form into conversations, in the order in which the sessions begin."""
    repairs = Repairs(options.on_error)
    sessions: dict[str, _Session] = {}
    by_row = isinstance(rows.sample(path, options.on_error).first, dict)
    for at, row in rows.json_rows(path, repairs) if by_row else rows.csv_rows(path, repairs):
        try:
            if by_row:
                _round(row, at, sessions, repairs)
            else:
                _replay_row(row, at, sessions, repairs)
        except Skip:
            continue
    beyond = sum(session.chain.beyond_tokens for session in sessions.values())
    if beyond:
        done = "cached in the source beyond the previous prompt; new here, as only prompts have block ids"
        repairs.note("stated prefix beyond the last prompt, tokens", f"{path}", done, beyond)
    conversations = [
        Conversation(name=name, block_tokens=1, streams=(s.stream.build(),), start_s=s.start_s)
        for name, s in sessions.items()
        if len(s.stream)
    ]
    return rows.with_digest(Corpus(name=path.name, format=FORMAT, conversations=conversations, repairs=repairs), path)


def _replay_row(row: dict[str, Any], at: str, sessions: dict[str, _Session], repairs: Repairs) -> None:
    keys = ("prefix_len", "input_len", "output_len", "tool_wait_after_ms")
    values = {key: rows.number(row, key, at, repairs) for key in keys if row.get(key, "") != "" or key != keys[3]}
    prefix = fields.integer(values, "prefix_len", at, repairs, 0)
    new = fields.integer(values, "input_len", at, repairs, 0)
    output_tokens = fields.output(values, "output_len", at, repairs)
    if prefix + new < 1:
        raise repairs.rejection("prompt zero", at, "prefix_len + input_len = 0; at least 1 was expected")
    name = str(row.get("session_id") or row.get("id"))
    if name not in sessions:
        arrival = row.get("arrival_time", "")
        sessions[name] = _Session(rows.number(row, "arrival_time", at, repairs) * 1e-3 if arrival else None)
    session = sessions[name]
    service_s = float(assumed_service_s(np.array([output_tokens]))[0])
    first = not len(session.stream)
    if not first and session.wait_s is None:
        repairs.note("tool wait absent", at, "taken as 0 s")
    wait_s = 0.0 if first else session.wait_s or 0.0
    t_s = session.end_s + wait_s
    session.add(prefix + new, prefix, t_s=t_s, output_tokens=output_tokens, think_s=wait_s)
    session.end_s = t_s + service_s
    wait_ms = values.get("tool_wait_after_ms")
    session.wait_s = None if wait_ms is None else max(0.0, wait_ms * 1e-3)


def _round(row: dict[str, Any], at: str, sessions: dict[str, _Session], repairs: Repairs) -> None:
    total = fields.integer(row, "input_tokens_total", at, repairs, 1)
    prefix = fields.integer(row, "prefix_tokens", at, repairs, 0)
    new = fields.integer(row, "newly_append_tokens", at, repairs, 0)
    if prefix + new != total:
        problem = f"prefix {prefix} + new {new} is not the total {total}"
        repairs.repair("lengths do not add up", at, problem, "the total is kept, the prefix cut to fit")
        prefix = min(prefix, total)
    start_s, end_s, starter = _times(row, at, repairs)
    session = sessions.setdefault(str(row.get("session_id")), _Session(start_s))
    t_s = start_s - (session.start_s or 0.0)
    think_s = t_s - session.end_s if len(session.stream) else 0.0
    if think_s < 0.0:
        repairs.note("round starts before the last one ended", at, "the wait is taken as 0 s")
    session.add(
        total,
        prefix,
        t_s=max(t_s, session.stream.last_t_s),
        output_tokens=fields.output(row, "output_tokens", at, repairs),
        think_s=max(0.0, think_s),
        service_s=end_s - start_s,
        starter=STARTERS.index(starter),
        stop=STOPS.index("tool_use" if row.get("tools") else "end_turn"),
    )
    session.stream.last_t_s = max(t_s, session.stream.last_t_s)
    session.end_s = t_s + (end_s - start_s)


def _times(row: dict[str, Any], at: str, repairs: Repairs) -> tuple[float, float, str]:
    """Return (start, end, starter) of a round from its events, seconds since 1970."""
    starts: list[float] = []
    ends: list[float] = []
    for event in row.get("timing_events") or ():
        try:
            moment = datetime.fromisoformat(str(event.get("timestamp")))
        except ValueError:
            problem = f"{event.get('timestamp')!r} is no ISO time"
            raise repairs.rejection("timestamp not a time", f"{at}: timing_events", problem) from None
        at_s = (moment - EPOCH) / timedelta(seconds=1)
        (starts if event.get("event_type") in INPUT_EVENTS else ends).append(at_s)
    if not starts:
        raise repairs.rejection("no input event", f"{at}: timing_events", "a user_message or tool_result was expected")
    human = row.get("first_input_event_type") == "user_message"
    return max(starts), max([max(starts), *ends]), "human" if human else "tool"
