"""Read Claude Code's session logs: JSONL, one event per line, as stored under `~/.claude/projects`.

Used: `type` "user" or "assistant", `timestamp` [ISO], `sessionId`, `isSidechain`, `agentId`, and of an assistant's
`message`: `id`, `model`, `stop_reason`, `usage` {input_tokens, cache_creation_input_tokens, cache_read_input_tokens,
output_tokens} [tokens]. The log writes one line for each content block of an answer and repeats the usage on each, with
the output count right only on the last: lines of one message id (and requestId, which may be missing) are one answer,
and the LAST usage counts; without any id, the lines up to the next input are one answer. A resumed session repeats the
answers of the session before it: the second is a copy. Rows of other types are passed over.

prompt = input + cache creation + cache read; the cache read gives the prefix length (`synthetic_blocks`). A turn starts
at the last event before its answer and ends at the answer's last line. Sidechains are sub-agents, in the session's file
or in files of their own in its folder.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scenarios.workloads.corpus import STARTERS, STOPS, Conversation, Corpus, Relation, Stream, StreamBuilder
from scenarios.workloads.readers import fields, rows
from scenarios.workloads.readers.moments import Moments
from scenarios.workloads.readers.rows import ReadOptions, Sample
from scenarios.workloads.readers.synthetic_blocks import StatedPrefix, note_beyond
from scenarios.workloads.repairs import Repairs, Skip

FORMAT = "claude-code"
SYNTHETIC = "<synthetic>"
"""The model that the client names for an answer of its own, written when a call has failed."""


def mismatch(sample: Sample) -> str:
    """Return why this is not a Claude Code log, '' when it is: one of the first rows is an event of a session."""
    for value in sample.values:
        if (
            "sessionId" in value
            and value.get("type") in ("user", "assistant")
            and isinstance(value.get("message"), dict)
        ):
            return ""
        if value.get("type") == "summary" and "leafUuid" in value:
            return ""
    return rows.missing_keys(sample.first, "sessionId", "type") or "none of its first rows is an event with a `message`"


@dataclass(slots=True)
class _Answer:
    at: str
    start_s: float
    end_s: float
    message: dict[str, Any]
    starter: str


Place = tuple[str, str]
"""(session, sub-agent); '' for the session itself."""


@dataclass(slots=True)
class _Log:
    """What has been read of the logs. `inputs` counts the inputs of a stream, `last_input` is (time, starter)."""

    repairs: Repairs
    moments: Moments
    answers: dict[Place, dict[str, _Answer]] = field(default_factory=dict)
    last_input: dict[Place, tuple[float, str]] = field(default_factory=dict)
    inputs: dict[Place, int] = field(default_factory=dict)
    owner: dict[str, Place] = field(default_factory=dict)

    def add(self, row: dict[str, Any], at: str) -> None:
        """Read one event."""
        repairs, message = self.repairs, row["message"]
        at_s = self.moments.seconds(row.get("timestamp"), "timestamp", at)
        session = fields.name(row, "sessionId")
        if session is None:
            raise repairs.rejection("sessionId missing", f"{at}: sessionId", "missing; a name was expected")
        place = (session, str(row.get("agentId") or "sidechain") if row.get("isSidechain") else "")
        if row["type"] == "user":
            content = message.get("content")
            tool = isinstance(content, list) and any(
                isinstance(c, dict) and c.get("type") == "tool_result" for c in content
            )
            self.last_input[place] = (at_s, "tool" if tool else "human")
            self.inputs[place] = self.inputs.get(place, 0) + 1
            return
        if message.get("model") == SYNTHETIC:
            repairs.note("answer written by the client itself", at, "passed over: no request was served")
            return
        if not isinstance(message.get("usage"), dict):
            return
        stated = f"{message.get('id') or ''}|{row.get('requestId') or ''}"
        name = f"after input {self.inputs.get(place, 0)}" if stated == "|" else stated
        if stated != "|" and self.owner.setdefault(name, place) != place:
            repairs.note("answer copied from another session", at, "passed over: a resumed session repeats it")
            return
        known = self.answers.setdefault(place, {})
        if name in known:
            repairs.note("usage repeated for each content block", at, "one answer; the last usage counts")
            known[name].message = message
            known[name].end_s = max(known[name].end_s, at_s)
            return
        start_s, starter = self.last_input.get(place, (at_s, ""))
        known[name] = _Answer(at, start_s, at_s, message, starter)


def read(path: Path, options: ReadOptions) -> Corpus:
    """Read the sessions of a file or folder (and its sub-folders); each sidechain is a sub-agent of its session."""
    repairs = Repairs(options.on_error)
    log = _Log(repairs, Moments(repairs))
    for at, row in rows.json_rows(path, repairs, deep=True):
        if row.get("type") not in ("user", "assistant") or not isinstance(row.get("message"), dict):
            continue
        try:
            log.add(row, at)
        except Skip:
            continue
    conversations = []
    beyond: list[int] = []
    for session in sorted({session for session, _ in log.answers}):
        try:
            conversations.append(_conversation(session, log.answers, repairs, beyond))
        except Skip:
            continue
    note_beyond(sum(beyond), f"{path}", repairs)
    corpus = Corpus(name=path.name, format=FORMAT, conversations=conversations, repairs=repairs)
    return rows.with_digest(corpus, path, deep=True)


def _conversation(
    session: str, answers: dict[Place, dict[str, _Answer]], repairs: Repairs, beyond: list[int]
) -> Conversation:
    mains = sorted(answers.get((session, ""), {}).values(), key=lambda a: a.start_s)
    sides = sorted(side for name, side in answers if name == session and side)
    if not mains:
        raise repairs.rejection("session without a main chain", session, "only sidechains were logged")
    start_s = mains[0].start_s
    root = _stream("", "root", mains, start_s, repairs, beyond)
    streams = [root]
    for side in sides:
        listed = sorted(answers[session, side].values(), key=lambda a: a.start_s)
        after = sum(a.end_s <= listed[0].start_s + 0.001 for a in mains) - 1
        inner = _stream(side, "spawn", listed, start_s, repairs, beyond)
        if after >= 0:
            inner.waits[0] = ((0, after),)
        end_s = max(a.end_s for a in listed)
        joined = next((k for k, a in enumerate(mains) if k > after and a.start_s >= end_s - 1.0), None)
        if joined is not None:
            root.waits[joined] = (*root.waits.get(joined, ()), (len(streams), len(inner) - 1))
        streams.append(inner)
    return Conversation(name=session, block_tokens=1, streams=tuple(streams), start_s=None)


INPUTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def _stream(
    name: str, relation: Relation, listed: list[_Answer], start_s: float, repairs: Repairs, beyond: list[int]
) -> Stream:
    builder, chain = StreamBuilder(name, relation), StatedPrefix(first_id=1 if not name else _namespace(name))
    end_s = listed[0].start_s
    for answer in listed:
        stated = answer.message["usage"]
        usage = {key: stated.get(key) or 0 for key in INPUTS}
        parts = [fields.integer(usage, key, answer.at, repairs, 0) for key in INPUTS]
        lengths = {"input": sum(parts), "output_tokens": stated.get("output_tokens")}
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
    beyond.append(chain.beyond_tokens)
    return builder.build()


def _namespace(name: str) -> int:
    """Return a first id for a sub-agent, far from the root's: a sidechain begins with a fresh context."""
    return (1 + zlib.crc32(name.encode()) % 1_000_000) << 32
