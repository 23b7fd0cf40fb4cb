"""Keep whatever was used last; nothing leaves before its room is wanted.

    victim = the context whose last use lies furthest back    when a tier is full
    C      = capacity of the shared tier                      tokens (None: its memory)
    a compacted context's life is 0, unless `keep_compacted`    s

Stateless: the same command at every tick. Source: least recently used, Belady's rule seen backwards (Mattson et al.,
IBM Systems Journal 9(2), 1970); what a compaction leaves behind, essay, section 2. Missing data: reads none.
"""

from __future__ import annotations

import math
from typing import ClassVar

from orchestrator.messages import RetentionCommand, RetentionReading, RetentionRule
from orchestrator.ports import Cadence
from policies.parameters import Count


class Lru:
    """Evict the least recently used context when a tier is full.

    Parameters
    ----------
    cadence : Cadence
    capacity_tokens : int or None
        Most tokens that the shared tier keeps; None: what its memory holds.
    keep_compacted : bool
        Let contexts that a compaction or a branch left behind grow old like the others.
    """

    no_linearisation = "the same rule at every tick: it answers nothing"
    example: ClassVar = {"capacity_tokens": 1000000}

    def __init__(
        self,
        cadence: Cadence,
        *,
        capacity_tokens: Count | None = None,
        keep_compacted: bool = False,
    ) -> None:
        self.cadence = cadence
        life_s = math.inf if keep_compacted else 0.0
        rule = RetentionRule(kind="compacted", demote_after_s=life_s, discard_after_s=life_s)
        self._command = RetentionCommand(rules=(rule,), order="lru", capacity_tokens=capacity_tokens)

    def act(self, y: RetentionReading) -> RetentionCommand:
        """Return the one command."""
        return self._command
