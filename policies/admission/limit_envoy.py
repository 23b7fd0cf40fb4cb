"""Envoy's gradient controller: a limit that asks now and then what an empty system takes.

    R     sojourn of the last window                                         s
    R0    sojourn of the last probe                                          s
    g     clip((1 + buffer) R0 / R, 0.5, 2)                                  1
    L     g L + sqrt(g L)                                                    turns

A probe begins every probe_s, or after 5 windows at the least limit. With `pin` it holds the limit at least_turns until
a window closes (Envoy's older way: a dip every probe_s); without, it measures the traffic as it is. A probe under
sustained load raises R0 and the limit with it (envoy issue 11579). Source: Envoy's documentation, "Adaptive
concurrency" (buffer 25 %, gradient within 0.5 and 2, headroom sqrt of the limit, re-probe after 5 windows).
Missing data: a window without retirements changes nothing.
"""

from __future__ import annotations

import math
from typing import ClassVar

from orchestrator.messages import AdmissionCommand, AdmissionReading
from orchestrator.ports import Cadence
from policies.blocks import Sojourn
from policies.parameters import Count, NotNegative, Positive, between


class LimitEnvoy:
    """Gradient on the in-flight cap, with probes.

    Parameters
    ----------
    cadence : Cadence
    start_turns, least_turns, most_turns : int
        The limit at the start, and its bounds.
    window_s : float
        Least length of a window.
    buffer_ratio : float
        Sojourn above R0 that counts as none.
    probe_s : float
        Time between probes.
    pin : bool
        Whether a probe lowers the limit.
    """

    no_linearisation = (
        "its reference is measured anew at every probe, and a probe under load believes the load: between probes "
        "the limit settles within two windows, over many it walks upward"
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
        buffer_ratio: NotNegative = 0.25,
        probe_s: Positive = 60.0,
        pin: bool = False,
    ) -> None:
        self.cadence = cadence
        self.least_turns, self.most_turns = least_turns, most_turns
        self.buffer_ratio, self.probe_s, self.pin = buffer_ratio, probe_s, pin
        self._sojourn = Sojourn(window_s, 10)
        self._L = float(start_turns)
        self._R0 = math.nan
        self._probing = True
        self._probe_at_s = 0.0
        self._lowest = 0

    def act(self, y: AdmissionReading) -> AdmissionCommand:
        """Move the limit at the end of a window, or begin a probe when it is time."""
        R = self._sojourn.update(y)
        if R is not None:
            if self._probing:
                self._R0, self._probing, self._probe_at_s = R, False, y.at_s + self.probe_s
            else:
                self._move(R)
            self._lowest = self._lowest + 1 if self.least_turns >= self._L else 0
        if y.at_s >= self._probe_at_s or self._lowest >= 5:
            self._probing, self._lowest = True, 0
        limit = self.least_turns if self._probing and self.pin else self._L
        return AdmissionCommand(in_flight_cap_turns=int(limit))

    def _move(self, R: float) -> None:
        g = min(max((1.0 + self.buffer_ratio) * self._R0 / R, 0.5), 2.0)
        L = g * self._L
        self._L = min(max(L + math.sqrt(L), self.least_turns), self.most_turns)
