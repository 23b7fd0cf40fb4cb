"""Open loop: command nothing, so that every actuator stays as it stands. Any slot; the baseline of a comparison.

Source: essay, section 18 (what happens without control). Missing data: needs none.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from orchestrator.ports import Cadence

Command = TypeVar("Command")


class Hold(Generic[Command]):
    """Change nothing.

    Parameters
    ----------
    cadence : Cadence
    nothing : a command of the slot
        The slot's empty command, which every act returns.
    """

    no_linearisation = "open loop: it answers nothing"

    def __init__(self, cadence: Cadence, nothing: Command) -> None:
        self.cadence = cadence
        self._nothing = nothing

    def act(self, y: Any) -> Command:  # Any: the slot's reading, which is not looked at
        """Return the empty command."""
        return self._nothing
