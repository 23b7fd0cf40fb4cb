"""A limit on turns in flight after TCP Vegas: keep a few turns queued, no more.

    R     sojourn of the last window                                         s
    R0    least sojourn seen; taken anew every probe_windows windows         s
    Q     ceil(L (1 - R0 / R))                                               turns
    l     max(1, log10 L)                                                    turns
    L     L + 6 l    Q <= l                                                  turns
          L + l      Q < 3 l
          L - l      Q > 6 l

Unchanged while in flight < L / 2. R0 drifts upward when a probe falls into an overload: the limit then believes the
queue to be the empty system. Source: Brakmo and Peterson, "TCP Vegas" (1995); Netflix concurrency-limits, VegasLimit
(alpha 3, beta 6, probe multiplier 30). Missing data: a window without retirements changes nothing.
"""

from __future__ import annotations

import math
from typing import ClassVar

from orchestrator.messages import AdmissionCommand, AdmissionReading
from orchestrator.ports import Cadence
from policies.blocks import Sojourn
from policies.parameters import Count, Positive, between


class LimitVegas:
    """Vegas on the in-flight cap.

    Parameters
    ----------
    cadence : Cadence
    start_turns, least_turns, most_turns : int
        The limit at the start, and its bounds.
    window_s : float
        Least length of a window.
    probe_windows : int
        Windows between fresh starts of R0.
    """

    no_linearisation = (
        "fixed steps with a dead band: it stands still within the band and moves by log10 of the limit beside "
        "it, whatever the size of the error"
    )
    example: ClassVar = {"start_turns": 100, "least_turns": 20, "most_turns": 200}
    rules = (between("start_turns", "least_turns", "most_turns"),)

    def __init__(
        self,
        cadence: Cadence,
        *,
        start_turns: Count,
        least_turns: Count = 1,
        most_turns: Count,
        window_s: Positive = 1.0,
        probe_windows: Count = 600,
    ) -> None:
        self.cadence = cadence
        self.least_turns, self.most_turns, self.probe_windows = least_turns, most_turns, probe_windows
        self._sojourn = Sojourn(window_s, 10)
        self._L = float(start_turns)
        self._R0 = math.inf
        self._windows = 0

    def act(self, y: AdmissionReading) -> AdmissionCommand:
        """Move the limit at the end of a window."""
        R = self._sojourn.update(y)
        if R is not None:
            self._windows = (self._windows + 1) % self.probe_windows
            if self._windows == 0 or R < self._R0:
                self._R0 = R
            elif 2.0 * self._sojourn.in_flight_turns >= self._L:
                self._move(R)
        return AdmissionCommand(in_flight_cap_turns=int(self._L))

    def _move(self, R: float) -> None:
        L = self._L
        Q, step = math.ceil(L * (1.0 - self._R0 / R)), max(1.0, math.log10(L))
        if step >= Q:
            L += 6.0 * step
        elif 3.0 * step > Q:
            L += step
        elif 6.0 * step < Q:
            L -= step
        self._L = min(max(L, self.least_turns), self.most_turns)
