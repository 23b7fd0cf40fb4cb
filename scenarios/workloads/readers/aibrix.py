"""Read AIBrix workloads: JSONL, one instant per line with the requests that arrive at it.

`timestamp` [ms], `requests` [{`prompt`, and the lengths in tokens: `prompt_length`, `output_length`, also written
"Prompt Length", "Output Length"; `session_id`, optional}]. A missing prompt length is taken from the text. Source:
github.com/vllm-project/aibrix, benchmarks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scenarios.workloads.corpus import Corpus
from scenarios.workloads.readers import fields, rows
from scenarios.workloads.readers.plain_rows import PlainRow, corpus_of
from scenarios.workloads.readers.rows import ReadOptions, Sample
from scenarios.workloads.repairs import Repairs, Skip

FORMAT = "aibrix"


def mismatch(sample: Sample) -> str:
    """Return why this is not an AIBrix workload, '' when it is."""
    reason = rows.missing_keys(sample.first, "timestamp") or rows.missing_keys(sample.first, "requests")
    return reason or ("" if isinstance(sample.first["requests"], list) else "its `requests` is not a list")


def read(path: Path, options: ReadOptions) -> Corpus:
    """Read the requests of all instants."""
    repairs = Repairs(options.on_error)
    listed: list[PlainRow] = []
    for at, row in rows.json_rows(path, repairs):
        for k, request in enumerate(row.get("requests") or ()):
            try:
                listed.append(_request(row, request, f"{at}: requests[{k}]", repairs, options.unit_s(1e-3)))
            except Skip:
                continue
    return corpus_of(listed, path, FORMAT, repairs)


def _request(row: dict[str, Any], request: Any, at: str, repairs: Repairs, unit_s: float) -> PlainRow:
    if not isinstance(request, dict):
        raise repairs.rejection("not a request", at, "an object was expected")
    by_key = {str(key).lower().replace(" ", "_"): value for key, value in request.items()}
    t_s = fields.seconds(row, "timestamp", at, repairs, unit_s)
    if t_s is None:
        raise repairs.rejection("timestamp missing", f"{at}: timestamp", "missing; milliseconds were expected")
    return PlainRow(
        at=at,
        prompt_tokens=fields.prompt(by_key, "prompt_length", "prompt", at, repairs),
        output_tokens=fields.output_or_assumed(by_key, "output_length", at, repairs),
        t_s=t_s,
        session=fields.name(by_key, "session_id"),
    )
