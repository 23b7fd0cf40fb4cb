"""The cap by objective, but never moved faster than the effect of the last move can be seen.

    cap*    what `slo_cap` asks for                                            turns
    move    only when a sample was taken settle_s after the last move          s
    cap     cap + clip(cap* - cap, -d, d),  d = max(1, slew_ratio cap)         turns
    band    |cap* - cap| <= band_ratio cap: stays                              1

settle_s is at least the time a batch takes to turn over (a mean answer) plus the age of the readings: until then the
step time speaks of the old batch, and acting on it again is integral action on dead time. Source: essay E18, "avoid
changing batch size more quickly than the system can observe its effect". Missing data: the cap stays as it is.
"""

from __future__ import annotations

import math

from orchestrator.messages import BatchCommand, BatchReading
from orchestrator.ports import Cadence
from policies.batching.slo_cap import SloCap


class SlewLimited:
    """Approach the cap by objective in small steps, each after the last one has shown.

    Parameters
    ----------
    cadence : Cadence
    target : SloCap
        What says which cap is wanted.
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

    def __init__(
        self,
        cadence: Cadence,
        *,
        target: SloCap,
        start_turns: int,
        settle_s: float,
        slew_ratio: float = 0.1,
        band_ratio: float = 0.05,
    ) -> None:
        self.cadence, self.target = cadence, target
        self.settle_s, self.slew_ratio, self.band_ratio = settle_s, slew_ratio, band_ratio
        self._cap = start_turns
        self._moved_s = -math.inf

    def act(self, y: BatchReading) -> BatchCommand:
        """Move the cap by one step if it is time and worth it."""
        wanted = self.target.cap(y)
        cap = self._cap
        if wanted is not None and y.at_s >= self._moved_s + self.settle_s and y.now_s > self._moved_s:
            gap = wanted - cap
            if abs(gap) > self.band_ratio * cap:
                d = max(1, int(self.slew_ratio * cap))
                self._cap = cap + min(max(gap, -d), d)
                self._moved_s = y.now_s
        return BatchCommand(batch_cap_turns=self._cap)
