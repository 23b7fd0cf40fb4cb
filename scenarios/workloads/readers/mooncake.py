"""Read Mooncake traces: JSONL, one request per line, with the extensions by AIPerf and Dynamo.

`timestamp` [MILLISECONDS from the start], `input_length` [tokens, INCLUDING the reusable prefix], `output_length`
[tokens], `hash_ids` (prefix-chained, 512 tokens each, the last block partial; the same ids in the whole file).
Optional: `session_id` (rows of one session follow each other) and `delay` [ms after the previous turn ENDS].
With the option `delta`, `input_length` is only the new part of a session's turn and accumulates with its answers; its
ids are those of the new part (`turn_rows`). A row without `input_length` may have `text_input` instead.

Agentic Mooncake names each request and what it waits for. Plain form: `request_id`, `wait_for` [ids], `prefix_reset`,
`delay` and `tool_wait_ms` [ms, added]. Version 2 begins with a header line (`schema` "dynamo.agentic_mooncake",
`version`, `block_size`, `hash_id_scope`) and has `play_id`, `session_id`, `not_before_ms`, `recorded_api_time_ms` [ms]
and `dependencies` [{request_id, relation (sequence, spawn, join, barrier), trigger, delay_ms}].

Sources: github.com/kvcache-ai/Mooncake; the documentation of AIPerf and Dynamo.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scenarios.workloads.corpus import Corpus, StreamBuilder
from scenarios.workloads.readers import fields, graph, rows, turn_rows
from scenarios.workloads.readers.block_ids import BlockIds
from scenarios.workloads.readers.graph import Request
from scenarios.workloads.readers.rows import ReadOptions, Sample
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
    if isinstance(first, dict) and "text_input" in first:
        return ""
    return rows.missing_keys(first, "input_length")


def read(path: Path, options: ReadOptions) -> Corpus:
    """Read independent requests, sessions, or a dependency graph, according to the rows."""
    file = _File(Repairs(options.on_error), options)
    for at, row in rows.json_rows(path, file.repairs):
        try:
            file.header(row, at) if row.get("schema") == SCHEMA else file.add(row, at)
        except Skip:
            continue
    file.ids.check(path)
    repairs, block_tokens = file.repairs, file.ids.block_tokens
    if not file.linked and not file.turns:
        return rows.independent_rows(path, FORMAT, file.independent, repairs, block_tokens=block_tokens, scope="global")
    if len(file.independent):
        raise rows.not_skipped(
            repairs.rejection("rows with and without a session", f"{path}", "expected a session on all rows or on none")
        )
    turns = turn_rows.in_time_order(file.turns, repairs)
    if options.delta:
        turn_rows.accumulate(turns, block_tokens)
    else:
        turn_rows.doubt_incremental(turns, path, repairs)
    linked = [*file.linked, *turn_rows.chained(turns, repairs)]
    conversations = graph.conversations(
        linked, repairs, block_tokens=1 if options.delta else block_tokens, shared_clock=file.scope == "global"
    )
    corpus = Corpus(name=path.name, format=FORMAT, conversations=conversations, repairs=repairs)
    corpus.scope = "local" if file.scope == "local" else "global"
    return rows.with_digest(corpus, path)


@dataclass(slots=True)
class _File:
    """What has been read of a file."""

    repairs: Repairs
    options: ReadOptions
    ids: BlockIds = field(init=False)
    scope: str = "global"
    unit_s: float = field(init=False)
    independent: StreamBuilder = field(default_factory=lambda: StreamBuilder("", "independent"))
    linked: list[Request] = field(default_factory=list)
    turns: dict[str, list[Request]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ids = BlockIds(self.repairs, self.options.block_tokens or BLOCK_TOKENS)
        self.unit_s = self.options.unit_s(MS)

    def header(self, row: dict[str, Any], at: str) -> None:
        """Read the header line of version 2."""
        if self.options.block_tokens is None:
            self.ids.block_tokens = fields.integer(row, "block_size", at, self.repairs, 1)
        self.scope = str(row.get("hash_id_scope") or "global")

    def add(self, row: dict[str, Any], at: str) -> None:
        """Read one request into the list that it belongs to."""
        repairs = self.repairs
        prompt_tokens = fields.prompt(row, "input_length", "text_input", at, repairs)
        output_tokens = fields.output_or_assumed(row, "output_length", at, repairs)
        runs = self.ids.runs(row, at, prompt_tokens)
        t_s = fields.seconds(row, "timestamp", at, repairs, self.unit_s)
        session, named = fields.name(row, "session_id"), fields.name(row, "request_id")
        if session is None and named is None:
            if t_s is None:
                problem = "missing; a row without a session is replayed by its time stamp"
                raise repairs.rejection("timestamp missing", f"{at}: timestamp", problem)
            t_s = rows.check_order(self.independent, t_s, at, repairs)
            self.independent.add(t_s=t_s, prompt_tokens=prompt_tokens, output_tokens=output_tokens, runs=runs)
            return
        play = f"{row['play_id']}/" if "play_id" in row else ""
        request = Request(
            name=named or f"{play}{session}#{at}",
            at=at,
            session=play + (session or ""),
            prompt_tokens=prompt_tokens,
            output_tokens=output_tokens,
            runs=runs,
            t_s=t_s if t_s is not None else fields.seconds(row, "not_before_ms", at, repairs, MS),
            service_s=fields.wait(row, "recorded_api_time_ms", at, repairs, MS),
            delay_s=fields.wait(row, "delay", at, repairs, self.unit_s),
        )
        if named is None and "dependencies" not in row:
            self.turns.setdefault(request.session, []).append(request)
            return
        _link(request, row, at, repairs)
        if request.t_s is None and not request.after:
            problem = "missing; the first turn of a session needs its start"
            raise repairs.rejection("timestamp missing", f"{at}: timestamp", problem)
        self.linked.append(request)


def _link(request: Request, row: dict[str, Any], at: str, repairs: Repairs) -> None:
    """Set the predecessors of a named request and the delays after them."""
    if "dependencies" in row:
        edges = [e for e in row["dependencies"] or () if isinstance(e, dict)]
        if any(e.get("trigger", "completion") != "completion" for e in edges):
            repairs.note("dependency on a start", at, "taken as on the end: a request here follows ended ones")
        request.after = [str(e.get("request_id")) for e in edges]
        delays = {str(e.get("request_id")): fields.wait(e, "delay_ms", at, repairs, MS) for e in edges}
        request.edge_delays_s = {name: delay_s for name, delay_s in delays.items() if delay_s is not None}
        request.delay_s = max(request.edge_delays_s.values(), default=None)
        return
    request.after = [str(name) for name in row.get("wait_for") or ()]
    tool_s = fields.wait(row, "tool_wait_ms", at, repairs, MS)
    if tool_s is not None:
        request.delay_s = (request.delay_s or 0.0) + tool_s
