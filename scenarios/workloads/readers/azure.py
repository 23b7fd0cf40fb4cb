"""Read the Azure LLM inference traces of 2023 and 2024: CSV, one request per line, replayed by time stamp.

`TIMESTAMP` "YYYY-mm-dd HH:MM:SS.fffffff" (seven digits; the 2024 set adds an offset from UTC), `ContextTokens` [tokens
of the prompt], `GeneratedTokens` [tokens]. No block ids: nothing can be reused, so a cache policy cannot be judged on
these traces. Source: github.com/Azure/AzurePublicDataset (CC-BY 4.0).
"""

from __future__ import annotations

from pathlib import Path

from scenarios.workloads.corpus import Corpus, StreamBuilder
from scenarios.workloads.readers import fields, rows
from scenarios.workloads.readers.moments import Moments
from scenarios.workloads.readers.rows import ReadOptions, Sample
from scenarios.workloads.repairs import Repairs, Skip

FORMAT = "azure"


def mismatch(sample: Sample) -> str:
    """Return why this is not an Azure trace, '' when it is."""
    return rows.missing_columns(sample.header, "TIMESTAMP", "ContextTokens", "GeneratedTokens")


def read(path: Path, options: ReadOptions) -> Corpus:
    """Read the requests; times run from the first stamp."""
    repairs = Repairs(options.on_error)
    stream = StreamBuilder("", "independent")
    moments = Moments(repairs)
    origin: float | None = None
    for at, row in rows.csv_rows(path, repairs):
        try:
            at_s = moments.seconds(row.get("TIMESTAMP"), "TIMESTAMP", at)
            origin = at_s if origin is None else origin
            lengths = {key: rows.number(row, key, at, repairs) for key in ("ContextTokens", "GeneratedTokens")}
            stream.add(
                prompt_tokens=fields.integer(lengths, "ContextTokens", at, repairs, 1),
                output_tokens=fields.output(lengths, "GeneratedTokens", at, repairs),
                t_s=rows.check_order(stream, round(at_s - origin, 7), at, repairs),
            )
        except Skip:
            continue
    repairs.note("no prefix information", f"{path}", "a cache policy cannot be judged on this trace")
    return rows.independent_rows(path, FORMAT, stream, repairs)
