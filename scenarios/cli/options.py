"""Checks of single options, made before anything is computed: numbers that make sense, paths that can be written."""

from __future__ import annotations

import math
import os
import tempfile
from pathlib import Path
from typing import Annotated

import typer

LONGEST_S = 1e9  # 32 years, as the longest horizon of a scenario
LARGEST_SEED = 2**63 - 1  # TOML's integers, and the record's, end there


SingleFile = Annotated[
    bool, typer.Option("--single-file", help="Put plotly.js into the page; else one file of it lies beside the page.")
]


def positive(value: float | None) -> float | None:
    """Refuse a number that is not finite or not above 0."""
    if value is not None and not 0.0 < value < math.inf:
        raise typer.BadParameter(f"{value} must be positive and finite")
    return value


def not_negative(value: float | None) -> float | None:
    """Refuse a number that is not finite or is below 0."""
    if value is not None and not 0.0 <= value < math.inf:
        raise typer.BadParameter(f"{value} must be 0 or more, and finite")
    return value


def at_least_one(value: float | None) -> float | None:
    """Refuse a number that is not finite or is below 1."""
    if value is not None and not 1.0 <= value < math.inf:
        raise typer.BadParameter(f"{value} must be 1 or more, and finite")
    return value


def new_file(path: Path | None) -> Path | None:
    """Refuse a path where no file can be written; a missing folder will be made, and a file there replaced."""
    if path is not None and (wrong := unwritable(path, file=True)):
        raise typer.BadParameter(wrong)
    return path


def new_output(path: Path | None) -> Path | None:
    """Refuse a path where neither a file nor a folder can be written; a folder that is there will do."""
    if path is not None and not path.is_dir():
        return new_file(path)
    return path


def new_folder(path: Path | None) -> Path | None:
    """Refuse a path where no folder can be made."""
    if path is not None and (wrong := unwritable(path, file=False)):
        raise typer.BadParameter(wrong)
    return path


def unwritable(path: Path, *, file: bool) -> str:
    """Return why nothing can be written at a path, and what would do; empty where it can. Leaves nothing behind."""
    try:
        if file and path.is_dir():
            return f"{path} is a folder; name a file, such as {path / 'report.html'}"
        if not file and path.is_file():
            return f"{path} is a file; name a folder"
        if file and path.exists() and not os.access(path, os.W_OK):
            return f"{path} exists and cannot be written; name another"
        above = path.absolute().parent
        while not above.exists():
            above = above.parent
        if not above.is_dir():
            return f"{path} cannot be made: {above} is a file, not a folder; name a path under a folder"
        # Permissions alone do not decide (the superuser has them all, also where a file system takes no files).
        with tempfile.TemporaryDirectory(prefix=".steadyflow.", dir=above) as probe:
            (Path(probe) / path.name).touch()
    except OSError as error:
        return f"{path} cannot be written: {error.strerror}; name a path in a folder that can be written to"
    return ""
