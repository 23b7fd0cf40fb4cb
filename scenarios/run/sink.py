"""Sinks of the recorder: one writes a run's folder, the other keeps the tables in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from scenarios.run.record import TURN_SCHEMA, RunData, RunFolder


class FolderSink:
    """Hand the recorder's chunks to a `RunFolder`; `class` and `outcome` arrive as numbers into lists of names."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder

    def turns(self, columns: Mapping[str, object], classes: Sequence[str], outcomes: Sequence[str]) -> None:
        """Take a chunk of turns; every column is a buffer of numbers."""
        arrays: dict[str, object] = {name: np.asarray(values) for name, values in columns.items()}
        for name, words in (("class", classes), ("outcome", outcomes)):
            codes = np.asarray(columns[name], dtype=np.int16)
            arrays[name] = pa.DictionaryArray.from_arrays(codes, pa.array(words, type=pa.string()))
        self._folder.append_turns(arrays)

    def signals(self, columns: Mapping[str, Sequence[float]]) -> None:
        """Take the bins."""
        self._folder.append_signals({name: np.asarray(values) for name, values in columns.items()})

    def event(self, event: Mapping[str, object]) -> None:
        """Take one decision."""
        self._folder.append_events([event])


class MemorySink:
    """Keep a run's record in memory, as the tables that a folder would hold."""

    def __init__(self) -> None:
        self._turns: list[Mapping[str, object]] = []
        self._words: dict[str, Sequence[str]] = {}
        self._signals = pd.DataFrame({"t_s": []})
        self._events: list[dict[str, object]] = []

    def turns(self, columns: Mapping[str, object], classes: Sequence[str], outcomes: Sequence[str]) -> None:
        """Take a chunk of turns; a later chunk knows the outcomes of every earlier one."""
        self._turns.append(columns)
        self._words = {"class": classes, "outcome": outcomes}

    def signals(self, columns: Mapping[str, Sequence[float]]) -> None:
        """Take the bins."""
        self._signals = pd.DataFrame({name: np.asarray(values, dtype=float) for name, values in columns.items()})

    def event(self, event: Mapping[str, object]) -> None:
        """Take one decision."""
        self._events.append(dict(event))

    def data(self, candidate: str, title: str, question: str) -> RunData:
        """Return the record so far, not yet judged."""
        columns: dict[str, Any] = {name: [] for name in TURN_SCHEMA.names}
        if self._turns:
            columns = {name: np.concatenate([np.asarray(chunk[name]) for chunk in self._turns]) for name in columns}
            for name, words in self._words.items():
                columns[name] = pd.Categorical.from_codes(columns[name], pd.Index(list(words)))
        return RunData(
            candidate=candidate,
            title=title,
            question=question,
            signals=self._signals,
            turns=pd.DataFrame(columns),
            events=self._events,
            verdicts={},
            summary={},
        )
