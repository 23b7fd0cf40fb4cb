"""The record of a server as it grows: a file of blocks that a killed process leaves readable.

`RUN.live/` holds `journal.bin` and `scenario.toml` while the server runs. A block is a head (kind, length, check sum)
and its bytes: an Arrow table of turns or of bins, or lines of JSON. A block that was not written whole is the last one
and is left out. The record in `RUN/` is made from the journal, at the end of a run as after a kill.
"""

from __future__ import annotations

import io
import shutil
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from struct import Struct
from typing import Any

import numpy as np
import orjson
import pandas as pd
import pyarrow as pa

from scenarios.errors import UserError
from scenarios.run import execute, record
from scenarios.run.record import RunData
from scenarios.run.sink import MemorySink
from scenarios.schema.load import load, to_toml
from scenarios.schema.scenario import Scenario
from scenarios.writing import disk_errors

HEAD = Struct("<4sQI")
TURNS, BINS, EVENTS, NOTE = b"TURN", b"BINS", b"EVTS", b"NOTE"


def live_folder(run: Path) -> Path:
    """Return where the journal of a run lies until the record is made."""
    return run.with_name(f"{run.name}.live")


class Journal:
    """A `Sink` that writes blocks; events are written with the next block.

    Raises
    ------
    UserError
        The run's folder, or a journal of it, exists.
    """

    def __init__(self, run: Path, scenario: Scenario, note: Mapping[str, Any]) -> None:
        folder = live_folder(run)
        if run.exists():
            raise UserError(f"{run}: the folder exists; a run never overwrites another: name a new one with --out")
        if folder.exists():
            raise UserError(f"{folder}: a journal is there; close it with: steadyflow recover {run}")
        self.run, self.folder = run, folder
        with disk_errors(run):
            folder.mkdir(parents=True)
            (folder / "scenario.toml").write_text(to_toml(scenario), encoding="utf-8")
            self._file = (folder / "journal.bin").open("wb")
        self._events = bytearray()
        self.note(note)

    def turns(self, columns: Mapping[str, object], classes: Sequence[str], outcomes: Sequence[str]) -> None:
        """Write a chunk of turns."""
        table = pa.table({name: np.asarray(values) for name, values in columns.items()})
        words = orjson.dumps({"classes": list(classes), "outcomes": list(outcomes)})
        self._write(TURNS, _arrow(table.replace_schema_metadata({b"words": words})))

    def signals(self, columns: Mapping[str, Sequence[float]]) -> None:
        """Write some bins."""
        self._write(BINS, _arrow(pa.table({name: np.asarray(values, dtype=float) for name, values in columns.items()})))

    def event(self, event: Mapping[str, object]) -> None:
        """Keep one decision until the next block."""
        self._events += orjson.dumps(event, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE)

    def note(self, note: Mapping[str, Any]) -> None:
        """Write something of the run itself: who runs at its start, why it ended at its end."""
        self._write(NOTE, orjson.dumps(note, option=orjson.OPT_SERIALIZE_NUMPY))

    def flush(self) -> None:
        """Hand every byte to the operating system."""
        if self._events:
            events, self._events = bytes(self._events), bytearray()
            self._write(EVENTS, events)
        with disk_errors(self.run):
            self._file.flush()

    def close(self) -> None:
        """Write what is left."""
        self.flush()
        self._file.close()

    def _write(self, kind: bytes, content: bytes) -> None:
        with disk_errors(self.run):
            self._file.write(HEAD.pack(kind, len(content), zlib.crc32(content)))
            self._file.write(content)


def _arrow(table: Any) -> bytes:  # pyarrow publishes no types
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


def blocks(path: Path) -> Iterator[tuple[bytes, bytes]]:
    """Yield the whole blocks of a journal, and b"" with the bytes of a torn one at its end."""
    with path.open("rb") as file:
        while head := file.read(HEAD.size):
            if len(head) < HEAD.size:
                yield b"", head
                return
            kind, length, check = HEAD.unpack(head)
            content = file.read(length)
            if len(content) < length or zlib.crc32(content) != check:
                yield b"", head + content
                return
            yield kind, content


def close_record(run: Path) -> tuple[RunData, list[str]]:
    """Make the record of a run from its journal, and remove the journal; return it, and what is missing.

    Raises
    ------
    UserError
        There is no journal, or nothing was written to it.
    """
    folder = live_folder(run)
    path = folder / "journal.bin"
    if not path.is_file():
        raise UserError(f"{folder}: no journal of a server is there; name the run that `steadyflow serve` was writing")
    scenario = load(folder / "scenario.toml")
    memory, bins, notes, missing = MemorySink(), [], {}, []
    for kind, content in blocks(path):
        if kind == TURNS:
            table = pa.ipc.open_stream(content).read_all()
            words = orjson.loads(table.schema.metadata[b"words"])
            columns = {name: table[name].to_numpy() for name in table.column_names}
            memory.turns(columns, words["classes"], words["outcomes"])
        elif kind == BINS:
            bins.append(pa.ipc.open_stream(content).read_all().to_pandas())
        elif kind == EVENTS:
            for line in content.splitlines():
                memory.event(orjson.loads(line))
        elif kind == NOTE:
            notes.update(orjson.loads(content))
        else:
            missing.append(f"a last block of {len(content)} bytes was not written whole")
    if not bins:
        raise UserError(f"{path}: holds no bin of signals: the server ended before it had written anything")
    signals = pd.concat(bins, ignore_index=True)
    memory.signals({str(name): signals[name].to_numpy() for name in signals})
    if "why" not in notes:
        missing.append("the server did not end by itself: what came after its last flush is missing")
        notes |= {"why": "killed", "end_s": float(signals["t_s"].iloc[-1])}
    data = _judged(scenario, notes, memory)
    record.write(run, data)
    shutil.rmtree(folder)
    return data, missing


def _judged(scenario: Scenario, notes: dict[str, Any], memory: MemorySink) -> RunData:
    end_s = float(notes["end_s"])
    shown = scenario.model_copy(update={"horizon_s": max(end_s, scenario.horizon_s)})
    candidate = shown.candidate(notes["candidate"])
    ended = execute.Ended(str(notes["why"]), end_s, float(notes.get("cpu_s", 0.0)))
    ended.notes = dict(notes.get("notes", {}), rate=notes["rate"])
    return execute.judged(
        shown, candidate, notes["seed"], ended, memory.data(candidate.name, shown.title, shown.question)
    )
