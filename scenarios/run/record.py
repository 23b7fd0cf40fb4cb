"""A run's folder: written beside its place and renamed when whole; `load` reads it back as `RunData`.

| file | holds |
|---|---|
| `scenario.toml` | the scenario as resolved, every value stated |
| `manifest.json` | candidate, title, question, and what the run says of itself (seed, versions, trace, why it ended) |
| `turns.parquet` | one row for a turn that arrived (`TURN_SCHEMA`) |
| `signals.parquet` | one row a bin: `t_s` and float columns |
| `events.jsonl.zst` | one decision a line |
| `verdict.json` | `{"summary": ..., "verdict": {signal: ...}}` |
| `curves.parquet` | the autocorrelation and the spectrum each verdict was drawn from |

Turns, signals and events may be appended in blocks while the run goes on, so memory stays flat. The same input gives
the same bytes.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import orjson
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from scenarios.errors import UserError
from scenarios.run.judged import Verdict
from scenarios.writing import disk_errors

_WORD = pa.dictionary(pa.int16(), pa.string())
TURN_SCHEMA = pa.schema(
    [
        ("turn_id", pa.int64()),
        ("key", pa.uint64()),
        ("session_id", pa.int64()),
        ("ordinal", pa.int32()),
        ("class", _WORD),
        ("arrived_s", pa.float64()),
        ("released_s", pa.float64()),
        ("fill_started_s", pa.float64()),
        ("filled_s", pa.float64()),
        ("joined_s", pa.float64()),
        ("ended_s", pa.float64()),
        ("prompt_tokens", pa.int64()),
        ("cached_tokens", pa.int64()),
        ("output_tokens", pa.int64()),
        ("fill_worker", pa.int32()),
        ("decode_worker", pa.int32()),
        ("preemptions", pa.int16()),
        ("outcome", _WORD),
    ]
)
CURVE_SCHEMA = pa.schema([("signal", _WORD), ("curve", _WORD), ("x", pa.float64()), ("y", pa.float64())])
JSON_OPTIONS = orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY


@dataclass(frozen=True, kw_only=True)
class RunData:
    """One candidate's run in memory.

    Parameters
    ----------
    candidate, title, question
        Names from the scenario file.
    signals, turns
        Tables as in the run's folder; `turns` has no rows for a fluid plant.
    events
        Decisions in the order they were taken.
    verdicts
        By signal name.
    summary
        The object that `run --json` prints: flow, latency, goodput, counts, window_s ... and, where theory has an
        answer, `theory` ({"verdict", "period_s", "decode_utilization_ratio", "loss_ratio"}).
    meta
        The rest of the manifest: seed, versions, trace, `ended` (why the run ended).
    """

    candidate: str
    title: str
    question: str
    signals: pd.DataFrame
    turns: pd.DataFrame
    events: list[dict[str, Any]]
    verdicts: Mapping[str, Verdict]
    summary: Mapping[str, Any]
    meta: Mapping[str, Any] = field(default_factory=dict)
    scenario_toml: str = ""

    @property
    def window_s(self) -> tuple[float, float]:
        """The judged part of the run: from the end of the warm-up to the horizon, in seconds."""
        first, last = self.summary["window_s"]
        return float(first), float(last)


class RunFolder:
    """A run's folder in the making; leaving the `with` block by an error leaves nothing behind.

    Raises
    ------
    UserError
        The folder exists.
    """

    def __init__(self, path: Path) -> None:
        if path.exists():
            raise UserError(f"{path}: the folder exists; a run never overwrites another: name a new one with --out")
        self.path = path
        self._tables: dict[str, Any] = {}
        with disk_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._part = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        self._raw = (self._part / "events.jsonl.zst").open("wb")
        self._events = zstandard.ZstdCompressor(level=6).stream_writer(self._raw)
        self._whole = False

    def __enter__(self) -> RunFolder:
        return self

    def append_turns(self, columns: Mapping[str, object] | pd.DataFrame) -> None:
        """Add rows of `TURN_SCHEMA`; NaN in a time is stored as null."""
        given = {name: columns[name] for name in TURN_SCHEMA.names}
        self._append("turns.parquet", _table(given, TURN_SCHEMA))

    def append_signals(self, columns: Mapping[str, object] | pd.DataFrame) -> None:
        """Add bins: `t_s` (start of the bin) and any float columns; every block has the same columns."""
        named = {str(name): values for name, values in columns.items()}
        schema = pa.schema([(name, pa.float64()) for name in named])
        self._append("signals.parquet", _table(named, schema))

    def append_events(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Add decisions, one line each."""
        with disk_errors(self.path):
            for event in events:
                self._events.write(orjson.dumps(event, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE))

    def read_back(self, candidate: str, title: str, question: str) -> RunData:
        """Close the tables and return what they hold, not yet judged."""
        if "turns.parquet" not in self._tables:
            self._append("turns.parquet", TURN_SCHEMA.empty_table())
        with disk_errors(self.path):
            for writer in self._tables.values():
                writer.close()
        self._tables = {name: _Closed() for name in self._tables}
        return RunData(
            candidate=candidate,
            title=title,
            question=question,
            signals=pq.read_table(self._part / "signals.parquet").to_pandas(),
            turns=pq.read_table(self._part / "turns.parquet").to_pandas(),
            events=[],
            verdicts={},
            summary={},
        )

    def finish(
        self,
        *,
        candidate: str,
        title: str,
        question: str,
        meta: Mapping[str, Any],
        summary: Mapping[str, Any],
        verdicts: Mapping[str, Verdict],
        scenario_toml: str,
    ) -> None:
        """Write the small files and give the folder its name."""
        if "turns.parquet" not in self._tables:
            self._append("turns.parquet", TURN_SCHEMA.empty_table())
        self._append("curves.parquet", _curves(verdicts))
        manifest = {"candidate": candidate, "title": title, "question": question, **meta}
        judged = {name: verdict.to_json() for name, verdict in verdicts.items()}
        small = {
            "manifest.json": orjson.dumps(manifest, option=JSON_OPTIONS),
            "verdict.json": orjson.dumps({"summary": summary, "verdict": judged}, option=JSON_OPTIONS),
            "scenario.toml": scenario_toml.encode(),
        }
        with disk_errors(self.path):
            self._close()
            for name, content in small.items():
                (self._part / name).write_bytes(content)
            self._part.chmod(0o755)
            self._part.rename(self.path)
        self._whole = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._whole:
            return
        with suppress(OSError, pa.ArrowException):  # what could not be written cannot be closed either
            self._close()
        shutil.rmtree(self._part, ignore_errors=True)

    def _append(self, name: str, table: Any) -> None:  # pyarrow publishes no types
        with disk_errors(self.path):
            if name not in self._tables:
                self._tables[name] = pq.ParquetWriter(self._part / name, table.schema, compression="zstd")
            self._tables[name].write_table(table)

    def _close(self) -> None:
        for writer in self._tables.values():
            writer.close()
        if not self._raw.closed:
            self._events.close()  # type: ignore[no-untyped-call]  # zstandard publishes no types here


