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

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scenarios.workloads.corpus import STARTERS, STOPS, Conversation, Corpus, StreamBuilder, assumed_service_s
from scenarios.workloads.readers import fields, rows
from scenarios.workloads.readers.moments import Moments
from scenarios.workloads.readers.rows import ReadOptions, Sample
from scenarios.workloads.readers.synthetic_blocks import StatedPrefix, note_beyond
from scenarios.workloads.repairs import Repairs, Skip

FORMAT = "tracelab"
INPUT_EVENTS = ("user_message", "tool_result")


def mismatch(sample: Sample) -> str:
    """Return why this is neither form of a TraceLab trace, '' when it is one."""
    if not rows.missing_columns(sample.header, "round_idx", "prefix_len", "input_len", "output_len"):
        return ""
    if isinstance(sample.first, dict):
        return rows.missing_keys(sample.first, "session_id", "round_index", "prefix_tokens", "newly_append_tokens")
    return rows.missing_columns(sample.header, "round_idx", "prefix_len", "input_len", "output_len")


@dataclass(slots=True, kw_only=True)
class _Round:
    """One round; `span_s` (start, end) is None in the replay CSV, whose rounds state the wait after them."""

    index: float
    at: str
    prompt_tokens: int
    prefix_tokens: int
    output_tokens: int
    span_s: tuple[float, float] | None = None
    wait_after_s: float | None = None
    arrival_s: float | None = None
    starter: str = ""
    stop: str = ""


def read(path: Path, options: ReadOptions) -> Corpus:
    """Read rounds of either form into conversations, in the order in which the sessions begin."""
    repairs = Repairs(options.on_error)
    moments = Moments(repairs)
    sessions: dict[str, list[_Round]] = {}
    by_row = isinstance(rows.sample(path, options.on_error).first, dict)
    unit_s = options.unit_s(1e-3)
    for at, row in rows.json_rows(path, repairs) if by_row else rows.csv_rows(path, repairs):
        try:
            name = fields.name(row, "session_id") or fields.name(row, "id")
            if name is None:
                raise repairs.rejection("session_id missing", f"{at}: session_id", "missing; a name was expected")
            request = _round(row, at, moments, repairs) if by_row else _replay_row(row, at, unit_s, repairs)
            sessions.setdefault(name, []).append(request)
        except Skip:
            continue
    beyond_tokens = 0
    conversations = []
    for name, rounds in sessions.items():
        chain = StatedPrefix()
        ordered = _in_order(rounds, repairs)
        conversations.append(
            _timed(name, ordered, chain, repairs) if by_row else _laid_out(name, ordered, chain, repairs)
        )
        beyond_tokens += chain.beyond_tokens
    note_beyond(beyond_tokens, f"{path}", repairs)
    return rows.with_digest(Corpus(name=path.name, format=FORMAT, conversations=conversations, repairs=repairs), path)


def _in_order(rounds: list[_Round], repairs: Repairs) -> list[_Round]:
    """Return a session's rounds by their numbers; one that stands below a later one is a defect."""
    kept: list[_Round] = []
    latest = float("-inf")
    for round_ in rounds:
        if round_.index < latest:
            problem = f"round {round_.index:g} after round {latest:g} of its session"
            try:
                repairs.repair("time going backwards", round_.at, problem, "sorted by round")
            except Skip:
                continue
        latest = max(latest, round_.index)
        kept.append(round_)
    return sorted(kept, key=lambda round_: round_.index)


def _laid_out(name: str, rounds: list[_Round], chain: StatedPrefix, repairs: Repairs) -> Conversation:
    """Return a session of the replay CSV: each round a wait after the assumed end of the one before it."""
    stream = StreamBuilder("", "root")
    stream.system_tokens = rounds[0].prefix_tokens
    end_s, wait_s = 0.0, 0.0
    for k, round_ in enumerate(rounds):
        if k:
            if rounds[k - 1].wait_after_s is None:
                repairs.note("tool wait absent", round_.at, "taken as 0 s")
            wait_s = rounds[k - 1].wait_after_s or 0.0
        stream.add(
            t_s=end_s + wait_s,
            prompt_tokens=round_.prompt_tokens,
            output_tokens=round_.output_tokens,
            think_s=wait_s,
            runs=chain.extend(round_.prompt_tokens, round_.prefix_tokens),
        )
        end_s += wait_s + float(assumed_service_s(np.array([round_.output_tokens]))[0])
    return Conversation(name=name, block_tokens=1, streams=(stream.build(),), start_s=rounds[0].arrival_s)


