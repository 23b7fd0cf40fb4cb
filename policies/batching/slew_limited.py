"""The cap by objective, but never moved faster than the effect of the last move can be seen.

    cap*    what `slo_cap` asks for                                            turns
    move    only when a sample was taken settle_s after the last move          s
    cap     cap + clip(cap* - cap, -d, d),  d = max(1, slew_ratio cap)         turns
    band    |cap* - cap| <= band_ratio cap: stays                              1

settle_s is at least the time a batch takes to turn over (a mean answer) plus the age of the readings: until then the
step time speaks of the old batch, and acting on it again is integral action on dead time. Source: essay, section 18,
"avoid changing batch size more quickly than the system can observe its effect". Missing data: the cap stays as it is.
"""

from __future__ import annotations

import math
from typing import ClassVar

from orchestrator.messages import BatchCommand, BatchReading
from orchestrator.ports import Cadence
from policies.batching.slo_cap import SloCap
from policies.parameters import Count, NotNegative, PositiveShare, Share, at_most


class SlewLimited:
    """Approach the cap by objective in small steps, each after the last one has shown.

    Parameters
    ----------
    cadence : Cadence
    base_s, least_turns, most_turns, margin_ratio, tau_s
        Of the law by objective, `SloCap`, whose cap is approached.
    start_turns : int
        The cap that stands at the start.
    settle_s : float
        Time until a move shows in the readings, >= 0.
    slew_ratio : float
        Largest move as a share of the cap, in (0, 1].
    band_ratio : float
        Smallest difference worth a move, as a share of the cap.
    """

    no_linearisation = "one bounded step, then a rest until its effect shows: by design it never acts on its own echo"
    example: ClassVar = {"least_turns": 1, "most_turns": 64, "base_s": 0.01, "start_turns": 16, "settle_s": 5.0}
    rules = (at_most("least_turns", "most_turns"),)

    def __init__(
        self,
        cadence: Cadence,
        *,
        least_turns: Count = 1,
        most_turns: Count,
        base_s: NotNegative,
        start_turns: Count,
        settle_s: NotNegative,
        margin_ratio: PositiveShare = 0.9,
        tau_s: NotNegative = 2.0,
        slew_ratio: PositiveShare = 0.1,
        band_ratio: Share = 0.05,
    ) -> None:
        self.cadence = cadence
        self._target = SloCap(
            cadence,
            base_s=base_s,
            least_turns=least_turns,
            most_turns=most_turns,
            margin_ratio=margin_ratio,
            tau_s=tau_s,
        )
        self.settle_s, self.slew_ratio, self.band_ratio = settle_s, slew_ratio, band_ratio
        self._cap = start_turns
        self._moved_s = -math.inf

    def act(self, y: BatchReading) -> BatchCommand:
        """Move the cap by one step if it is time and worth it."""
        wanted = self._target.cap(y)
        cap = self._cap
        if wanted is not None and y.at_s >= self._moved_s + self.settle_s and y.now_s > self._moved_s:
            gap = wanted - cap
            if abs(gap) > self.band_ratio * cap:
                d = max(1, int(self.slew_ratio * cap))
                self._cap = cap + min(max(gap, -d), d)
                self._moved_s = y.now_s
        return BatchCommand(batch_cap_turns=self._cap)
