"""A run's folder: written beside its place and renamed when whole; `load` reads it back as `RunData`.

`FILES` names what it holds; docs/record.md, made from the tables, is the dictionary of every column and key.

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

from orchestrator.catalogue import TURN_COLUMNS
from scenarios.catalogue.verdict import SignalVerdict
from scenarios.errors import UserError
from scenarios.writing import disk_errors

_WORD = pa.dictionary(pa.int16(), pa.string())
_TYPES = {"q": pa.int64(), "Q": pa.uint64(), "i": pa.int32(), "h": pa.int16(), "d": pa.float64()}
TURN_SCHEMA = pa.schema([(column.name, _WORD if column.word else _TYPES[column.code]) for column in TURN_COLUMNS])
CURVE_SCHEMA = pa.schema([("signal", _WORD), ("curve", _WORD), ("x", pa.float64()), ("y", pa.float64())])
FILES = {
    "scenario.toml": "the scenario as resolved, every value stated",
    "manifest.json": "what was run: seed, versions, trace, why it ended",
    "turns.parquet": "one row for each turn that arrived",
    "signals.parquet": "one row for each bin of time",
    "events.jsonl.zst": "one decision a line",
    "verdict.json": "the summary, and the verdict on each judged signal",
    "curves.parquet": "the autocorrelation and the spectrum that each verdict was drawn from",
    "report.html": "the page that `steadyflow report` writes there, if it was asked for",
}
CURVES = (
    ("`signal`", "", "name of the judged signal", "never"),
    ("`curve`", "", "`acf` (autocorrelation) or `spectrum`", "never"),
    ("`x`", "s or Hz", "lag of the autocorrelation, or frequency of the spectrum", "never"),
    ("`y`", "", "correlation, or power", "never"),
)
_NO_TURNS = "the plant has no turns"
MANIFEST = (
    ("`candidate`", "", "name of the candidate", "never"),
    ("`title`", "", "title of the scenario", "never"),
    ("`question`", "", "question of the scenario", "the scenario asks none"),
    ("`seed`", "", "seed of the run", "never"),
    ("`ended`", "", "why the run ended", "never"),
    ("`end_s`", "s", "when the run ended", "never"),
    ("`trace`", "", "name, digest and figures of the trace", "the workload plays none"),
    ("`times`", "", "by configuration: digests of its files of measured times, the region, the fit", "it has none"),
    ("`notes.conservation`", "", "arrived = waiting + ... + failed, with its numbers", _NO_TURNS),
    ("`notes.control_ticks`", "", "ticks of all laws", _NO_TURNS),
    ("`notes.samples_dropped`", "", "samples of telemetry that were lost", _NO_TURNS),
    ("`notes.reconfigurations`", "", "as `reconfigurations` of the summary", _NO_TURNS),
    ("`notes.worker_seconds`", "s", "time that workers of each configuration existed", _NO_TURNS),
    ("`notes.workload`", "", "counts of the sessions played", "the workload plays no sessions"),
    ("`environment`", "", "versions of Python and of the packages that the run was made with", "never"),
)
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
    verdicts: Mapping[str, SignalVerdict]
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
        self._complete = False

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
        verdicts: Mapping[str, SignalVerdict],
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
        self._complete = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._complete:
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


def _curves(verdicts: Mapping[str, SignalVerdict]) -> Any:  # pyarrow publishes no types
    parts: list[pd.DataFrame] = []
    for signal, v in verdicts.items():
        for curve, x, y in (("acf", v.acf_lags_s, v.acf), ("spectrum", v.spectrum_hz, v.spectrum)):
            parts.append(pd.DataFrame({"signal": signal, "curve": curve, "x": np.asarray(x), "y": np.asarray(y)}))
    if not parts:
        return CURVE_SCHEMA.empty_table()
    curves = pd.concat(parts, ignore_index=True)
    return _table({name: curves[name].to_numpy() for name in CURVE_SCHEMA.names}, CURVE_SCHEMA)


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
