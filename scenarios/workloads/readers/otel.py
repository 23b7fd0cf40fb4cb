"""Read OpenTelemetry spans of model calls (gen_ai semantic conventions): OTLP JSON, or one span a line.

Used attributes: `gen_ai.usage.input_tokens` [tokens, INCLUDING cached ones], `gen_ai.usage.output_tokens`,
`gen_ai.usage.cache_read.input_tokens` (also `cache_read_input_tokens`; optional), `gen_ai.conversation.id` (else the
trace id names the session), `gen_ai.response.model`. Times: OTLP `startTimeUnixNano`, `endTimeUnixNano` [ns], or
`start_time`, `end_time` [ISO]. Other spans (tools, workflows) are skipped and counted, and so are
spans that sum up the calls below them, copies of a span, and calls that failed. Where a span states more cached tokens
than input, its source counts the input without the cached part, and so it is read in the whole file. Without cache
counts a prompt has no block ids, so nothing of it can be reused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scenarios.workloads.corpus import Conversation, Corpus, StreamBuilder
from scenarios.workloads.readers import fields, rows
from scenarios.workloads.readers.moments import Moments
from scenarios.workloads.readers.rows import ReadOptions, Sample
from scenarios.workloads.readers.synthetic_blocks import StatedPrefix, note_beyond
from scenarios.workloads.repairs import Repairs, Skip

FORMAT = "otel"
INPUT, OUTPUT = "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"
CACHED = ("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens")
SUMS = frozenset({"invoke_agent", "create_agent", "invoke_workflow", "execute_tool"})
"""Operations whose usage, where they state one, is the sum of the model calls below them."""

START = ("startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime")
END = ("endTimeUnixNano", "end_time_unix_nano", "end_time", "endTime")


@dataclass(slots=True, kw_only=True)
class _Call:
    """One model call."""

    at: str
    span: str
    session: str
    start_s: float
    end_s: float
    input_tokens: int
    output_tokens: int
    cached_tokens: int | None


@dataclass(slots=True)
class _Spans:
    """What has been read: calls by span, and the parent of every span."""

    repairs: Repairs
    moments: Moments
    calls: dict[str, _Call] = field(default_factory=dict)
    parents: dict[str, str] = field(default_factory=dict)
    number: int = 0

    def add(self, span: dict[str, Any], at: str) -> None:
        """Read one span."""
        repairs = self.repairs
        attributes = _attributes(span)
        trace = span.get("traceId") or span.get("trace_id") or _context(span).get("trace_id")
        span_id = span.get("spanId") or span.get("span_id") or _context(span).get("span_id")
        parent = span.get("parentSpanId") or span.get("parent_span_id") or span.get("parent_id")
        self.number += 1
        name = f"{trace}/{span_id}" if span_id else f"{at}#{self.number}"
        if parent:
            self.parents[name] = f"{trace}/{parent}"
        if INPUT not in attributes:
            repairs.note("span without token counts", at, "skipped: not a model call")
            return
        if attributes.get("gen_ai.operation.name") in SUMS:
            repairs.note("span that sums up others", at, "skipped: its tokens are those of the calls below it")
            return
        if span_id and name in self.calls:
            repairs.note("span exported twice", at, "the second is left out")
            return
        if OUTPUT not in attributes and _failed(span, attributes):
            repairs.repair("failed request", at, "the call failed and has no output", "left out: it was never served")
            return
        start_s, end_s = self._moment_s(span, START, at), self._moment_s(span, END, at)
        if end_s < start_s:
            repairs.repair("span ends before it starts", at, f"{end_s - start_s:g} s", "taken as ending at once")
            end_s = start_s
        cached = next((key for key in CACHED if attributes.get(key) is not None), None)
        session = fields.name(attributes, "gen_ai.conversation.id") or (str(trace) if trace else name)
        self.calls[name] = _Call(
            at=at,
            span=name,
            session=session,
            start_s=start_s,
            end_s=end_s,
            input_tokens=fields.integer(attributes, INPUT, at, repairs, 0 if cached else 1),
            output_tokens=fields.output(attributes, OUTPUT, at, repairs),
            cached_tokens=fields.integer(attributes, cached, at, repairs, 0) if cached else None,
        )

    def _moment_s(self, span: dict[str, Any], names: tuple[str, ...], at: str) -> float:
        key = next((name for name in names if span.get(name) is not None), names[0])
        value = span.get(key)
        if "nano" not in key.lower():
            return self.moments.seconds(value, key, at)
        try:
            return int(value or "") * 1e-9
        except (ValueError, TypeError):
            problem = f"{value!r}; nanoseconds or an ISO time was expected"
            raise self.repairs.rejection(f"{key} not a time", f"{at}: {key}", problem) from None

    def without_sums(self) -> list[_Call]:
        """Return the calls that are no ancestor of another call: an ancestor's tokens are the sum of theirs."""
        ancestors: set[str] = set()
        for name in self.calls:
            parent = self.parents.get(name)
            while parent is not None and parent not in ancestors:
                ancestors.add(parent)
                parent = self.parents.get(parent)
        for name in ancestors & set(self.calls):
            done = "skipped: its tokens are those of the calls below it"
            self.repairs.note("span that sums up others", self.calls[name].at, done)
        return [call for name, call in self.calls.items() if name not in ancestors]


