"""Read Steadyflow's own Parquet format: one row per request, with every field of a `Corpus`.

Columns: `conversation`, `start_s` [s, null: no shared clock], `block_tokens` [tokens]; `stream` (number),
`stream_name`, `relation`, `tool_tokens`, `system_tokens` [tokens]; `ordinal`, `t_s`, `think_s`, `service_s` [s, null:
missing], `prompt_tokens`, `output_tokens` [tokens], `stop`, `starter`, `model` (names); `run_first`, `run_blocks`
(lists: block runs), `wait_stream`, `wait_ordinal` (lists: requests that must end first). The file's metadata holds the
corpus's name, format, scope, and the repairs that its first reading counted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from scenarios.errors import UserError
from scenarios.workloads.corpus import STARTERS, STOPS, Conversation, Corpus, StreamBuilder
from scenarios.workloads.readers import rows
from scenarios.workloads.readers.rows import ReadOptions, Sample
from scenarios.workloads.repairs import Entry, Repairs

FORMAT = "parquet"
META = b"steadyflow"
SCHEMA = pa.schema(
    [
        ("conversation", pa.string()),
        ("start_s", pa.float64()),
        ("block_tokens", pa.int64()),
        ("stream", pa.int32()),
        ("stream_name", pa.string()),
        ("relation", pa.string()),
        ("tool_tokens", pa.int64()),
        ("system_tokens", pa.int64()),
        ("ordinal", pa.int32()),
        ("t_s", pa.float64()),
        ("think_s", pa.float64()),
        ("service_s", pa.float64()),
        ("prompt_tokens", pa.int64()),
        ("output_tokens", pa.int64()),
        ("stop", pa.string()),
        ("starter", pa.string()),
        ("model", pa.string()),
        ("run_first", pa.list_(pa.int64())),
        ("run_blocks", pa.list_(pa.int64())),
        ("wait_stream", pa.list_(pa.int32())),
        ("wait_ordinal", pa.list_(pa.int32())),
    ]
)


def mismatch(sample: Sample) -> str:
    """Return why this is not a Steadyflow Parquet file, '' when it is."""
    if sample.header != ("parquet",):
        return "it does not begin with the Parquet magic bytes"
    try:
        metadata = pq.read_schema(sample.path).metadata or {}
    except (pa.ArrowException, ValueError, OSError) as error:
        raise _damaged(sample.path, error) from None
    return "" if META in metadata else "its metadata is not Steadyflow's"


def _damaged(path: Path, error: Exception) -> UserError:
    """Return the error of a file that begins as Parquet and cannot be read to its end."""
    what = str(error).strip().partition("\n")[0].rstrip(".")
    return UserError(f"{path}: the Parquet file is truncated or damaged ({what})")


def read(path: Path, options: ReadOptions) -> Corpus:
    """Read the corpus back, with the repairs of its first reading."""
    try:
        table = pq.read_table(path)
        meta = orjson.loads(table.schema.metadata[META])
        columns: dict[str, list[Any]] = {name: table.column(name).to_pylist() for name in SCHEMA.names}
    except KeyError as error:
        raise UserError(f"{path}: not a Parquet file of Steadyflow ({error})") from None
    except (pa.ArrowException, ValueError, OSError) as error:
        raise _damaged(path, error) from None
    repairs = Repairs(options.on_error)
    for entry in meta["repairs"]:
        repairs.entries[entry["kind"]] = Entry(**entry)
    grouped: dict[str, list[int]] = {}
    for k, name in enumerate(columns["conversation"]):
        grouped.setdefault(name, []).append(k)
    conversations: list[Conversation] = []
    for name, listed in grouped.items():
        try:
            conversations.append(_conversation(name, listed, columns))
        except (ValueError, IndexError, TypeError) as error:
            problem = ValueError(f"conversation {name!r} holds an invalid value: {error}")
            raise _damaged(path, problem) from None
    corpus = Corpus(
        name=meta["name"], format=meta["format"], conversations=conversations, scope=meta["scope"], repairs=repairs
    )
    corpus.source_sha256 = meta["source_sha256"]
    return rows.require_requests(corpus, path)


def _conversation(name: str, listed: list[int], columns: dict[str, list[Any]]) -> Conversation:
    models: dict[str, int] = {}
    builders: list[StreamBuilder] = []
    for k in listed:
        if columns["stream"][k] == len(builders):
            builder = StreamBuilder(columns["stream_name"][k], columns["relation"][k])
            builder.tool_tokens, builder.system_tokens = columns["tool_tokens"][k], columns["system_tokens"][k]
            builders.append(builder)
        builder = builders[columns["stream"][k]]
        waits = tuple(zip(columns["wait_stream"][k], columns["wait_ordinal"][k]))
        if waits:
            builder.waits[len(builder)] = waits
        builder.add(
            t_s=columns["t_s"][k],
            think_s=columns["think_s"][k],
            service_s=columns["service_s"][k],
            prompt_tokens=columns["prompt_tokens"][k],
            output_tokens=columns["output_tokens"][k],
            stop=STOPS.index(columns["stop"][k]),
            starter=STARTERS.index(columns["starter"][k]),
            model=models.setdefault(columns["model"][k], len(models)),
            runs=list(zip(columns["run_first"][k], columns["run_blocks"][k])),
        )
    first = listed[0]
    return Conversation(
        name=name,
        block_tokens=columns["block_tokens"][first],
        streams=tuple(builder.build() for builder in builders),
        models=tuple(models),
        start_s=columns["start_s"][first],
    )
