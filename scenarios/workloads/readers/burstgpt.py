"""Read BurstGPT traces: CSV, one request per line.

`Timestamp` [s from the start], `Model`, `Request tokens`, `Response tokens` (0: the request failed), `Total tokens`,
`Log Type`, and in later releases `Session ID` and `Elapsed time` [s, the whole response]. Rows of one session make a
conversation; rows without one are independent. No block ids. The first hours run at a hundredth of the later rate: see
the note that `trace inspect` prints. Source: github.com/HPMLL/BurstGPT (CC-BY 4.0).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from scenarios.workloads.corpus import Conversation, Corpus, StreamBuilder
from scenarios.workloads.readers import fields, rows
from scenarios.workloads.readers.rows import ReadOptions, Sample
from scenarios.workloads.repairs import Repairs, Skip

FORMAT = "burstgpt"


def mismatch(sample: Sample) -> str:
    """Return why this is not a BurstGPT trace, '' when it is."""
    return rows.missing_columns(sample.header, "Timestamp", "Request tokens", "Response tokens")


def read(path: Path, options: ReadOptions) -> Corpus:
    """Read the requests; a failed one (no response tokens) is a defect and is left out under `repair`."""
    repairs = Repairs(options.on_error)
    ungrouped = StreamBuilder("", "independent")
    sessions: dict[str, tuple[float, StreamBuilder]] = {}
    for at, row in rows.csv_rows(path, repairs):
        try:
            cells = {key: rows.number(row, key, at, repairs) for key in ("Timestamp",)}
            t_s = fields.seconds(cells, "Timestamp", at, repairs, options.unit_s(1.0)) or 0.0
            lengths = {key: rows.number(row, key, at, repairs) for key in ("Request tokens", "Response tokens")}
            if lengths["Response tokens"] == 0:
                problem = "0 response tokens mark a request that failed"
                repairs.repair("failed request", f"{at}: Response tokens", problem, "left out: it was never served")
                continue
            session = fields.name(row, "Session ID")
            start_s, stream = (0.0, ungrouped) if session is None else sessions.setdefault(session, _new(t_s))
            elapsed = {"Elapsed time": rows.number(row, "Elapsed time", at, repairs)} if row.get("Elapsed time") else {}
            stream.add(
                prompt_tokens=fields.integer(lengths, "Request tokens", at, repairs, 1),
                output_tokens=fields.output(lengths, "Response tokens", at, repairs),
                t_s=rows.check_order(stream, t_s - start_s, at, repairs),
                service_s=fields.wait(elapsed, "Elapsed time", at, repairs, options.unit_s(1.0)),
            )
        except Skip:
            continue
    repairs.note("no prefix information", f"{path}", "a cache policy cannot be judged on this trace")
    if not sessions:
        return rows.independent_rows(path, FORMAT, ungrouped, repairs)
    conversations = [
        _conversation(name, start_s, stream) for name, (start_s, stream) in sessions.items() if len(stream)
    ]
    if len(ungrouped):
        conversations.append(
            Conversation(name="without a session", block_tokens=64, streams=(ungrouped.build(),), start_s=0.0)
        )
    return rows.with_digest(
        Corpus(name=path.name, format=FORMAT, conversations=conversations, scope="none", repairs=repairs), path
    )


def _conversation(name: str, start_s: float, builder: StreamBuilder) -> Conversation:
    """Return a session with its rows by time stamp."""
    stream = builder.build()
    stream = stream.take(np.argsort(stream.t_s, kind="stable"))
    first_s = float(stream.t_s[0])
    stream = replace(stream, t_s=stream.t_s - first_s)
    return Conversation(name=name, block_tokens=64, streams=(stream,), start_s=start_s + first_s)


def _new(start_s: float) -> tuple[float, StreamBuilder]:
    return start_s, StreamBuilder("", "root")