def mismatch(sample: Sample) -> str:
    """Return why these are not spans, '' when they are."""
    if isinstance(sample.first, dict) and ("resourceSpans" in sample.first or "resource_spans" in sample.first):
        return ""
    reason = rows.missing_keys(sample.first, "attributes")
    if reason:
        return f"{reason}, and it holds no `resourceSpans`"
    return "" if set(START) & set(sample.first) else "its first span has no start time"


def read(path: Path, options: ReadOptions) -> Corpus:
    """Read the spans that carry token counts; those of one session are sorted by start."""
    repairs = Repairs(options.on_error)
    spans = _Spans(repairs, Moments(repairs))
    for at, row in rows.json_rows(path, repairs):
        for span in _spans(row):
            try:
                spans.add(span, at)
            except Skip:
                continue
    calls = spans.without_sums()
    _with_cached_input(calls, repairs)
    sessions: dict[str, list[_Call]] = {}
    for call in calls:
        if call.input_tokens:
            sessions.setdefault(call.session, []).append(call)
    origin_s = min((call.start_s for call in calls), default=0.0)
    conversations = []
    beyond_tokens = 0
    for name, listed in sessions.items():
        chain = StatedPrefix()
        ordered = sorted(listed, key=lambda call: (call.start_s, call.at))
        conversations.append(_conversation(name, ordered, origin_s, chain, repairs))
        beyond_tokens += chain.beyond_tokens
    note_beyond(beyond_tokens, f"{path}", repairs)
    return rows.with_digest(Corpus(name=path.name, format=FORMAT, conversations=conversations, repairs=repairs), path)


def _spans(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    resources = row.get("resourceSpans") or row.get("resource_spans")
    if resources is None:
        yield row
        return
    for resource in resources:
        for scope in resource.get("scopeSpans") or resource.get("scope_spans") or ():
            yield from (span for span in scope.get("spans") or () if isinstance(span, dict))


def _context(span: dict[str, Any]) -> dict[str, Any]:
    context = span.get("context")
    return context if isinstance(context, dict) else {}


def _attributes(span: dict[str, Any]) -> dict[str, Any]:
    listed = span.get("attributes") or {}
    if isinstance(listed, dict):
        return listed
    out: dict[str, Any] = {}
    for item in listed:
        if not isinstance(item, dict):
            continue
        value = item.get("value")
        if isinstance(value, dict) and value:
            kind, value = next(iter(value.items()))
            value = int(value) if kind == "intValue" and str(value).lstrip("-").isdigit() else value
        out[str(item.get("key"))] = value
    return out


def _failed(span: dict[str, Any], attributes: dict[str, Any]) -> bool:
    status = span.get("status")
    code = status.get("code", status.get("status_code")) if isinstance(status, dict) else status
    return "error.type" in attributes or str(code).upper() in ("2", "ERROR", "STATUS_CODE_ERROR")


def _with_cached_input(calls: list[_Call], repairs: Repairs) -> None:
    """Add the cached part to every input of a file where a span states more cached tokens than input."""
    first = next((call for call in calls if (call.cached_tokens or 0) > call.input_tokens), None)
    if first is None:
        return
    problem = f"{first.cached_tokens} cached tokens in an input of {first.input_tokens}"
    done = "the source counts the input without the cached part: added to every span that states one"
    with suppress(Skip):
        repairs.repair("more cached tokens than input", first.at, problem, done)
    for call in calls:
        call.input_tokens += call.cached_tokens or 0


def _conversation(
    name: str, calls: list[_Call], origin_s: float, chain: StatedPrefix, repairs: Repairs
) -> Conversation:
    start_s = end_s = calls[0].start_s
    stream = StreamBuilder("", "root")
    for call in calls:
        if call.cached_tokens is None:
            repairs.note("no cache count", call.at, "the prompt has no block ids: nothing of it can be reused")
        if call.start_s < end_s:
            repairs.note("span starts before the last one ended", call.at, "played after it, without a wait")
        stream.add(
            t_s=call.start_s - start_s,
            prompt_tokens=call.input_tokens,
            output_tokens=call.output_tokens,
            think_s=max(0.0, call.start_s - end_s),
            service_s=call.end_s - call.start_s,
            runs=[] if call.cached_tokens is None else chain.extend(call.input_tokens, call.cached_tokens),
        )
        end_s = max(end_s, call.end_s)
    return Conversation(name=name, block_tokens=1, streams=(stream.build(),), start_s=round(start_s - origin_s, 9))