class _Closed:
    """A table that has been written to its end."""

    def close(self) -> None:
        """It is closed."""


def _table(columns: Mapping[str, object], schema: Any) -> Any:  # pyarrow publishes no types
    arrays = [pa.array(columns[f.name], type=f.type, from_pandas=True) for f in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def _curves(verdicts: Mapping[str, Verdict]) -> Any:  # pyarrow publishes no types
    parts: list[pd.DataFrame] = []
    for signal, v in verdicts.items():
        for curve, x, y in (("acf", v.acf_lags_s, v.acf), ("spectrum", v.spectrum_hz, v.spectrum)):
            parts.append(pd.DataFrame({"signal": signal, "curve": curve, "x": np.asarray(x), "y": np.asarray(y)}))
    if not parts:
        return CURVE_SCHEMA.empty_table()
    whole = pd.concat(parts, ignore_index=True)
    return _table({name: whole[name].to_numpy() for name in CURVE_SCHEMA.names}, CURVE_SCHEMA)


def write(path: Path, data: RunData) -> None:
    """Write a whole run at once.

    Raises
    ------
    UserError
        The folder exists.
    """
    with RunFolder(path) as folder:
        if len(data.turns):
            folder.append_turns(data.turns)
        folder.append_signals(data.signals)
        folder.append_events(data.events)
        folder.finish(
            candidate=data.candidate,
            title=data.title,
            question=data.question,
            meta=data.meta,
            summary=data.summary,
            verdicts=data.verdicts,
            scenario_toml=data.scenario_toml,
        )
