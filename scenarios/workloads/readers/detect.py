"""Detect the format of a trace and read it; the error for an unknown format names the closest reader."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from scenarios.errors import UserError, nearest
from scenarios.workloads.corpus import Corpus
from scenarios.workloads.readers import (
    aibrix,
    aiperf,
    aiperf_export,
    azure,
    bailian,
    blis,
    burstgpt,
    claude_code,
    dynamo,
    mooncake,
    otel,
    parquet,
    servegen,
    sharegpt,
    table,
    tracelab,
    vidur,
    vllm_bench,
    weka,
)
from scenarios.workloads.readers.files import members, sha256
from scenarios.workloads.readers.plausible import doubt, with_grain
from scenarios.workloads.readers.rows import TEXTS, ReadOptions, Sample, sample, sample_of
from scenarios.workloads.repairs import OnError, Skip

Reader = Callable[[Path, ReadOptions], Corpus]

READERS: dict[str, tuple[Callable[[Sample], str], Reader]] = {
    module.FORMAT: (module.mismatch, module.read)
    for module in (
        parquet, weka, tracelab, bailian, mooncake, azure, burstgpt, servegen, aiperf, otel, claude_code,
        dynamo, aiperf_export, aibrix, vidur, blis, vllm_bench, sharegpt,
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
    if options.columns is not None:
        if form not in ("auto", table.FORMAT):
            raise UserError(f"--columns reads a table; leave --format {form} out")
        return _finished(table.read(path, options), path, options)
    start = sample(path, options.on_error)
    if form == "auto":
        form = _detected(start)
        if not form:
            advice = "; --columns reads any table of requests"
            raise UserError(f"{path}: no known format{_examined_file(path)}: {_nearest(start)}{advice}")
    elif reason := READERS[form][0](start):
        raise UserError(f"{path}: not {form}: {reason}")
    del start  # of a file that is one long line, it holds all of it
    unread = _check_folder(path, form) if path.is_dir() and form != servegen.FORMAT else []
    try:
        corpus = READERS[form][1](path, options)
    except Skip:
        raise UserError(f"{path}: a defect of the whole file; nothing is left of it under `--on-error skip`") from None
    if unread:
        corpus.repairs.note("file not read", f"{unread[0]}", "of another form, or in a sub-folder", len(unread))
    return _finished(corpus, path, options)


def _finished(corpus: Corpus, path: Path, options: ReadOptions) -> Corpus:
    """Return the corpus with the doubts about the whole of it; a converted one has those of its first reading."""
    if path.suffix == ".parquet" and options.columns is None:
        return corpus
    doubt(corpus, f"{path}")
    return with_grain(corpus, f"{path}", spread=options.spread_stamps, seed=options.seed)


def _detected(start: Sample) -> str:
    """Return the first format whose reader recognises the sample, '' where none does."""
    return next((name for name, (mismatch, _) in READERS.items() if not mismatch(start)), "")


def _check_folder(path: Path, form: str) -> list[Path]:
    """Return the files of a folder that the reader passes over.

    Raises
    ------
    UserError
        The folder holds a file of another format, or the same content twice.
    """
    deep = form == claude_code.FORMAT
    listed = members(path, TEXTS, deep=deep)
    by_size: dict[int, list[Path]] = {}
    unread = []
    for file in listed:
        by_size.setdefault(file.stat().st_size, []).append(file)
        try:
            start = sample_of(path, file)
        except UserError:
            continue  # the reader tells of it, or leaves it out
        if READERS[form][0](start) and (other := _detected(start)):
            raise UserError(f"{file}: {other}, in a folder of {form}; a folder of one format was expected")
        if (".csv" in file.name) != (".csv" in listed[0].name):
            unread.append(file)
    for same in by_size.values():
        digests: dict[str, Path] = {}
        for file in same if len(same) > 1 else ():
            first = digests.setdefault(sha256([file]), file)
            if first != file:
                raise UserError(f"{file}: the same content as {first.name}; leave one of them in the folder")
    below = () if deep else path.glob("*/**/*")
    return unread + [file for file in below if file.is_file() and file.suffix in (*TEXTS, ".gz", ".zst")]


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
