"""Read OpenTelemetry spans of model calls (gen_ai semantic conventions): OTLP JSON, or one span a line.

Used attributes: `gen_ai.usage.input_tokens` [tokens, INCLUDING cached ones], `gen_ai.usage.output_tokens`,
`gen_ai.usage.cache_read.input_tokens` (also `cache_read_input_tokens`; optional), `gen_ai.conversation.id` (else the
trace id names the session), `gen_ai.response.model`. Times: OTLP `startTimeUnixNano`, `endTimeUnixNano` [ns], or
`start_time`, `end_time` [ISO]. Other spans (tools, workflows) are skipped and counted. Without cache counts a
prompt has no block ids, so nothing of it can be reused.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from scenarios.workloads.corpus import Conversation, Corpus, StreamBuilder
from scenarios.workloads.readers import fields, rows
from scenarios.workloads.readers.rows import ReadOptions, Sample
from scenarios.workloads.readers.synthetic_blocks import StatedPrefix
from scenarios.workloads.repairs import Repairs, Skip

FORMAT = "otel"
INPUT, OUTPUT = "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"
CACHED = ("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Span = tuple[str, str, float, float, dict[str, Any]]
"""(place, session, start_s, end_s, attributes)"""


def mismatch(sample: Sample) -> str:
    """Return why these are not spans, '' when they are."""
    if isinstance(sample.first, dict) and ("resourceSpans" in sample.first or "resource_spans" in sample.first):
        return ""
    reason = rows.missing_keys(sample.first, "attributes")
    if reason:
        return f"{reason}, and it holds no `resourceSpans`"
    times = {"start_time", "startTimeUnixNano", "start_time_unix_nano", "startTime"} & set(sample.first)
    return "" if times else "its first span has no start time"


def read(path: Path, options: ReadOptions) -> Corpus:
    """Read the spans that carry token counts; those of one session are sorted by start."""
    repairs = Repairs(options.on_error)
    sessions: dict[str, list[Span]] = {}
    for at, row in rows.json_rows(path, repairs):
        for span in _spans(row):
            try:
                parsed = _span(span, at, repairs)
            except Skip:
                continue
            if parsed is not None:
                sessions.setdefault(parsed[1], []).append(parsed)
    origin = min((span[2] for spans in sessions.values() for span in spans), default=0.0)
    conversations = []
    for name, spans in sessions.items():
        try:
            conversations.append(_conversation(name, sorted(spans, key=lambda s: (s[2], s[0])), origin, repairs))
        except Skip:
            continue
    return rows.with_digest(Corpus(name=path.name, format=FORMAT, conversations=conversations, repairs=repairs), path)


def _spans(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    resources = row.get("resourceSpans") or row.get("resource_spans")
    if resources is None:
        yield row
        return
    for resource in resources:
        for scope in resource.get("scopeSpans") or resource.get("scope_spans") or ():
            yield from scope.get("spans") or ()


def _attributes(span: dict[str, Any]) -> dict[str, Any]:
    listed = span.get("attributes") or {}
    if isinstance(listed, dict):
        return listed
    out: dict[str, Any] = {}
    for item in listed:
        value = item.get("value")
        if isinstance(value, dict) and value:
            kind, value = next(iter(value.items()))
            value = int(value) if kind == "intValue" else value
        out[str(item.get("key"))] = value
    return out


def _moment_s(span: dict[str, Any], names: tuple[str, ...], at: str, repairs: Repairs) -> float:
    for name in names:
        value = span.get(name)
        if value is None:
            continue
        try:
            if "nano" in name.lower():
                return int(value) * 1e-9
            moment = datetime.fromisoformat(str(value))
        except ValueError:
            break
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return (moment - EPOCH) / timedelta(seconds=1)
    raise repairs.rejection(f"{names[0]} not a time", f"{at}: {names[0]}", "nanoseconds or an ISO time was expected")


def _span(span: dict[str, Any], at: str, repairs: Repairs) -> Span | None:
    attributes = _attributes(span)
    if INPUT not in attributes:
        repairs.note("span without token counts", at, "skipped: not a model call")
        return None
    start_s = _moment_s(span, ("startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime"), at, repairs)
    end_s = _moment_s(span, ("endTimeUnixNano", "end_time_unix_nano", "end_time", "endTime"), at, repairs)
    if end_s < start_s:
        repairs.repair("span ends before it starts", at, f"{end_s - start_s:g} s", "taken as ending at once")
        end_s = start_s
    trace = span.get("traceId") or span.get("trace_id") or (span.get("context") or {}).get("trace_id")
    return at, str(attributes.get("gen_ai.conversation.id") or trace or "no session"), start_s, end_s, attributes


def _conversation(name: str, spans: list[Span], origin: float, repairs: Repairs) -> Conversation:
    start_s = spans[0][2]
    stream, chain = StreamBuilder("", "root"), StatedPrefix()
    end_s = start_s
    for at, _, from_s, to_s, attributes in spans:
        prompt_tokens = fields.integer(attributes, INPUT, at, repairs, 1)
        output_tokens = fields.output(attributes, OUTPUT, at, repairs)
        cached = next((int(attributes[key]) for key in CACHED if attributes.get(key) is not None), None)
        if cached is None:
            repairs.note("no cache count", at, "the prompt has no block ids: nothing of it can be reused")
        if from_s < end_s:
            repairs.note("span starts before the last one ended", at, "played after it, without a wait")
        stream.add(
            t_s=from_s - start_s,
            prompt_tokens=prompt_tokens,
            output_tokens=output_tokens,
            think_s=max(0.0, from_s - end_s),
            service_s=to_s - from_s,
            runs=[] if cached is None else chain.extend(prompt_tokens, cached),
        )
        end_s = max(end_s, to_s)
    return Conversation(name=name, block_tokens=1, streams=(stream.build(),), start_s=round(start_s - origin, 9))
