"""Write a corpus in another format: Parquet (lossless), Weka JSON or JSONL, Mooncake JSONL.

Content that a format cannot hold is counted and returned, so that no loss is silent. Mooncake has one line a request
and one clock: conversations without a shared clock keep their turns' order by `session_id` and `delay` [ms after the
turn before].
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from scenarios.errors import UserError
from scenarios.workloads.blocks import ids_of
from scenarios.workloads.corpus import STARTERS, STOPS, Conversation, Corpus, Stream
from scenarios.workloads.readers.parquet import META, SCHEMA
from scenarios.workloads.repairs import Repairs
from scenarios.writing import atomic_write, disk_errors

FORMS = ("parquet", "weka", "mooncake")


def convert(corpus: Corpus, path: Path, form: str) -> Repairs:
    """Write the corpus to `path` and return the counts of content that the format cannot hold.

    Parameters
    ----------
    corpus : Corpus
    path : Path
        The file; a name that ends in .gz or .zst is compressed. For Weka, a name that is neither JSON nor compressed
        becomes a directory with one file per conversation.
    form : {"parquet", "weka", "mooncake"}

    Raises
    ------
    UserError
        The format is unknown, or cannot hold this corpus at all.
    """
    losses = Repairs("repair")
    if form == "parquet":
        to_parquet(corpus, path)
    elif form == "weka":
        _write(path, to_weka(corpus, losses), lambda row: f"{row['id']}.json")
    elif form == "mooncake":
        _write(path, to_mooncake(corpus, losses), None)
    else:
        raise UserError(f"form {form!r} is not known; known: {', '.join(FORMS)}")
    return losses


def _write(path: Path, rows: Iterator[dict[str, Any]], name: Callable[[dict[str, Any]], str] | None) -> None:
    packed = path.name.endswith((".gz", ".zst"))
    if name is not None and not packed and path.suffix not in (".json", ".jsonl"):
        with disk_errors(path):
            path.mkdir(parents=True, exist_ok=True)
        for row in rows:
            with atomic_write(path / name(row).replace("/", "_")) as part:
                part.write_bytes(orjson.dumps(row))
        return
    with atomic_write(path) as part, part.open("wb") as file:
        if path.suffix == ".gz":
            # No time stamp and no name in the header: equal rows give equal bytes.
            with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as pack:
                pack.writelines(orjson.dumps(row) + b"\n" for row in rows)
        elif path.suffix == ".zst":
            with zstandard.ZstdCompressor().stream_writer(file) as pack:
                for row in rows:
                    pack.write(orjson.dumps(row) + b"\n")
        else:
            file.writelines(orjson.dumps(row) + b"\n" for row in rows)


def to_parquet(corpus: Corpus, path: Path) -> None:
    """Write every field of the corpus, one row per request, with its name, scope and repairs as metadata."""
    columns: dict[str, list[Any]] = {name: [] for name in SCHEMA.names}
    for conversation in corpus.conversations:
        for s, stream in enumerate(conversation.streams):
            _stream_columns(columns, conversation, s, stream)
    meta = {
        "name": corpus.name,
        "format": corpus.format,
        "scope": corpus.scope,
        "source_sha256": corpus.source_sha256,
        "repairs": corpus.repairs.rows(),
    }
    table = pa.table(columns, schema=SCHEMA).replace_schema_metadata({META: orjson.dumps(meta)})
    with atomic_write(path) as part:
        pq.write_table(table, part, compression="zstd")


def _stream_columns(columns: dict[str, list[Any]], conversation: Conversation, s: int, stream: Stream) -> None:
    n = len(stream)
    runs = stream.all_runs()
    waits = [stream.waits.get(k, ()) for k in range(n)]
    rows: dict[str, list[Any]] = {
        "conversation": [conversation.name] * n,
        "start_s": [conversation.start_s] * n,
        "block_tokens": [conversation.block_tokens] * n,
        "stream": [s] * n,
        "stream_name": [stream.name] * n,
        "relation": [stream.relation] * n,
        "tool_tokens": [stream.tool_tokens] * n,
        "system_tokens": [stream.system_tokens] * n,
        "ordinal": list(range(n)),
        "t_s": stream.t_s.tolist(),
        "think_s": [None if v != v else v for v in stream.think_s.tolist()],
        "service_s": [None if v != v else v for v in stream.service_s.tolist()],
        "prompt_tokens": stream.prompt_tokens.tolist(),
        "output_tokens": stream.output_tokens.tolist(),
        "stop": [STOPS[code] for code in stream.stop.tolist()],
        "starter": [STARTERS[code] for code in stream.starter.tolist()],
        "model": [conversation.models[code] for code in stream.model.tolist()],
        "run_first": [[first for first, _ in chain] for chain in runs],
        "run_blocks": [[blocks for _, blocks in chain] for chain in runs],
        "wait_stream": [[w for w, _ in wait] for wait in waits],
        "wait_ordinal": [[k for _, k in wait] for wait in waits],
    }
    for name, values in rows.items():
        columns[name].extend(values)


def to_weka(corpus: Corpus, losses: Repairs) -> Iterator[dict[str, Any]]:
    """Yield one object per conversation; sub-agents' inner times are relative to their spawn.

    Raises
    ------
    UserError
        The rows are independent: the format has conversations only.
    """
    for conversation in corpus.conversations:
        root = conversation.streams[0]
        if root.relation == "independent":
            raise UserError(f"{corpus.name}: independent rows are not conversations; convert them to mooncake")
        if conversation.start_s is not None:
            losses.note("shared clock", conversation.name, "the format gives each conversation its own")
        rows = _weka_rows(conversation, root, 0.0)
        entries: list[tuple[int, dict[str, Any]]] = []
        for number, stream in enumerate(conversation.streams[1:], 1):
            entries.append(_weka_agent(conversation, stream, number, losses))
        for after, entry in reversed(entries):
            rows.insert(after + 1, entry)
        yield {
            "id": conversation.name,
            "models": list(conversation.models),
            "block_size": conversation.block_tokens,
            "hash_id_scope": "global" if corpus.scope == "global" else "local",
            "tool_tokens": root.tool_tokens,
            "system_tokens": root.system_tokens,
            "requests": rows,
        }


def _weka_rows(conversation: Conversation, stream: Stream, base_s: float) -> list[dict[str, Any]]:
    out = []
    think, service = stream.think_s.tolist(), stream.service_s.tolist()
    for k, chain in enumerate(stream.all_runs()):
        row: dict[str, Any] = {
            "t": round(float(stream.t_s[k]) - base_s, 9),
            "type": "n",
            "model": conversation.models[int(stream.model[k])],
            "in": int(stream.prompt_tokens[k]),
            "out": int(stream.output_tokens[k]),
            "hash_ids": ids_of(chain),
            "stop": STOPS[int(stream.stop[k])],
        }
        if stream.starter[k]:
            row["input_types"] = ["tool_result" if stream.starter[k] == STARTERS.index("tool") else "text"]
        if think[k] == think[k]:
            row["think_time"] = think[k]
        if service[k] == service[k]:
            row["api_time"] = service[k]
        out.append(row)
    return out


def _weka_agent(conversation: Conversation, stream: Stream, number: int, losses: Repairs) -> tuple[int, dict[str, Any]]:
    """Return (root request after which it is inserted, entry) of one sub-agent."""
    spawner = stream.waits.get(0, ((0, -1),))[0]
    if spawner[0] != 0:
        losses.note("nested sub-agent", conversation.name, "attached to the root: the format has one level")
        spawner = (0, -1)
    spawn_s = float(stream.t_s[0])
    return spawner[1], {
        "t": spawn_s,
        "type": "subagent",
        "agent_id": stream.name or f"agent_{number:03d}",
        "status": "async_launched" if stream.relation == "background" else "completed",
        "tool_tokens": stream.tool_tokens,
        "system_tokens": stream.system_tokens,
        "requests": _weka_rows(conversation, stream, spawn_s),
    }


def to_mooncake(corpus: Corpus, losses: Repairs) -> Iterator[dict[str, Any]]:
    """Yield one row per request: stamped rows in order of time, or sessions whose turns follow by delay.

    Local ids are offset per conversation, as the format has one scope. Sub-agents become separate sessions that start
    by the clock: the format has no joins.
    """
    offset = 0
    rows: list[tuple[float, int, dict[str, Any]]] = []
    for c, conversation in enumerate(corpus.conversations):
        if conversation.start_s is None:
            losses.note("no shared clock", conversation.name, "every conversation starts at 0")
        if conversation.block_tokens != 512:
            losses.note(f"blocks of {conversation.block_tokens}", conversation.name, "the format's blocks have 512")
        for s, stream in enumerate(conversation.streams):
            if stream.waits:
                losses.note("waits between streams", conversation.name, "sub-agents start by the clock")
            rows.extend(_mooncake_rows(conversation, c, s, stream, offset))
        if corpus.scope == "local":
            highest = [int((s.run_first + s.run_blocks).max()) for s in conversation.streams if len(s.run_first)]
            offset += max(highest, default=0)
    rows.sort(key=lambda row: row[:2])
    for _, _, row in rows:
        yield row


def _mooncake_rows(
    conversation: Conversation, c: int, s: int, stream: Stream, offset: int
) -> Iterator[tuple[float, int, dict[str, Any]]]:
    alone = stream.relation == "independent"
    start_s = conversation.start_s or 0.0
    gaps = [0.0, *(stream.t_s[1:] - stream.ends_s()[:-1]).clip(min=0.0).tolist()]
    for k, chain in enumerate(stream.all_runs()):
        t_s = start_s + float(stream.t_s[k])
        row: dict[str, Any] = {}
        if alone or k == 0:
            row["timestamp"] = round(t_s * 1e3, 6)
        if not alone:
            row["session_id"] = conversation.name if s == 0 else f"{conversation.name}/{stream.name or s}"
            if k:
                row["delay"] = round(gaps[k] * 1e3, 6)
        row["input_length"] = int(stream.prompt_tokens[k])
        row["output_length"] = int(stream.output_tokens[k])
        row["hash_ids"] = [i + offset for i in ids_of(chain)]
        yield t_s, c, row
