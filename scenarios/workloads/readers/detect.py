"""Find the reader that takes a file, or say of each why it does not."""

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
    module.FORMAT: (module.refuses, module.read)
    for module in (
        parquet, weka, tracelab, bailian, mooncake, azure, burstgpt, servegen, aiperf, otel, claude_code,
    )
}  # fmt: skip
"""Tried in this order: a format that another would also take stands before it."""


def read(
    path: Path | str, *, form: str = "auto", options: ReadOptions | None = None, on_error: OnError | None = None
) -> Corpus:
    """Read a trace of any known format.

    Parameters
    ----------
    path : Path or str
        A file or a directory.
    form : str
        A name in `READERS`, or `auto`: the first reader that takes the file's beginning.
    options : ReadOptions, optional
    on_error : {"raise", "repair", "skip"}, optional
        Overrides the one of `options`.

    Raises
    ------
    UserError
        Where no reader takes the file (with the nearest one's reason), where the named one refuses it, or where the
        content is wrong.
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
        refuses, reader = READERS[form]
        if reason := refuses(start):
            raise UserError(f"{path}: not {form}: {reason}")
        return reader(path, options)
    for refuses, reader in READERS.values():
        if not refuses(start):
            return reader(path, options)
    raise UserError(f"{path}: no known format{_looked_at(path)}: {_nearest(start)}")


def _looked_at(path: Path) -> str:
    """Return which file of a directory was judged; '' where it is the only one."""
    return f" in {members(path, TEXTS)[0].name}" if path.is_dir() else ""


def _nearest(start: Sample) -> str:
    """Return which reader finds most of what it asks for, and what it misses; or that none finds anything."""
    nothing = Sample(start.path, {} if isinstance(start.first, dict) else start.first, None, ())
    best, found = "", (0, False, 0)
    for name, (refuses, _) in READERS.items():
        reason, whole = refuses(start), refuses(nothing)
        missing = reason.count("`")
        here = (whole.count("`") - missing, reason != whole, -missing)
        if here > found:
            best, found = f"nearest to {name}, but {reason}; {len(READERS) - 1} others fit less", here
    return best or f"it begins as none of {', '.join(READERS)} does"
