"""Read Weka / AgentX conversations: one JSON object each, in a file, a directory, or one a line in JSONL (.gz, .zst).

Top level (units in brackets): `id`; `models` [names]; `block_size` [tokens]; `hash_id_scope` "local" or "global";
`tool_tokens`, `system_tokens` [tokens], optional; `totals`, opaque; `requests`. Published as kv-cache-tester (WEKA v8)
and as the SemiAnalysis AgentX corpora, whose later fields are all optional here.

A request has `type` "n" or "s"; `t` [s from the conversation's start, request START]; `in` [tokens, INCLUDING the
cached part]; `out` [tokens]; `hash_ids` (floor or ceil of in / block_size, from 0 or 1); and, optional, `api_time` [s,
server time], `think_time` [s, from the previous END], `ttft` [s], `model`, `stop`, `input_types`, `output_types`.

A sub-agent entry has `type` "subagent", `t` [s, spawn], `agent_id`, `status`, `duration_ms` [ms], `requests`. Its inner
`t` is relative to the spawn in some corpora and on the parent's clock in others: see `_base`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from scenarios.workloads.corpus import STARTERS, STOPS, Conversation, Corpus, Stream, StreamBuilder, Wait
from scenarios.workloads.readers import fields, files, rows
from scenarios.workloads.readers.rows import ReadOptions, Sample
from scenarios.workloads.repairs import Repairs, Skip

ClockBase = Literal["auto", "relative", "absolute"]
FORMAT = "weka"
STOP_CODE = {"": 0, "tool_use": 1, "end_turn": 2, "max_tokens": 3}
TOLERANCE_S = 1.0
"""Tolerance of comparisons between clocks (WEKA v8 rounds the stamps of root requests to seconds)."""


def mismatch(sample: Sample) -> str:
    """Return why this is not a Weka trace, '' when it is."""
    reason = rows.missing_keys(sample.first, "requests")
    return reason or ("" if isinstance(sample.first["requests"], list) else "its `requests` is not a list")


def read(path: Path, options: ReadOptions | None = None) -> Corpus:
    """Read conversations; memory holds one line and the corpus.

    Parameters
    ----------
    path : Path
        A JSON or JSONL file, plain, .gz or .zst, or a directory of them.
    options : ReadOptions, optional
        `subagent_clock` is the base of sub-agents' inner times; `auto` decides for each conversation, and the decision
        is counted as a note. `drop_doubles` leaves out a plain request that repeats the streamed one before it.

    Raises
    ------
    UserError
        One line with file, line and key.
    """
    options = options or ReadOptions()
    repairs = Repairs(options.on_error)
    documents = (item for file in files.members(path) for item in files.documents(file, repairs))
    conversations: list[Conversation] = []
    names: dict[str, int] = {}
    scopes: dict[str, str] = {}
    for at, document in documents:
        try:
            conversation, scope = _conversation(document, at, repairs, options)
            if conversations and conversation.block_tokens != conversations[0].block_tokens:
                problem = (
                    f"{conversation.block_tokens}; the conversations before it have {conversations[0].block_tokens}"
                )
                raise repairs.rejection("mixed block sizes", f"{at}: block_size", problem)
            if scopes and scope not in scopes:
                raise repairs.rejection(
                    "mixed scopes", f"{at}: hash_id_scope", f"{scope}; before it: {next(iter(scopes))}"
                )
            scopes.setdefault(scope, at)
            conversations.append(_with_unique_name(conversation, names, at, repairs))
        except Skip:
            continue
    return rows.with_digest(
        Corpus(
            name=path.name,
            format=FORMAT,
            conversations=conversations,
            scope="global" if "global" in scopes else "local",
            repairs=repairs,
        ),
        path,
    )


def _with_unique_name(conversation: Conversation, names: dict[str, int], at: str, repairs: Repairs) -> Conversation:
    """Return the conversation under a unique name: a repeated id is a defect."""
    seen = names[conversation.name] = names.get(conversation.name, 0) + 1
    if seen == 1:
        return conversation
    repairs.repair(
        "duplicate conversation id", f"{at}: id", f"{conversation.name!r} appears twice", "renamed with a number"
    )
    return replace(conversation, name=f"{conversation.name}#{seen}")


def _conversation(document: Any, at: str, repairs: Repairs, options: ReadOptions) -> tuple[Conversation, str]:
    if not isinstance(document, dict) or not isinstance(document.get("requests"), list):
        raise repairs.rejection("not a conversation", at, "an object with a list `requests` was expected")
    block_tokens = fields.integer(document, "block_size", at, repairs, 1)
    if not document["requests"]:
        raise repairs.rejection("conversation empty", f"{at}: requests", "empty; at least one request was expected")
    models: dict[str, int] = {}
    root = StreamBuilder("", "root")
    root.tool_tokens, root.system_tokens = _prefix(document, at, repairs)
    spawned: list[tuple[int, str, dict[str, Any]]] = []
    reader = _Reader(repairs, block_tokens, models, options.stated_thinks)
    for k, row in enumerate(_without_duplicates(document["requests"], at, repairs, options.drop_doubles)):
        place = f"{at}: requests[{k}]"
        if isinstance(row, dict) and row.get("type") == "subagent":
            spawned.append((len(root) - 1, place, row))
        else:
            reader.add(root, row, place)
    if not len(root):
        raise repairs.rejection("conversation empty", f"{at}: requests", "only sub-agents; a root request was expected")
    stream = root.build()
    base = _base(spawned, at, repairs, options.subagent_clock) if spawned else "relative"
    streams = [stream]
    for after, place, row in spawned:
        if (inner := _subagent(reader, stream, len(streams), after, place, row, base)) is not None:
            streams.append(inner)
    name = document.get("id")
    conversation = Conversation(
        name=str(name) if name is not None else at.rsplit("/", 1)[-1],
        block_tokens=block_tokens,
        streams=tuple(streams),
        models=tuple(models) or ("",),
    )
    scope = document.get("hash_id_scope") or "local"
    if scope not in ("local", "global"):
        raise repairs.rejection("unknown scope", f"{at}: hash_id_scope", f"{scope!r}; local or global was expected")
    return conversation, scope


def _without_duplicates(requests: list[Any], at: str, repairs: Repairs, drop: bool) -> list[Any]:
    """Count requests sent twice, streamed and then plain with the same blocks, and drop the second where asked.

    They double the load and inflate the cache hit.
    """
    out: list[Any] = []
    before: dict[str, Any] = {}
    for k, row in enumerate(requests):
        row_before, before = before, row if isinstance(row, dict) else {}
        streamed_first = before.get("type") == "n" and row_before.get("type") == "s"
        if streamed_first and all(before.get(key) == row_before.get(key) for key in ("in", "hash_ids")):
            done = "the second is left out" if drop else "kept: it doubles the load, see `drop_doubles`"
            repairs.note("same prompt sent twice, streamed and plain", f"{at}: requests[{k}]", done)
            if drop:
                continue
        out.append(row)
    return out


def _prefix(row: dict[str, Any], at: str, repairs: Repairs) -> tuple[int, int]:
    """Return (tool, system) tokens: optional fields."""
    return (
        fields.integer(row, "tool_tokens", at, repairs, 0) if row.get("tool_tokens") is not None else 0,
        fields.integer(row, "system_tokens", at, repairs, 0) if row.get("system_tokens") is not None else 0,
    )


class _Reader:
    """Convert rows to requests of a stream and validate them."""

    def __init__(self, repairs: Repairs, block_tokens: int, models: dict[str, int], stated_thinks: bool) -> None:
        self.repairs = repairs
        self.stated_thinks = stated_thinks
        self.block_tokens = block_tokens
        self.models = models

    def add(self, stream: StreamBuilder, row: Any, at: str, base_s: float = 0.0) -> None:
        """Append one request; `base_s` is added to its time."""
        repairs = self.repairs
        if not isinstance(row, dict):
            raise repairs.rejection("not a request", at, "an object was expected")
        prompt_tokens = fields.integer(row, "in", at, repairs, 1)
        output_tokens = fields.output(row, "out", at, repairs)
        runs = fields.block_runs(row, "hash_ids", at, repairs, prompt_tokens, self.block_tokens)
        stop = row.get("stop") or ""
        types = row.get("input_types") or ()
        starter = 0
        if len(stream) and types:
            starter = STARTERS.index("tool" if "tool_result" in types else "human")
        before_s = stream.last_t_s
        t_s = self._start_s(stream, row, at)
        stream.add(
            t_s=t_s + base_s,
            prompt_tokens=prompt_tokens,
            output_tokens=output_tokens,
            think_s=self._think_s(row, at, t_s - before_s),
            service_s=self._wait_s(row, "api_time", at),
            runs=runs,
            stop=STOP_CODE.get(stop, STOPS.index("other")),
            starter=starter,
            model=self.models.setdefault(str(row.get("model", "")), len(self.models)),
        )

    def _start_s(self, stream: StreamBuilder, row: dict[str, Any], at: str) -> float:
        t_s = fields.seconds(row, "t", at, self.repairs)
        if t_s is None:
            raise self.repairs.rejection("t missing", f"{at}: t", "missing; seconds from the start were expected")
        if t_s < 0.0:
            self.repairs.repair("time negative", f"{at}: t", f"{t_s} s lies before the start", "taken as 0 s")
            t_s = 0.0
        before = stream.last_t_s
        if t_s < before:
            self.repairs.repair(
                "time going backwards", f"{at}: t", f"{t_s} s after {before} s", "taken as the time before it"
            )
            t_s = before
        stream.last_t_s = t_s
        return t_s

    def _think_s(self, row: dict[str, Any], at: str, interval_s: float) -> float | None:
        """Return the think time, or None where it cannot be the wait since the previous request's end.

        After a request without `api_time`, producers count it from an earlier end: it then exceeds the interval between
        the starts, and replaying it would lengthen the session severalfold.
        """
        think_s = self._wait_s(row, "think_time", at)
        if think_s is not None and think_s > interval_s + TOLERANCE_S:
            kind = "think_time longer than the interval between the starts"
            if self.stated_thinks:
                self.repairs.note(kind, at, "played as stated, as asked: the session takes longer than recorded")
                return think_s
            self.repairs.note(kind, at, "taken as missing: the wait is derived from the starts")
            return None
        return think_s

    def _wait_s(self, row: dict[str, Any], key: str, at: str) -> float | None:
        wait_s = fields.seconds(row, key, at, self.repairs)
        if wait_s is None:
            self.repairs.note(f"{key} absent", at, "left missing: derived from the starts around it")
        elif wait_s < 0.0:
            self.repairs.repair(f"{key} negative", f"{at}: {key}", f"{wait_s} s", "taken as missing")
            return None
        return wait_s


def _base(spawned: list[tuple[int, str, dict[str, Any]]], at: str, repairs: Repairs, clock: ClockBase) -> ClockBase:
    """Return the base of this conversation's inner times: an inner start before its spawn can only be relative."""
    if clock != "auto":
        repairs.note(f"sub-agent clock {clock}", at, "as asked")
        return clock
    starts = []
    for _, _, row in spawned:
        inner = [r.get("t") for r in row.get("requests") or () if isinstance(r, dict)]
        times = [t for t in inner if isinstance(t, int | float)]
        if times and isinstance(row.get("t"), int | float):
            starts.append((min(times), float(row["t"])))
    before = [first < spawn for first, spawn in starts]
    base: ClockBase = "relative" if any(before) or not starts else "absolute"
    mixed = any(before) and any(first >= spawn > TOLERANCE_S for first, spawn in starts)
    kind = f"sub-agent clock {base}" + (", with signs of both" if mixed else "")
    repairs.note(kind, at, "decided for each conversation: an inner start before its spawn means relative")
    return base


