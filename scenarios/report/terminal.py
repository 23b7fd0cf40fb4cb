"""The console for tables: text of users is printed literally, never read as markup."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def terminal(*, error: bool = False) -> Console:
    """Return a console on standard output, or on standard error."""
    from rich.console import Console

    return Console(markup=False, emoji=False, stderr=error)
