"""Read the request data of BLIS (inference-sim, trace version 2 and 3): CSV, one request per line.

`session_id`, `round_index`, `input_tokens`, `output_tokens` [tokens], `arrival_time_us`, `send_time_us`,
`last_chunk_time_us` [microseconds; 0 or empty where nothing was measured], `status`. Rows of one session follow each
other by their rounds; a request whose status is neither empty nor "ok" has failed. Prefix groups are not read: their
rows name no blocks. Source: github.com/inference-sim/inference-sim, docs on trace files.
"""

from __future__ import annotations

from pathlib import Path

from scenarios.workloads.corpus import Corpus
from scenarios.workloads.readers import fields, rows
from scenarios.workloads.readers.plain_rows import PlainRow, corpus_of
from scenarios.workloads.readers.rows import ReadOptions, Sample
from scenarios.workloads.repairs import Repairs, Skip

FORMAT = "blis"
US = 1e-6
REQUIRED = ("input_tokens", "output_tokens", "arrival_time_us")


def mismatch(sample: Sample) -> str:
    """Return why this is not request data of BLIS, '' when it is."""
    return rows.missing_columns(sample.header, *REQUIRED)


def read(path: Path, options: ReadOptions) -> Corpus:
    """Read the requests; a failed one is a defect and is left out under `repair`."""
    repairs = Repairs(options.on_error)
    listed: list[PlainRow] = []
    for at, row in rows.csv_rows(path, repairs):
        try:
            if row.get("status", "") not in ("", "ok"):
                repairs.repair("failed request", at, f"status {row['status']}", "left out: it was never served")
                continue
            numbers = {key: rows.number(row, key, at, repairs) for key in REQUIRED}
            measured = {
                key: rows.number(row, key, at, repairs)
                for key in ("send_time_us", "last_chunk_time_us")
                if row.get(key)
            }
            span_us = measured.get("last_chunk_time_us", 0.0) - measured.get("send_time_us", 0.0)
            listed.append(
                PlainRow(
                    at=at,
                    prompt_tokens=fields.integer(numbers, "input_tokens", at, repairs, 1),
                    output_tokens=fields.output(numbers, "output_tokens", at, repairs),
                    t_s=fields.seconds(numbers, "arrival_time_us", at, repairs, options.unit_s(US)),
                    service_s=span_us * US if span_us > 0.0 else None,
                    session=fields.name(row, "session_id"),
                    turn=rows.number(row, "round_index", at, repairs) if row.get("round_index") else None,
                )
            )
        except Skip:
            continue
    return corpus_of(listed, path, FORMAT, repairs)
