"""Read results of vLLM's and SGLang's serving benchmarks, saved in detail: what was sent and when.

One JSON object with lists of equal length: `input_lens`, `output_lens` [tokens], and, optional, `start_times` [s],
`ttfts` [s], `itls` [lists of s], `errors` [texts]. A request with an error or without output has failed. Without start
times there is no clock. Source: vLLM, `vllm bench serve --save-result --save-detailed`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scenarios.workloads.corpus import Corpus
from scenarios.workloads.readers import fields, rows
from scenarios.workloads.readers.plain_rows import PlainRow, corpus_of
from scenarios.workloads.readers.rows import ReadOptions, Sample
from scenarios.workloads.repairs import Repairs, Skip

FORMAT = "vllm-bench"
LISTS = ("input_lens", "output_lens", "start_times", "ttfts", "itls", "errors")


def mismatch(sample: Sample) -> str:
    """Return why this is not a detailed result, '' when it is."""
    reason = rows.missing_keys(sample.first, "input_lens", "output_lens")
    return reason or ("" if isinstance(sample.first["input_lens"], list) else "its `input_lens` is not a list")


def read(path: Path, options: ReadOptions) -> Corpus:
    """Read the requests."""
    repairs = Repairs(options.on_error)
    listed: list[PlainRow] = []
    for at, result in rows.json_rows(path, repairs):
        lists = {key: value for key in LISTS if isinstance(value := result.get(key), list) and value}
        lengths = {key: len(value) for key, value in lists.items()}
        if len(set(lengths.values())) > 1:
            problem = ", ".join(f"{key} {length}" for key, length in lengths.items())
            raise rows.not_skipped(
                repairs.rejection("lists of different lengths", at, f"{problem}; equal were expected")
            )
        for k in range(lengths.get("input_lens", 0)):
            try:
                row = {key: value[k] for key, value in lists.items()}
                listed.append(_request(row, f"{at}: [{k}]", repairs))
            except Skip:
                continue
    starts = [row.t_s for row in listed if row.t_s is not None]
    for record in listed:
        record.t_s = None if record.t_s is None else record.t_s - min(starts)
    return corpus_of(listed, path, FORMAT, repairs)


def _request(row: dict[str, Any], at: str, repairs: Repairs) -> PlainRow:
    if row.get("errors") or row.get("output_lens") == 0:
        repairs.repair("failed request", at, "it has an error or no output", "left out: it was never served")
        raise Skip
    between = [t for t in row.get("itls") or () if isinstance(t, int | float)]
    ttft_s = fields.wait(row, "ttfts", at, repairs)
    return PlainRow(
        at=at,
        prompt_tokens=fields.integer(row, "input_lens", at, repairs, 1),
        output_tokens=fields.output(row, "output_lens", at, repairs),
        t_s=fields.seconds(row, "start_times", at, repairs),
        service_s=None if ttft_s is None else ttft_s + sum(between),
    )
