"""Where the kernel's recorder writes to: a run's folder in the making."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from scenarios.run.record import RunFolder


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
