"""A limit on turns in flight from the gradient of short to long sojourn.

    R     sojourn of the last window                                         s
    M     its exponential mean over long_windows windows                     s
    g     clip(tolerance M / R, 0.5, 1)                                      1
    L     (1 - s) L + s (g L + q)                                            turns

With M / R > 2 (the load is gone) M is cut by 5 %; unchanged while in flight < L / 2. The baseline follows a lasting
overload, and the limit with it: under modest overload it grows without bound (its issue 134). Source: Netflix
concurrency-limits, Gradient2Limit (tolerance 1.5, s = 0.2, q = 4, 600 windows, bounds 20 to 200; earlier versions had
tolerance 1 and a cut of 10 %). Missing data: a window without retirements changes nothing.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from annotated_types import Ge, Gt, Le

from orchestrator.messages import AdmissionCommand, AdmissionReading
from orchestrator.ports import Cadence
from policies.blocks import Sojourn
from policies.parameters import Count, NotNegative, Positive, between


class LimitGradient2:
    """Gradient2 on the in-flight cap.

    Parameters
    ----------
    cadence : Cadence
    start_turns, least_turns, most_turns : int
        The limit at the start, and its bounds.
    window_s : float
        Least length of a window.
    tolerance_ratio, smoothing_ratio, queue_turns, long_windows
        Symbols tolerance, s, q and the span of M.
    """

    no_linearisation = (
        "no equilibrium to vary about: the long mean of the sojourn follows the short one, so the limit grows by "
        "s q a window until its bound"
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
        tolerance_ratio: Annotated[float, Ge(1.0)] = 1.5,
        smoothing_ratio: Annotated[float, Gt(0.0), Le(1.0)] = 0.2,
        queue_turns: NotNegative = 4.0,
        long_windows: Count = 600,
    ) -> None:
        self.cadence = cadence
        self.least_turns, self.most_turns = least_turns, most_turns
        self.tolerance_ratio, self.smoothing_ratio, self.queue_turns = tolerance_ratio, smoothing_ratio, queue_turns
        self._weight = 2.0 / (long_windows + 1.0)
        self._sojourn = Sojourn(window_s, 10)
        self._L = float(start_turns)
        self._M: float | None = None

    def act(self, y: AdmissionReading) -> AdmissionCommand:
        """Move the limit at the end of a window."""
        R = self._sojourn.update(y)
        if R is not None:
            M = R if self._M is None else self._M + self._weight * (R - self._M)
            self._M = 0.95 * M if M / R > 2.0 else M
            if 2.0 * self._sojourn.in_flight_turns >= self._L:
                s, g = self.smoothing_ratio, min(max(self.tolerance_ratio * M / R, 0.5), 1.0)
                L = (1.0 - s) * self._L + s * (g * self._L + self.queue_turns)
                self._L = min(max(L, self.least_turns), self.most_turns)
        return AdmissionCommand(in_flight_cap_turns=int(self._L))
