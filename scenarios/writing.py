"""Write files atomically, and report what the system refuses to write in one line.

A file appears under its name only once it is complete, so that a crash or a full disk leaves no half-written result.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scenarios.errors import UserError


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a temporary path that is renamed to `path` on success; an older file of that name is replaced.

    A target that is not a plain file, such as a terminal or a pipe, is written to directly. Missing folders are
    created.

    Raises
    ------
    UserError
        The disk is full, or the file cannot be written for another reason; nothing of it is left behind.
    """
    target = path.resolve()
    special = target.exists() and not target.is_file()
    temporary = target if special else target.with_name(f".{target.name}.part")
    with disk_errors(path):
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            yield temporary
            if not special:
                temporary.replace(target)
        except BaseException:
            if not special:
                temporary.unlink(missing_ok=True)
            raise


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Convert an `OSError` raised while writing `path` to a `UserError` of one line."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {reason(error)}") from error


def reason(error: OSError) -> str:
    """Return the system's short description of an error."""
    if error.errno is not None:
        return os.strerror(error.errno)
    return str(error).splitlines()[0] if str(error) else type(error).__name__
