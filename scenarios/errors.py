"""Errors caused by the user: one line each, with the file and the place; the command line exits with 2."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """A wrong input of the user; the message is one line that says what would be right."""


class Interrupted(Exception):
    """The user interrupted; the message is one line that says what was kept, and how to continue."""


def nearest(word: str, known: Iterable[str]) -> str:
    """Return ' (did you mean `x`?)' for the nearest known word, or '' when none is near."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f" (did you mean `{close[0]}`?)" if close else ""
