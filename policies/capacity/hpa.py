"""The Kubernetes horizontal autoscaler on one pool.

    n     workers, those on their way included                               workers
    m     load per worker: of the ready ones (pending-blind), or with those  1 or turns
          on their way counted as empty (pending-aware)
    want  ceil(n m / target), n where |m / target - 1| <= tolerance          workers
    up    at most max(double, + 4) in 15 s                                   workers
    down  to the largest want of the last 300 s                              workers

In logarithms this is an integrator of gain 1: with d unseen ticks it is stable below K_c = 2 sin(pi / (4 d + 2)), that
is, marginal with one and unstable with two, unless what is on its way is counted. Source: Kubernetes documentation,
"Horizontal Pod Autoscaling" (tolerance 0.1, sync 15 s, windows 0 and 300 s, doubling or 4 pods in 15 s); KEP-4951.
Missing data: n stays.
"""

from __future__ import annotations

import math
from collections import deque
from typing import ClassVar

from orchestrator.messages import CapacityCommand, CapacityReading
from orchestrator.ports import Cadence
from orchestrator.turn import ConfigurationName
from policies.blocks import Measure, load, standing
from policies.design.structure import Multiplicative
from policies.parameters import Count, NotNegative, Positive, Share, at_most


class Hpa:
    """Proportional scaling with tolerance, stabilisation window and rate policies.

    Parameters
    ----------
    cadence : Cadence
    configuration : str
        The pool to scale.
    measure : {"occupancy", "kv", "turns"}
        What is held at the target.
    target : float
        Load wanted per worker, > 0.
    least_workers, most_workers : int
        Bounds.
    tolerance_ratio, down_window_s, policy_s, up_workers
        As above.
    pending_aware : bool
        Whether workers on their way are counted in the load.
    """

    example: ClassVar = {"configuration": "decode", "target": 0.7, "most_workers": 30}
    rules = (at_most("least_workers", "most_workers"),)

    def __init__(
        self,
        cadence: Cadence,
        *,
        configuration: str,
        measure: Measure = "occupancy",
        target: Positive,
        least_workers: Count = 1,
        most_workers: Count,
        tolerance_ratio: Share = 0.1,
        down_window_s: NotNegative = 300.0,
        policy_s: Positive = 15.0,
        up_workers: Count = 4,
        pending_aware: bool = True,
    ) -> None:
        self.cadence = cadence
        self.configuration = ConfigurationName(configuration)
        self.measure, self.target, self.pending_aware = measure, target, pending_aware
        self.least_workers, self.most_workers = least_workers, most_workers
        self.tolerance_ratio, self.down_window_s = tolerance_ratio, down_window_s
        self.policy_s, self.up_workers = policy_s, up_workers
        self._advice: deque[tuple[float, int]] = deque()
        self._path: deque[tuple[float, int]] = deque()

    def scaling(self) -> Multiplicative:
        """Return gain 1 in logarithms, through what it does not count."""
        return Multiplicative(
            configuration=self.configuration,
            gain=1.0,
            pending_counted=self.pending_aware,
            window_s=self.down_window_s,
        )

    def act(self, y: CapacityReading) -> CapacityCommand:
        """Say how many workers the pool should have."""
        pool = y.pools.get(self.configuration)
        if pool is None:
            return CapacityCommand()
        n = standing(pool, y)
        m = load(pool, y, self.measure, n if self.pending_aware else pool.active_workers)
        want = n
        if m is not None and abs(m / self.target - 1.0) > self.tolerance_ratio:
            want = min(math.ceil(n * m / self.target - 1e-9), 10 * self.most_workers)
        want = self._stabilised(n, want, y.now_s)
        want = min(max(want, self.least_workers), self.most_workers)
        return CapacityCommand(target_workers={self.configuration: want})

    def _stabilised(self, n: int, want: int, now_s: float) -> int:
        for past, span_s in ((self._advice, self.down_window_s), (self._path, self.policy_s)):
            while past and past[0][0] <= now_s - span_s:
                past.popleft()
        _push_highest(self._advice, (now_s, want))
        lowest = min((count for _, count in self._path), default=n)
        self._path.append((now_s, n))
        if want > n:
            return min(want, max(2 * lowest, lowest + self.up_workers))
        return min(n, self._advice[0][1])


def _push_highest(past: deque[tuple[float, int]], entry: tuple[float, int]) -> None:
    """Keep the running maximum of a window: entries fall in value from left to right."""
    while past and past[-1][1] <= entry[1]:
        past.pop()
    past.append(entry)
