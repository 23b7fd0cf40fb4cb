"""Read the per-request records of AIPerf (`profile_export.jsonl`, also of AgentX runs): what a benchmark has sent.

`metadata` {`request_start_ns`, `request_end_ns` [ns], `x_correlation_id` or `conversation_id`, `turn_index`,
`benchmark_phase`, `was_cancelled`}, `metrics` {`input_sequence_length`, `output_sequence_length` or
`output_token_count`: {`value` [tokens]}}, `error`. Warm-up requests are passed over and counted, failed ones left out.
Source: AIPerf's documentation of profile exports.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scenarios.workloads.corpus import Corpus
from scenarios.workloads.readers import fields, rows
from scenarios.workloads.readers.plain_rows import PlainRow, corpus_of
from scenarios.workloads.readers.rows import ReadOptions, Sample
from scenarios.workloads.repairs import Repairs, Skip

FORMAT = "aiperf-export"


def mismatch(sample: Sample) -> str:
    """Return why these are not records of AIPerf, '' when they are."""
    reason = rows.missing_keys(sample.first, "metadata", "metrics")
    if reason:
        return reason
    metadata = sample.first["metadata"]
    return "" if isinstance(metadata, dict) and "request_start_ns" in metadata else "its `metadata` has no start"


def read(path: Path, options: ReadOptions) -> Corpus:
    """Read the requests of the measured phase, on the clock of the benchmark."""
    repairs = Repairs(options.on_error)
    listed: list[PlainRow] = []
    for at, row in rows.json_rows(path, repairs):
        metadata, metrics = (part if isinstance(part := row.get(key), dict) else {} for key in ("metadata", "metrics"))
        if metadata.get("benchmark_phase") == "warmup":
            repairs.note("warm-up request", at, "passed over")
            continue
        try:
            if row.get("error") or metadata.get("was_cancelled"):
                repairs.repair("failed request", at, "it failed or was cancelled", "left out: it was never served")
                continue
            listed.append(_request(metadata, metrics, at, repairs))
        except Skip:
            continue
    first_s = min((row.t_s or 0.0 for row in listed), default=0.0)
    for record in listed:
        record.t_s = (record.t_s or 0.0) - first_s
    return corpus_of(listed, path, FORMAT, repairs)


def _request(metadata: dict[str, Any], metrics: dict[str, Any], at: str, repairs: Repairs) -> PlainRow:
    start_s = fields.seconds(metadata, "request_start_ns", at, repairs, 1e-9)
    end_s = fields.seconds(metadata, "request_end_ns", at, repairs, 1e-9)
    if start_s is None:
        raise repairs.rejection("start missing", f"{at}: request_start_ns", "missing; nanoseconds were expected")
    turn = metadata.get("turn_index")
    output_key = "output_sequence_length" if "output_sequence_length" in metrics else "output_token_count"
    lengths = {key: _value(metrics.get(key)) for key in ("input_sequence_length", output_key)}
    return PlainRow(
        at=at,
        prompt_tokens=fields.integer(lengths, "input_sequence_length", at, repairs, 1),
        output_tokens=fields.output(lengths, output_key, at, repairs),
        t_s=start_s,
        service_s=None if end_s is None or end_s <= start_s else end_s - start_s,
        session=fields.name(metadata, "x_correlation_id") or fields.name(metadata, "conversation_id"),
        turn=float(turn) if isinstance(turn, int) else None,
    )


def _value(metric: Any) -> Any:
    return metric.get("value") if isinstance(metric, dict) else metric
