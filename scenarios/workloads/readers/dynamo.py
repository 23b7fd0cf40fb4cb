"""Read Dynamo's request traces (`dynamo.request.trace.v1`): JSONL, also wrapped, in shards of any order.

Of rows with `event_type` "request_end": `request` {`request_id`, `request_received_ms`, `total_time_ms` [ms],
`input_tokens`, `output_tokens` [tokens], `replay` {`trace_block_size`, `input_length` [tokens],
`input_sequence_hashes`}}, `event_time_unix_ms` [ms, the end], `agent_context` {`session_id`, `parent_session_id`}.
Requests of a session follow each other. A session with a parent is a sub-agent: it follows the parent's last request
that had ended, and the parent's first request after its end waits for it. Tool rows are passed over and counted: the
waits are in the stamps. Source: Dynamo's documentation of request traces.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

from scenarios.workloads.corpus import Corpus, StreamBuilder
from scenarios.workloads.readers import fields, graph, rows
from scenarios.workloads.readers.block_ids import BlockIds
from scenarios.workloads.readers.graph import Request
from scenarios.workloads.readers.rows import ReadOptions, Sample
from scenarios.workloads.repairs import Repairs, Skip

FORMAT = "dynamo"
SCHEMA = "dynamo.request.trace.v1"
WRAPPERS = ("event", "record", "data", "payload")
MS = 1e-3
BLOCK_TOKENS = 64
TOLERANCE_S = 0.001


def mismatch(sample: Sample) -> str:
    """Return why this is not a request trace of Dynamo's, '' when it is."""
    if isinstance(sample.first, dict) and _record(sample.first).get("schema") == SCHEMA:
        return ""
    return rows.missing_keys(sample.first, "schema", "event_type") or f"its `schema` is not {SCHEMA}"


def _record(row: dict[str, Any]) -> dict[str, Any]:
    """Return the record of a row, unwrapped."""
    inner = (row.get(key) for key in WRAPPERS)
    return (
        row
        if "schema" in row
        else next((table for table in inner if isinstance(table, dict) and "schema" in table), row)
    )


def read(path: Path, options: ReadOptions) -> Corpus:
    """Read the requests; all or none of them state a session."""
    repairs = Repairs(options.on_error)
    ids = BlockIds(repairs, options.block_tokens or BLOCK_TOKENS, "input_sequence_hashes")
    sized = options.block_tokens is not None
    requests: list[Request] = []
    parents: dict[str, str] = {}
    for at, row in rows.json_rows(path, repairs):
        record = _record(row)
        request = record.get("request")
        if record.get("event_type") != "request_end" or not isinstance(request, dict):
            repairs.note("row that is no end of a request", at, "passed over: waits are in the stamps")
            continue
        replay: dict[str, Any] = stated if isinstance(stated := request.get("replay"), dict) else {}
        try:
            if replay and options.block_tokens is None:
                size = fields.integer(replay, "trace_block_size", at, repairs, 1)
                if sized and size != ids.block_tokens:
                    problem = f"{size}; the rows before it have {ids.block_tokens}"
                    raise repairs.rejection("mixed block sizes", f"{at}: trace_block_size", problem)
                ids.block_tokens, sized = size, True
            requests.append(_request(record, request, replay, at, ids, repairs))
        except Skip:
            continue
        context = record.get("agent_context")
        if requests[-1].session and isinstance(context, dict) and (parent := fields.name(context, "parent_session_id")):
            parents[requests[-1].session] = parent
    ids.check(path)
    first_s = min((request.t_s or 0.0 for request in requests), default=0.0)
    for parsed in requests:
        parsed.t_s = (parsed.t_s or 0.0) - first_s
    requests.sort(key=lambda request: request.t_s or 0.0)
    if not any(request.session for request in requests):
        return _independent(requests, path, ids.block_tokens, repairs)
    if not all(request.session for request in requests):
        problem = "some rows state a session and some do not; all or none were expected"
        raise rows.not_skipped(repairs.rejection("rows with and without a session", f"{path}", problem))
    _link(requests, parents)
    conversations = graph.conversations(requests, repairs, block_tokens=ids.block_tokens, shared_clock=True)
    corpus = Corpus(name=path.name, format=FORMAT, conversations=conversations, scope="global", repairs=repairs)
    return rows.with_digest(corpus, path)


def _request(
    record: dict[str, Any], request: dict[str, Any], replay: dict[str, Any], at: str, ids: BlockIds, repairs: Repairs
) -> Request:
    end_s = fields.seconds(record, "event_time_unix_ms", at, repairs, MS)
    total_s = fields.wait(request, "total_time_ms", at, repairs, MS)
    start_s = fields.seconds(request, "request_received_ms", at, repairs, MS)
    if start_s is None and end_s is not None and total_s is not None:
        start_s = end_s - total_s
    if start_s is None:
        raise repairs.rejection("start missing", f"{at}: request_received_ms", "missing; milliseconds were expected")
    if total_s is None and end_s is not None and end_s >= start_s:
        total_s = end_s - start_s
    source, key = (replay, "input_length") if "input_length" in replay else (request, "input_tokens")
    prompt_tokens = fields.integer(source, key, at, repairs, 1)
    context = record.get("agent_context")
    return Request(
        name=fields.name(request, "request_id") or at,
        at=at,
        session=(fields.name(context, "session_id") or "") if isinstance(context, dict) else "",
        prompt_tokens=prompt_tokens,
        output_tokens=fields.output(request, "output_tokens", at, repairs),
        runs=ids.runs(replay, at, prompt_tokens),
        t_s=start_s,
        service_s=total_s,
    )


def _link(requests: list[Request], parents: dict[str, str]) -> None:
    """Set what each request follows; `requests` are in the order of their starts."""
    sessions: dict[str, list[Request]] = {}
    for request in requests:
        sessions.setdefault(request.session, []).append(request)
    for listed in sessions.values():
        for before, request in pairwise(listed):
            request.after = [before.name]
    for child, parent in parents.items():
        inner, outer = sessions[child], sessions.get(parent, [])
        start_s, end_s = inner[0].t_s or 0.0, max(_end_s(spawned) for spawned in inner)
        spawning = [spawned for spawned in outer if _end_s(spawned) <= start_s + TOLERANCE_S]
        joining = [spawned for spawned in outer if (spawned.t_s or 0.0) >= end_s - TOLERANCE_S]
        if spawning:
            inner[0].after.append(spawning[-1].name)
        if joining:
            joining[0].after.append(inner[-1].name)


def _end_s(request: Request) -> float:
    return (request.t_s or 0.0) + (request.service_s or 0.0)


def _independent(requests: list[Request], path: Path, block_tokens: int, repairs: Repairs) -> Corpus:
    stream = StreamBuilder("", "independent")
    for request in requests:
        stream.add(
            t_s=request.t_s or 0.0,
            prompt_tokens=request.prompt_tokens,
            output_tokens=request.output_tokens,
            service_s=request.service_s,
            runs=request.runs,
        )
    return rows.independent_rows(path, FORMAT, stream, repairs, block_tokens=block_tokens, scope="global")
