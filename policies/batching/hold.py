"""Open loop: leave the caps as they stand. Heads the slot.

Source: essay E18 (what happens without control). Missing data: needs none.
"""

from __future__ import annotations

from orchestrator.messages import BatchCommand, BatchReading
from orchestrator.ports import Cadence


class Hold:
    """Change nothing.

    Parameters
    ----------
    cadence : Cadence
    """

    no_linearisation = "open loop: it answers nothing"

    def __init__(self, cadence: Cadence) -> None:
        self.cadence = cadence

    def act(self, y: BatchReading) -> BatchCommand:
        """Return the empty command."""
        return BatchCommand()
