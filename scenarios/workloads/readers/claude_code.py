"""Read Claude Code's session logs: JSONL, one event per line, as stored under `~/.claude/projects`.

Used: `type` "user" or "assistant", `timestamp` [ISO], `sessionId`, `isSidechain`, `agentId`, and of an assistant's
`message`: `id`, `model`, `stop_reason`, `usage` {input_tokens, cache_creation_input_tokens, cache_read_input_tokens,
output_tokens} [tokens]. The log writes one line for each content block of an answer and repeats the usage on each, with
the output count right only on the last: lines of one message id (and requestId, which may be missing) are one answer,
and the LAST usage counts. prompt = input + cache creation + cache read; the cache read gives the prefix length
(`synthetic_blocks`). A turn starts at the last event before its answer and ends at the answer's last line. Sidechains
are sub-agents.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from scenarios.workloads.corpus import STARTERS, STOPS, Conversation, Corpus, Stream, StreamBuilder
from scenarios.workloads.readers import fields, rows
from scenarios.workloads.readers.rows import ReadOptions, Sample
from scenarios.workloads.readers.synthetic_blocks import StatedPrefix
from scenarios.workloads.repairs import Repairs, Skip

FORMAT = "claude-code"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST_TYPES = {"user", "assistant", "summary", "system", "file-history-snapshot", "queue-operation", "progress"}


def mismatch(sample: Sample) -> str:
    """Return why this is not a Claude Code log, '' when it is."""
    for value in (sample.first, sample.second):
        if isinstance(value, dict) and "sessionId" in value and value.get("type") in FIRST_TYPES:
            return ""
        if isinstance(value, dict) and value.get("type") == "summary" and "leafUuid" in value:
            return ""
    return rows.missing_keys(sample.first, "sessionId", "type") or "its first row's `type` is none of Claude Code's"


@dataclass(slots=True)
class _Answer:
    at: str
    start_s: float
    end_s: float
    message: dict[str, Any]
    starter: str


def read(path: Path, options: ReadOptions) -> Corpus:
    """Read the sessions of a file or folder; each sidechain becomes a sub-agent of its session."""
    repairs = Repairs(options.on_error)
    answers: dict[tuple[str, str], dict[str, _Answer]] = {}
    last_input: dict[tuple[str, str], tuple[float, str]] = {}
    for at, row in rows.json_rows(path, repairs):
        if row.get("type") not in ("user", "assistant") or not isinstance(row.get("message"), dict):
            continue
        try:
            _event(row, at, answers, last_input, repairs)
        except Skip:
            continue
    sessions = sorted({session for session, _ in answers})
    conversations = []
    for session in sessions:
        try:
            conversations.append(_conversation(session, answers, repairs))
        except Skip:
            continue
    return rows.with_digest(Corpus(name=path.name, format=FORMAT, conversations=conversations, repairs=repairs), path)


def _event(
    row: dict[str, Any],
    at: str,
    answers: dict[tuple[str, str], dict[str, _Answer]],
    last_input: dict[tuple[str, str], tuple[float, str]],
    repairs: Repairs,
) -> None:
    try:
        moment = datetime.fromisoformat(str(row.get("timestamp")))
    except ValueError:
        problem = f"{row.get('timestamp')!r}; an ISO time was expected"
        raise repairs.rejection("timestamp not a time", f"{at}: timestamp", problem) from None
    at_s = (moment.replace(tzinfo=moment.tzinfo or UTC) - EPOCH) / timedelta(seconds=1)
    side = str(row.get("agentId") or "sidechain") if row.get("isSidechain") else ""
    stream = (str(row.get("sessionId")), side)
    message = row["message"]
    if row["type"] == "user":
        content = message.get("content")
        tool = isinstance(content, list) and any(
            isinstance(c, dict) and c.get("type") == "tool_result" for c in content
        )
        last_input[stream] = (at_s, "tool" if tool else "human")
        return
    if not isinstance(message.get("usage"), dict):
        return
    name = f"{message.get('id')}|{row.get('requestId') or ''}"
    answers_of_stream = answers.setdefault(stream, {})
    if name in answers_of_stream:
        repairs.note("usage repeated for each content block", at, "one answer; the last usage counts")
        answers_of_stream[name].message = message
        answers_of_stream[name].end_s = max(answers_of_stream[name].end_s, at_s)
        return
    start_s, starter = last_input.get(stream, (at_s, ""))
    answers_of_stream[name] = _Answer(at, start_s, at_s, message, starter)


def _conversation(session: str, answers: dict[tuple[str, str], dict[str, _Answer]], repairs: Repairs) -> Conversation:
    mains = sorted(answers.get((session, ""), {}).values(), key=lambda a: a.start_s)
    sides = sorted(side for name, side in answers if name == session and side)
    if not mains:
        raise repairs.rejection("session without a main chain", session, "only sidechains were logged")
    start_s = mains[0].start_s
    root = _stream("", "root", mains, start_s, repairs)
    streams = [root]
    for side in sides:
        listed = sorted(answers[session, side].values(), key=lambda a: a.start_s)
        after = sum(a.end_s <= listed[0].start_s + 0.001 for a in mains) - 1
        inner = _stream(side, "spawn", listed, start_s, repairs)
        if after >= 0:
            inner.waits[0] = ((0, after),)
        end_s = max(a.end_s for a in listed)
        joined = next((k for k, a in enumerate(mains) if k > after and a.start_s >= end_s - 1.0), None)
        if joined is not None:
            root.waits[joined] = (*root.waits.get(joined, ()), (len(streams), len(inner) - 1))
        streams.append(inner)
    return Conversation(name=session, block_tokens=1, streams=tuple(streams), start_s=None)


def _stream(name: str, relation: Any, listed: list[_Answer], start_s: float, repairs: Repairs) -> Stream:
    # Any: one of the literals of Relation.
    builder, chain = StreamBuilder(name, relation), StatedPrefix(first_id=1 if not name else _namespace(name))
    end_s = listed[0].start_s
    for answer in listed:
        usage = answer.message["usage"]
        parts = [usage.get(k) or 0 for k in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")]
        lengths = {"input": sum(parts), "output_tokens": usage.get("output_tokens")}
        prompt_tokens = fields.integer(lengths, "input", answer.at, repairs, 1)
        if not len(builder):
            builder.system_tokens = parts[2]
        stop = answer.message.get("stop_reason") or ""
        builder.add(
            t_s=answer.start_s - start_s,
            prompt_tokens=prompt_tokens,
            output_tokens=fields.output(lengths, "output_tokens", answer.at, repairs),
            think_s=max(0.0, answer.start_s - end_s),
            service_s=answer.end_s - answer.start_s,
            runs=chain.extend(prompt_tokens, parts[2]),
            stop=STOPS.index(stop) if stop in STOPS else STOPS.index("other"),
            starter=STARTERS.index(answer.starter),
        )
        end_s = max(end_s, answer.end_s)
    return builder.build()


def _namespace(name: str) -> int:
    """Return a first id for a sub-agent, far from the root's: a sidechain begins with a fresh context."""
    return (1 + zlib.crc32(name.encode()) % 1_000_000) << 32
