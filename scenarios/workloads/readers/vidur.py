"""Read Vidur's request traces: CSV with `arrived_at` [s], `num_prefill_tokens`, `num_decode_tokens` [tokens].

Rows stand alone; no block ids. Source: github.com/microsoft/vidur, data/processed_traces.
"""

from __future__ import annotations

from pathlib import Path

from scenarios.workloads.corpus import Corpus
from scenarios.workloads.readers import rows, table
from scenarios.workloads.readers.rows import ReadOptions, Sample

FORMAT = "vidur"
NAMES = {"arrived": "arrived_at", "input": "num_prefill_tokens", "output": "num_decode_tokens"}


def mismatch(sample: Sample) -> str:
    """Return why this is not a trace of Vidur's, '' when it is."""
    return rows.missing_columns(sample.header, *NAMES.values())


def read(path: Path, options: ReadOptions) -> Corpus:
    """Read the requests."""
    return table.read_columns(path, options, table.Columns(NAMES), FORMAT)
