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

from scenarios.workloads.corpus import Conversation, Corpus, Stream, StreamBuilder, Wait
from scenarios.workloads.readers import fields, files, rows
from scenarios.workloads.readers.block_ids import BlockIds
from scenarios.workloads.readers.rows import ReadOptions, Sample
from scenarios.workloads.readers.weka_requests import TOLERANCE_S, RequestReader, first_stamp_s, without_doubles
from scenarios.workloads.repairs import Repairs, Skip

ClockBase = Literal["auto", "relative", "absolute"]
FORMAT = "weka"


def mismatch(sample: Sample) -> str:
    """Return why this is not a Weka trace, '' when it is."""
    if isinstance(sample.first, dict) and "timestamp" in sample.first:
        return "its `requests` stand under a `timestamp`, as AIBrix's"
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
    ids: BlockIds | None = None
    conversations: list[Conversation] = []
    names: dict[str, int] = {}
    scopes: dict[str, str] = {}
    for at, document in documents:
        try:
            if ids is None:
                ids = BlockIds(repairs, options.block_tokens or _block_size(document, at, repairs))
            conversation, scope = _conversation(document, at, ids, repairs, options)
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
    if ids is not None:
        ids.check(path)
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


def _block_size(document: Any, at: str, repairs: Repairs) -> int:
    if not isinstance(document, dict) or not isinstance(document.get("requests"), list):
        raise repairs.rejection("not a conversation", at, "an object with a list `requests` was expected")
    return fields.integer(document, "block_size", at, repairs, 1)


def _conversation(
    document: Any, at: str, ids: BlockIds, repairs: Repairs, options: ReadOptions
) -> tuple[Conversation, str]:
    block_tokens = _block_size(document, at, repairs) if options.block_tokens is None else options.block_tokens
    if not isinstance(document.get("requests"), list):
        raise repairs.rejection("not a conversation", at, "an object with a list `requests` was expected")
    if not document["requests"]:
        raise repairs.rejection("conversation empty", f"{at}: requests", "empty; at least one request was expected")
    models: dict[str, int] = {}
    root = StreamBuilder("", "root")
    root.tool_tokens, root.system_tokens = _prefix(document, at, repairs)
    spawned: list[tuple[int, str, dict[str, Any]]] = []
    requests = without_doubles(document["requests"], at, repairs, options.drop_doubles)
    reader = RequestReader(repairs, ids, models, options, first_stamp_s(requests, at, repairs, options))
    for k, row in enumerate(requests):
        place = f"{at}: requests[{k}]"
        if isinstance(row, dict) and row.get("type") == "subagent":
            spawned.append((len(root) - 1, place, row))
        else:
            reader.add(root, row, place, -reader.first_s)
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


def _prefix(row: dict[str, Any], at: str, repairs: Repairs) -> tuple[int, int]:
    """Return (tool, system) tokens: optional fields."""
    return (
        fields.integer(row, "tool_tokens", at, repairs, 0) if row.get("tool_tokens") is not None else 0,
        fields.integer(row, "system_tokens", at, repairs, 0) if row.get("system_tokens") is not None else 0,
    )


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
    reader: RequestReader, root: Stream, number: int, after: int, place: str, row: dict[str, Any], base: ClockBase
) -> Stream | None:
    """Read one sub-agent; the root's first request that starts after its end waits for it, unless it was detached."""
    repairs = reader.repairs
    spawn_s = fields.seconds(row, "t", place, repairs, reader.unit_s)
    if spawn_s is None:
        raise repairs.rejection("t missing", f"{place}: t", "missing; the spawn time in seconds was expected")
    rows = row.get("requests")
    if isinstance(rows, list):
        rows = without_doubles(rows, place, repairs, reader.options.drop_doubles)
    if not isinstance(rows, list) or not rows:
        repairs.note("sub-agent without requests", place, "left out: it sends nothing")
        return None
    detached = row.get("status") == "async_launched"
    name = str(row.get("agent_id") or f"agent_{number}")
    builder = StreamBuilder(name, "background" if detached else "spawn")
    builder.tool_tokens, builder.system_tokens = _prefix(row, place, repairs)
    for k, inner in enumerate(rows):
        origin_s = spawn_s if base == "relative" else 0.0
        reader.add(builder, inner, f"{place}.requests[{k}]", origin_s - reader.first_s)
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
