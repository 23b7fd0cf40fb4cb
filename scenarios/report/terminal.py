"""The console for tables: text of users is printed literally, never read as markup."""

from __future__ import annotations

from rich.console import Console


def terminal(*, error: bool = False) -> Console:
    """Return a console on standard output, or on standard error."""
    return Console(markup=False, emoji=False, stderr=error)