def _subagent(
    reader: _Reader, root: Stream, number: int, after: int, place: str, row: dict[str, Any], base: ClockBase
) -> Stream | None:
    """Read one sub-agent; the root's first request that starts after its end waits for it, unless it was detached."""
    repairs = reader.repairs
    spawn_s = fields.seconds(row, "t", place, repairs)
    if spawn_s is None:
        raise repairs.rejection("t missing", f"{place}: t", "missing; the spawn time in seconds was expected")
    rows = row.get("requests")
    if not isinstance(rows, list) or not rows:
        repairs.note("sub-agent without requests", place, "left out: it sends nothing")
        return None
    detached = row.get("status") == "async_launched"
    name = str(row.get("agent_id") or f"agent_{number}")
    builder = StreamBuilder(name, "background" if detached else "spawn")
    builder.tool_tokens, builder.system_tokens = _prefix(row, place, repairs)
    for k, inner in enumerate(rows):
        reader.add(builder, inner, f"{place}.requests[{k}]", spawn_s if base == "relative" else 0.0)
    if after >= 0:
        builder.waits[0] = ((0, after),)
    stream = builder.build()
    if not detached:
        _join(root, number, after, len(stream) - 1, float(stream.ends_s().max()))
    return stream


def _join(root: Stream, number: int, after: int, last: int, end_s: float) -> None:
    """Make the root's first request that starts after `end_s` wait for the sub-agent's last one."""
    later = np.flatnonzero(root.t_s[after + 1 :] >= end_s - TOLERANCE_S)
    if len(later):
        k = after + 1 + int(later[0])
        wait: Wait = (number, last)
        root.waits[k] = (*root.waits.get(k, ()), wait)
