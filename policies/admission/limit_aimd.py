"""A limit on turns in flight by additive increase and multiplicative decrease.

    R     sojourn of the last window: mean in flight / retirement rate       s
    late  R > timeout, or a preemption in the window                         -
    L     L + 1 when not late and in flight >= L / 2                         turns
          0.9 L when late                                                    turns

Source: Netflix concurrency-limits, AIMDLimit (backoff 0.9, timeout 5 s, +1 only when at least half used); Chiu and Jain
(1989). Missing data: a window without retirements changes nothing.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from annotated_types import Ge, Lt

from orchestrator.messages import AdmissionCommand, AdmissionReading
from orchestrator.ports import Cadence
from policies.blocks import Sojourn
from policies.parameters import Count, Positive, between


class LimitAimd:
    """AIMD on the in-flight cap.

    Parameters
    ----------
    cadence : Cadence
    start_turns, least_turns, most_turns : int
        The limit at the start, and its bounds.
    timeout_s : float
        Sojourn above which a window counts as late.
    cut_ratio : float
        Factor of a decrease.
    window_s : float
        Least length of a window.
    """

    no_linearisation = (
        "a sawtooth by construction: + 1 a window until it is late, then a cut by a factor; nothing rests between"
    )
    example: ClassVar = {"start_turns": 100, "least_turns": 20, "most_turns": 200, "timeout_s": 5.0}
    rules = (between("start_turns", "least_turns", "most_turns"),)

    def __init__(
        self,
        cadence: Cadence,
        *,
        start_turns: Count,
        least_turns: Count = 1,
        most_turns: Count,
        timeout_s: Positive,
        cut_ratio: Annotated[float, Ge(0.5), Lt(1.0)] = 0.9,
        window_s: Positive = 1.0,
    ) -> None:
        self.cadence = cadence
        self.least_turns, self.most_turns = least_turns, most_turns
        self.timeout_s, self.cut_ratio = timeout_s, cut_ratio
        self._sojourn = Sojourn(window_s, 10)
        self._L = float(start_turns)
        self._preempted = 0.0

    def act(self, y: AdmissionReading) -> AdmissionCommand:
        """Move the limit at the end of a window."""
        R = self._sojourn.update(y)
        if R is not None:
            if self.timeout_s < R or y.preempted_total > self._preempted:
                self._L = min(self._L - 1.0, self.cut_ratio * self._L)
            elif 2.0 * self._sojourn.in_flight_turns >= self._L:
                self._L += 1.0
            self._L = min(max(self._L, self.least_turns), self.most_turns)
            self._preempted = y.preempted_total
        return AdmissionCommand(in_flight_cap_turns=int(self._L))
