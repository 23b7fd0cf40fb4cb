"""Detect the format of a trace and read it; the error for an unknown format names the closest reader."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from scenarios.errors import UserError, nearest
from scenarios.workloads.corpus import Corpus
from scenarios.workloads.readers import (
    aiperf,
    azure,
    bailian,
    burstgpt,
    claude_code,
    mooncake,
    otel,
    parquet,
    servegen,
    tracelab,
    weka,
)
from scenarios.workloads.readers.files import members
from scenarios.workloads.readers.rows import TEXTS, ReadOptions, Sample, sample
from scenarios.workloads.repairs import OnError

Reader = Callable[[Path, ReadOptions], Corpus]

READERS: dict[str, tuple[Callable[[Sample], str], Reader]] = {
    module.FORMAT: (module.mismatch, module.read)
    for module in (
        parquet, weka, tracelab, bailian, mooncake, azure, burstgpt, servegen, aiperf, otel, claude_code,
    )
}  # fmt: skip
"""Tried in this order: the more specific format comes first."""


def read(
    path: Path | str, *, form: str = "auto", options: ReadOptions | None = None, on_error: OnError | None = None
) -> Corpus:
    """Read a trace of any known format.

    Parameters
    ----------
    path : Path or str
        A file or a directory.
    form : str
        A name in `READERS`, or `auto`: the first reader that recognises the start of the file.
    options : ReadOptions, optional
    on_error : {"raise", "repair", "skip"}, optional
        Overrides the one of `options`.

    Raises
    ------
    UserError
        No reader recognises the file (the error gives the closest reader's reason), the named reader does not, or the
        content is invalid.
    """
    path = Path(path)
    options = options or ReadOptions()
    if on_error is not None:
        options = replace(options, on_error=on_error)
    if form != "auto" and form not in READERS:
        raise UserError(f"format {form!r} is not known{nearest(form, READERS)}; known: {', '.join(READERS)}")
    if not path.exists():
        raise UserError(f"{path}: no such file or directory")
    start = sample(path, options.on_error)
    if form != "auto":
        mismatch, reader = READERS[form]
        if reason := mismatch(start):
            raise UserError(f"{path}: not {form}: {reason}")
        return reader(path, options)
    for mismatch, reader in READERS.values():
        if not mismatch(start):
            return reader(path, options)
    raise UserError(f"{path}: no known format{_examined_file(path)}: {_nearest(start)}")


def _examined_file(path: Path) -> str:
    """Return which file of a directory was examined; '' for a single file."""
    return f" in {members(path, TEXTS)[0].name}" if path.is_dir() else ""


def _nearest(start: Sample) -> str:
    """Return the reader that finds most of its required fields, and what is missing; or that none finds any."""
    empty = Sample(start.path, {} if isinstance(start.first, dict) else start.first, None, ())
    best, best_score = "", (0, False, 0)
    for name, (mismatch, _) in READERS.items():
        reason, full_reason = mismatch(start), mismatch(empty)
        missing = reason.count("`")
        score = (full_reason.count("`") - missing, reason != full_reason, -missing)
        if score > best_score:
            best, best_score = f"nearest to {name}, but {reason}; {len(READERS) - 1} others fit less", score
    return best or f"it begins as none of {', '.join(READERS)} does"
