"""Read Qwen-Bailian traces: JSONL, one request per line.

`chat_id`, `parent_chat_id` (-1: a root), `timestamp` [SECONDS from the start], `input_length` and `output_length`
[tokens], `type`, `turn`, `hash_ids` (16 tokens each, the same ids in the whole file). The parent links define the
sessions; parents may be missing from the file, and several requests may share one. No service times and no think
times: a gap is the recorded interval minus an assumed service time.
Source: github.com/alibaba-edu/qwen-bailian-usagetraces-anon.
"""

from __future__ import annotations

from pathlib import Path

from scenarios.workloads.corpus import Corpus
from scenarios.workloads.readers import fields, graph, rows
from scenarios.workloads.readers.block_ids import BlockIds
from scenarios.workloads.readers.graph import Request
from scenarios.workloads.readers.rows import ReadOptions, Sample
from scenarios.workloads.repairs import Repairs, Skip

FORMAT = "bailian"
BLOCK_TOKENS = 16


def mismatch(sample: Sample) -> str:
    """Return why this is not a Bailian trace, '' when it is."""
    return rows.missing_keys(sample.first, "chat_id", "parent_chat_id", "input_length")


def read(path: Path, options: ReadOptions) -> Corpus:
    """Read the requests and join them by their parents."""
    repairs = Repairs(options.on_error)
    block_tokens = options.block_tokens or BLOCK_TOKENS
    ids = BlockIds(repairs, block_tokens)
    requests: list[Request] = []
    last_s = float("-inf")
    for at, row in rows.json_rows(path, repairs):
        try:
            t_s = fields.seconds(row, "timestamp", at, repairs, options.unit_s(1.0))
            if t_s is None:
                raise repairs.rejection("timestamp missing", f"{at}: timestamp", "missing; seconds were expected")
            if t_s < last_s:
                rows.out_of_order(t_s, last_s, at, repairs)
            last_s = max(last_s, t_s)
            prompt_tokens = fields.integer(row, "input_length", at, repairs, 1)
            name, parent = fields.name(row, "chat_id"), fields.name(row, "parent_chat_id") or "-1"
            if name is None:
                raise repairs.rejection("chat_id missing", f"{at}: chat_id", "missing; an id was expected")
            requests.append(
                Request(
                    name=name,
                    at=at,
                    session="",
                    prompt_tokens=prompt_tokens,
                    output_tokens=fields.output(row, "output_length", at, repairs),
                    runs=ids.runs(row, at, prompt_tokens),
                    after=[] if parent == "-1" else [parent],
                    t_s=t_s,
                )
            )
        except Skip:
            continue
    ids.check(path)
    repairs.note("no service and no think times", f"{path}", "gaps are intervals minus an assumed service time")
    conversations = graph.conversations(requests, repairs, block_tokens=block_tokens, shared_clock=True)
    return rows.with_digest(
        Corpus(name=path.name, format=FORMAT, conversations=conversations, scope="global", repairs=repairs), path
    )