def _timed(name: str, rounds: list[_Round], chain: StatedPrefix, repairs: Repairs) -> Conversation:
    """Return a session of recorded rounds; one that starts before the last one has ended waits 0 s."""
    stream = StreamBuilder("", "root")
    stream.system_tokens = rounds[0].prefix_tokens
    spans = [round_.span_s or (0.0, 0.0) for round_ in rounds]
    origin_s = spans[0][0]
    end_s = latest_s = origin_s
    for round_, (start_s, stop_s) in zip(rounds, spans):
        if start_s < end_s:
            repairs.note("round starts before the last one ended", round_.at, "the wait is taken as 0 s")
        latest_s = max(latest_s, start_s)
        stream.add(
            t_s=latest_s - origin_s,
            prompt_tokens=round_.prompt_tokens,
            output_tokens=round_.output_tokens,
            think_s=max(0.0, start_s - end_s),
            service_s=stop_s - start_s,
            runs=chain.extend(round_.prompt_tokens, round_.prefix_tokens),
            starter=STARTERS.index(round_.starter),
            stop=STOPS.index(round_.stop),
        )
        end_s = stop_s
    return Conversation(name=name, block_tokens=1, streams=(stream.build(),), start_s=origin_s)


def _replay_row(row: dict[str, Any], at: str, unit_s: float, repairs: Repairs) -> _Round:
    keys = ("round_idx", "prefix_len", "input_len", "output_len")
    optional = [key for key in ("tool_wait_after_ms", "arrival_time") if row.get(key, "") != ""]
    values = {key: rows.number(row, key, at, repairs) for key in (*keys, *optional)}
    prefix = fields.integer(values, "prefix_len", at, repairs, 0)
    new = fields.integer(values, "input_len", at, repairs, 0)
    if prefix + new < 1:
        raise repairs.rejection("prompt zero", at, "prefix_len + input_len = 0; at least 1 was expected")
    return _Round(
        index=values["round_idx"],
        at=at,
        prompt_tokens=prefix + new,
        prefix_tokens=prefix,
        output_tokens=fields.output(values, "output_len", at, repairs),
        wait_after_s=fields.wait(values, "tool_wait_after_ms", at, repairs, unit_s),
        arrival_s=fields.seconds(values, "arrival_time", at, repairs, unit_s),
    )


def _round(row: dict[str, Any], at: str, moments: Moments, repairs: Repairs) -> _Round:
    total = fields.integer(row, "input_tokens_total", at, repairs, 1)
    prefix = fields.integer(row, "prefix_tokens", at, repairs, 0)
    new = fields.integer(row, "newly_append_tokens", at, repairs, 0)
    if prefix + new != total:
        problem = f"prefix {prefix} + new {new} is not the total {total}"
        repairs.repair("lengths do not add up", at, problem, "the total is kept, the prefix cut to fit")
        prefix = min(prefix, total)
    starts: list[float] = []
    ends: list[float] = []
    for event in row.get("timing_events") or ():
        if not isinstance(event, dict):
            raise repairs.rejection("not an event", f"{at}: timing_events", "objects were expected")
        at_s = moments.seconds(event.get("timestamp"), "timing_events", at)
        (starts if event.get("event_type") in INPUT_EVENTS else ends).append(at_s)
    if not starts:
        raise repairs.rejection("no input event", f"{at}: timing_events", "a user_message or tool_result was expected")
    return _Round(
        index=fields.integer(row, "round_index", at, repairs, 0),
        at=at,
        prompt_tokens=total,
        prefix_tokens=prefix,
        output_tokens=fields.output(row, "output_tokens", at, repairs),
        span_s=(max(starts), max([max(starts), *ends])),
        starter="human" if row.get("first_input_event_type") == "user_message" else "tool",
        stop="tool_use" if row.get("tools") else "end_turn",
    )
