"""Export a run as a Chrome JSON trace for Perfetto (ui.perfetto.dev): workers as processes, turns as slices.

Format: the Trace Event Format of the Chromium project. Slices that share a thread must nest, so turns that overlap on
one worker lie on lanes; a turn takes the lowest lane that is free. Timestamps are microseconds.
"""

from __future__ import annotations

import gzip
import heapq
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
import pandas as pd

from scenarios.catalogue.signals import LEVELS
from scenarios.run.record import RunData
from scenarios.writing import atomic_write

COUNTERS = tuple(row.name for row in LEVELS)
NO_WORKER = -1


class Stage(NamedTuple):
    """One kind of slice: the process it lies in, and the columns it begins and ends with."""

    name: str
    place: str
    worker: str | None
    begins: str
    ends: str


STAGES = (
    Stage("waiting", "admission queue", None, "arrived_s", "released_s"),
    Stage("fill", "fill worker", "fill_worker", "fill_started_s", "filled_s"),
    Stage("ready", "ready buffer", None, "filled_s", "joined_s"),
    Stage("decode", "decode worker", "decode_worker", "joined_s", "ended_s"),
)


def lanes(begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return for each interval (sorted by its beginning) the lowest lane that is free then."""
    free: list[int] = []
    taken: list[tuple[float, int]] = []
    out = np.empty(len(begins), dtype=int)
    for i, (begin, end) in enumerate(zip(begins.tolist(), ends.tolist())):
        while taken and taken[0][0] <= begin:
            heapq.heappush(free, heapq.heappop(taken)[1])
        lane = heapq.heappop(free) if free else len(taken)
        heapq.heappush(taken, (end, lane))
        out[i] = lane
    return out


def events(run: RunData) -> Iterator[dict[str, Any]]:
    """Yield every event of the trace: names of processes, slices of turns, counters, decisions."""
    for order, stage in enumerate(STAGES):
        yield from _slices(run, stage, order)
    yield _name(1, "signals")
    for signal in COUNTERS:
        column = f"{signal}_mean"
        if column in run.signals:
            for at, value in zip(run.signals["t_s"].tolist(), run.signals[column].tolist()):
                yield {"ph": "C", "pid": 1, "name": signal, "ts": 1e6 * at, "args": {"value": value}}
    for event in run.events:
        if "at_s" in event:
            name = str(event.get("kind", "event"))
            yield {"ph": "i", "s": "g", "pid": 1, "tid": 1, "name": name, "ts": 1e6 * event["at_s"], "args": event}


def _name(pid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}}


def _slices(run: RunData, stage: Stage, order: int) -> Iterator[dict[str, Any]]:
    turns = run.turns[run.turns[stage.begins].notna()]
    if stage.worker is not None:
        turns = turns[turns[stage.worker] >= 0]
    workers = turns[stage.worker].to_numpy() if stage.worker is not None else np.full(len(turns), NO_WORKER)
    for worker in np.unique(workers).tolist():
        pid = (order + 1) * 1_000_000 + worker + 1
        yield _name(pid, stage.place if worker == NO_WORKER else f"{stage.place} {worker}")
        yield {"ph": "M", "pid": pid, "name": "process_sort_index", "args": {"sort_index": pid}}
        yield from _worker_slices(turns[workers == worker], stage, pid, run.window_s[1])


def _worker_slices(turns: pd.DataFrame, stage: Stage, pid: int, last_s: float) -> Iterator[dict[str, Any]]:
    ordered = turns.sort_values([stage.begins, "turn_id"], kind="stable")
    begins = ordered[stage.begins].to_numpy(dtype=float)
    # What had not ended in this stage lasted until the turn's end, or the run's.
    ends = (
        ordered[stage.ends]
        .fillna(ordered["ended_s"])
        .fillna(max(last_s, float(begins.max(initial=0.0))))
        .to_numpy(dtype=float)
    )
    columns = (ordered[name].tolist() for name in ("turn_id", "class", "prompt_tokens", "output_tokens", "outcome"))
    for begin, end, lane, turn, kind, prompt, output, outcome in zip(
        begins.tolist(), ends.tolist(), lanes(begins, ends).tolist(), *columns
    ):
        yield {
            "ph": "X",
            "pid": pid,
            "tid": lane + 1,  # thread 0 is the idle one to Perfetto
            "name": f"{stage.name} {turn}",
            "cat": stage.name,
            "ts": 1e6 * begin,
            "dur": 1e6 * (end - begin),
            "args": {"turn": turn, "class": kind, "prompt": prompt, "output": output, "outcome": outcome},
        }


def bounded(run: RunData, most_turns: int) -> RunData:
    """Return the run with at most so many turns: the first that end, or go on, in the judged window."""
    if len(run.turns) <= most_turns:
        return run
    ended = run.turns["ended_s"].fillna(run.window_s[1])
    kept = run.turns[ended >= run.window_s[0]].sort_values(["arrived_s", "turn_id"], kind="stable").head(most_turns)
    return replace(run, turns=kept)


def write_trace(run: RunData, path: Path) -> Path:
    """Write the trace compressed by gzip, one event a line, and return its path; an older one there is replaced."""
    with atomic_write(path) as part, gzip.GzipFile(part, "wb", compresslevel=6, mtime=0) as file:
        file.write(b'{"displayTimeUnit":"ms","traceEvents":[\n')
        for number, event in enumerate(events(run)):
            file.write((b",\n" if number else b"") + orjson.dumps(event, option=orjson.OPT_SERIALIZE_NUMPY))
        file.write(b"\n]}\n")
    return path
