"""Read Mooncake traces: JSONL, one request per line, with the extensions by AIPerf and Dynamo.

`timestamp` [MILLISECONDS from the start], `input_length` [tokens, INCLUDING the reusable prefix], `output_length`
[tokens], `hash_ids` (prefix-chained, 512 tokens each, the last block partial; the same ids in the whole file).
Optional: `session_id` (rows of one session follow each other) and `delay` [ms after the previous turn ENDS].
With the option `delta`, `input_length` is only the new part of a session's turn and accumulates with its answers.

Agentic Mooncake names each request and what it waits for. Plain form: `request_id`, `wait_for` [ids], `prefix_reset`,
`delay` and `tool_wait_ms` [ms, added]. Version 2 begins with a header line (`schema` "dynamo.agentic_mooncake",
`version`, `block_size`, `hash_id_scope`) and has `play_id`, `session_id`, `not_before_ms`, `recorded_api_time_ms` [ms]
and `dependencies` [{request_id, relation (sequence, spawn, join, barrier), trigger, delay_ms}].

Sources: github.com/kvcache-ai/Mooncake; the documentation of AIPerf and Dynamo.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scenarios.workloads.blocks import Run
from scenarios.workloads.corpus import Corpus, StreamBuilder
from scenarios.workloads.readers import fields, graph, rows
from scenarios.workloads.readers.graph import Request
from scenarios.workloads.readers.rows import ReadOptions, Sample
from scenarios.workloads.readers.synthetic_blocks import StatedPrefix
from scenarios.workloads.repairs import Repairs, Skip

FORMAT = "mooncake"
SCHEMA = "dynamo.agentic_mooncake"
BLOCK_TOKENS = 512
MS = 1e-3


def mismatch(sample: Sample) -> str:
    """Return why this is not a Mooncake trace, '' when it is."""
    first = sample.first
    if isinstance(first, dict) and first.get("schema") == SCHEMA:
        return ""
    if isinstance(first, dict) and "chat_id" in first:
        return "its rows have `chat_id`, as Bailian's, whose time stamps are in seconds"
    return rows.missing_keys(first, "input_length", "output_length")


def read(path: Path, options: ReadOptions) -> Corpus:
    """Read independent requests, sessions, or a dependency graph, according to the rows."""
    repairs = Repairs(options.on_error)
    block_tokens = options.block_tokens or BLOCK_TOKENS
    scope = "global"
    independent = StreamBuilder("", "independent")
    linked: list[Request] = []
    deltas: dict[str, _Delta] = {}
    for at, row in rows.json_rows(path, repairs):
        if row.get("schema") == SCHEMA:
            block_tokens = options.block_tokens or fields.integer(row, "block_size", at, repairs, 1)
            scope = str(row.get("hash_id_scope") or "global")
            continue
        try:
            _row(row, at, repairs, block_tokens, independent, linked, deltas if options.delta else None)
        except Skip:
            continue
    if not linked:
        return rows.independent_rows(path, FORMAT, independent, repairs, block_tokens=block_tokens, scope="global")
    if len(independent):
        raise repairs.rejection(
            "rows with and without a session", f"{path}", "expected a session on all rows or on none"
        )
    conversations = graph.conversations(
        linked, repairs, block_tokens=1 if options.delta else block_tokens, shared_clock=scope == "global"
    )
    corpus = Corpus(name=path.name, format=FORMAT, conversations=conversations, repairs=repairs)
    corpus.scope = "local" if scope == "local" or options.delta else "global"
    return rows.with_digest(corpus, path)


class _Delta:
    """A session whose input lengths accumulate."""

    def __init__(self) -> None:
        self.context_tokens = 0
        self.chain = StatedPrefix()

    def extend(self, new_tokens: int, output_tokens: int) -> tuple[int, list[Run]]:
        prompt_tokens = self.context_tokens + new_tokens
        runs = self.chain.extend(prompt_tokens, self.context_tokens)
        self.context_tokens = prompt_tokens + output_tokens
        return prompt_tokens, runs


def _row(
    row: dict[str, Any],
    at: str,
    repairs: Repairs,
    block_tokens: int,
    independent: StreamBuilder,
    linked: list[Request],
    deltas: dict[str, _Delta] | None,
) -> None:
    prompt_tokens = fields.integer(row, "input_length", at, repairs, 1)
    output_tokens = fields.output(row, "output_length", at, repairs)
    session = str(row.get("session_id", ""))
    if deltas is not None:
        prompt_tokens, runs = deltas.setdefault(session, _Delta()).extend(prompt_tokens, output_tokens)
    else:
        runs = fields.block_runs(row, "hash_ids", at, repairs, prompt_tokens, block_tokens)
    t_s = fields.seconds(row, "timestamp", at, repairs, MS)
    if "request_id" not in row and not session:
        if t_s is None:
            problem = "missing; a row without a session is replayed by its time stamp"
            raise repairs.rejection("timestamp missing", f"{at}: timestamp", problem)
        t_s = rows.check_order(independent, t_s, at, repairs)
        independent.add(t_s=t_s, prompt_tokens=prompt_tokens, output_tokens=output_tokens, runs=runs)
        return
    play = f"{row['play_id']}/" if "play_id" in row else ""
    linked.append(
        Request(
            name=str(row.get("request_id") or f"{session}#{len(linked)}"),
            at=at,
            session=play + session,
            prompt_tokens=prompt_tokens,
            output_tokens=output_tokens,
            runs=runs,
            t_s=t_s if t_s is not None else fields.seconds(row, "not_before_ms", at, repairs, MS),
            service_s=fields.seconds(row, "recorded_api_time_ms", at, repairs, MS),
        )
    )
    _link(row, at, repairs, linked)
    if linked[-1].t_s is None and not linked[-1].after:
        problem = "missing; the first turn of a session needs its start"
        linked.pop()
        raise repairs.rejection("timestamp missing", f"{at}: timestamp", problem)


def _link(row: dict[str, Any], at: str, repairs: Repairs, linked: list[Request]) -> None:
    """Set the predecessors of the last request and the delay after them."""
    request = linked[-1]
    delay_s = fields.seconds(row, "delay", at, repairs, MS)
    if "dependencies" in row:
        edges = [e for e in row["dependencies"] or () if isinstance(e, dict)]
        starts = [e for e in edges if e.get("trigger", "completion") != "completion"]
        if starts:
            repairs.note("dependency on a start", at, "taken as on the end: a request here follows ended ones")
        request.after = [str(e.get("request_id")) for e in edges]
        delays = [d for e in edges if (d := fields.seconds(e, "delay_ms", at, repairs, MS)) is not None]
        request.delay_s = max(delays) if delays else None
    elif "request_id" in row:
        request.after = [str(name) for name in row.get("wait_for") or ()]
        tool_s = fields.seconds(row, "tool_wait_ms", at, repairs, MS)
        request.delay_s = None if delay_s is None and tool_s is None else (delay_s or 0.0) + (tool_s or 0.0)
    else:
        previous = next((r for r in reversed(linked[:-1]) if r.session == request.session), None)
        request.after = [previous.name] if previous else []
        request.delay_s = delay_s if previous else None
        if previous and delay_s is None and request.t_s is None:
            repairs.note("wait absent", at, "taken as 0 s after the turn before")
            request.delay_s = 0.0
