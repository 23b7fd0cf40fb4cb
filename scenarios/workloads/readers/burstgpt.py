"""Read BurstGPT traces: CSV, one request per line.

`Timestamp` [s from the start], `Model`, `Request tokens`, `Response tokens` (0: the request failed), `Total tokens`,
`Log Type`, and in later releases `Session ID` and `Elapsed time` [s, the whole response]. Rows of one session make a
conversation; rows without one are independent. No block ids. The first hours run at a hundredth of the later rate: see
the note that `trace inspect` prints. Source: github.com/HPMLL/BurstGPT (CC-BY 4.0).
"""

from __future__ import annotations

from pathlib import Path

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
            t_s = rows.number(row, "Timestamp", at, repairs)
            lengths = {key: rows.number(row, key, at, repairs) for key in ("Request tokens", "Response tokens")}
            if lengths["Response tokens"] == 0:
                problem = "0 response tokens mark a request that failed"
                repairs.repair("failed request", f"{at}: Response tokens", problem, "left out: it was never served")
                continue
            session = row.get("Session ID", "")
            start_s, stream = (0.0, ungrouped) if session == "" else sessions.setdefault(session, _new(t_s))
            served = row.get("Elapsed time", "")
            stream.add(
                prompt_tokens=fields.integer(lengths, "Request tokens", at, repairs, 1),
                output_tokens=fields.output(lengths, "Response tokens", at, repairs),
                t_s=rows.check_order(stream, t_s - start_s, at, repairs),
                service_s=rows.number(row, "Elapsed time", at, repairs) if served else None,
            )
        except Skip:
            continue
    repairs.note("no prefix information", f"{path}", "a cache policy cannot be judged on this trace")
    if not sessions:
        return rows.independent_rows(path, FORMAT, ungrouped, repairs)
    conversations = [
        Conversation(name=name, block_tokens=64, streams=(stream.build(),), start_s=start_s)
        for name, (start_s, stream) in sessions.items()
    ]
    if len(ungrouped):
        conversations.append(
            Conversation(name="without a session", block_tokens=64, streams=(ungrouped.build(),), start_s=0.0)
        )
    return rows.with_digest(
        Corpus(name=path.name, format=FORMAT, conversations=conversations, scope="none", repairs=repairs), path
    )


def _new(start_s: float) -> tuple[float, StreamBuilder]:
    return start_s, StreamBuilder("", "root")
