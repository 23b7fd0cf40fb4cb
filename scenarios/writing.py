"""Files that are written whole or not at all, and what to say when a disk will not take them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scenarios.errors import UserError


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Yield a path to write to, which takes the name `path` once all is written; an older file there is replaced.

    What is no plain file, such as a terminal or a pipe, is written to as it stands. Missing folders are made.

    Raises
    ------
    UserError
        The disk is full, or whatever else keeps the file from being written; nothing of it is left behind.
    """
    target = path.resolve()
    special = target.exists() and not target.is_file()
    part = target if special else target.with_name(f".{target.name}.part")
    with told(path):
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            yield part
            if not special:
                part.replace(target)
        except BaseException:
            if not special:
                part.unlink(missing_ok=True)
            raise


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Turn what the system says of a file that cannot be written into one line about `path`."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {reason(error)}") from error


def reason(error: OSError) -> str:
    """Return what the system said, in its own short words."""
    if error.errno is not None:
        return os.strerror(error.errno)
    return str(error).splitlines()[0] if str(error) else type(error).__name__
