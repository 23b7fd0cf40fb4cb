"""A slow floor and a fast trim: forecast sets the least, load moves one worker at a time.

    floor  ceil(F / (mu h)), F the demand loop's forecast                        workers
    u      load per worker                                                       1
    up     u >= up for one act: N + 1                                            workers
    down   u N / (N - 1) < down without a break for max(down_s, flip_s): N - 1   workers
    hold   while a worker is on its way (`observe_only`), or within dwell_s of the last move

The consolidation test N/(N-1) asks what the load will be *after* the worker is gone; without it +-1 scaling flaps at
constant load whenever down N/(N-1) >= up. Waiting flip_s, the cost of a flip in worker-seconds, before giving a worker
up is the ski-rental rule: at most twice the cost of knowing the future (Karlin et al., 1988). Source: essay, sections
17 and 18; Dynamo's planner (throughput floor, +-1 every 5 s, observe-only in transition) and its issue 9294; SageServe
(2502.14617). With `consolidation` and `observe_only` off and no dwell it is the flat pair of thresholds that those
reports are about. Missing data: N stays, above its floor.
"""

from __future__ import annotations

import math
from typing import ClassVar

from orchestrator.messages import CapacityCommand, CapacityReading, PoolReading
from orchestrator.ports import Cadence
from orchestrator.turn import ConfigurationName
from policies.blocks import Measure, load, standing
from policies.design.structure import Steps
from policies.parameters import Count, NotNegative, Positive, PositiveShare, at_most


class Planner:
    """Forecast floor, one-worker trim, hysteresis in load and in time.

    Parameters
    ----------
    cadence : Cadence
    configuration : str
        The pool to scale.
    measure : {"occupancy", "kv", "turns"}
        What u is.
    up, down : float
        Thresholds on u, 0 <= down <= up.
    least_workers, most_workers : int
        Bounds.
    down_s, dwell_s, flip_s : float
        Times as above.
    headroom_ratio : float
        h: load of a worker at which the floor is sized.
    service_per_worker_per_s : float, optional
        mu; default what the plant states, turns/s.
    consolidation, observe_only : bool
        Whether the two tests are made.
    in_flight_per_worker_turns : float, optional
        Hands the admission loop a setpoint of so many turns in flight per active worker.
    """

    example: ClassVar = {"configuration": "decode", "up": 0.9, "down": 0.5, "most_workers": 30, "down_s": 120.0}
    rules = (at_most("least_workers", "most_workers"), at_most("down", "up"))

    def __init__(
        self,
        cadence: Cadence,
        *,
        configuration: str,
        measure: Measure = "occupancy",
        up: Positive,
        down: NotNegative,
        least_workers: Count = 1,
        most_workers: Count,
        down_s: NotNegative = 0.0,
        dwell_s: NotNegative = 0.0,
        flip_s: NotNegative = 0.0,
        headroom_ratio: PositiveShare = 0.8,
        service_per_worker_per_s: Positive | None = None,
        consolidation: bool = True,
        observe_only: bool = True,
        in_flight_per_worker_turns: Positive | None = None,
    ) -> None:
        self.cadence = cadence
        self.configuration, self.measure = ConfigurationName(configuration), measure
        self.up, self.down = up, down
        self.least_workers, self.most_workers = least_workers, most_workers
        self.wait_s, self.dwell_s = max(down_s, flip_s), dwell_s
        self.headroom_ratio, self.service_per_worker_per_s = headroom_ratio, service_per_worker_per_s
        self.consolidation, self.observe_only = consolidation, observe_only
        self.in_flight_per_worker_turns = in_flight_per_worker_turns
        self._low_since_s: float | None = None
        self._moved_s = -math.inf

    def scaling(self) -> Steps:
        """Return the pair of thresholds; the forecast's floor only bounds it from below."""
        return Steps(
            configuration=self.configuration,
            up=self.up,
            down=self.down,
            consolidation=self.consolidation,
            waits=self.observe_only,
        )

    def act(self, y: CapacityReading) -> CapacityCommand:
        """Say how many workers the pool should have."""
        pool = y.pools.get(self.configuration)
        if pool is None:
            return CapacityCommand()
        N = standing(pool, y)
        lowest = min(max(self._floor(y, pool), self.least_workers), self.most_workers)
        want = min(max(N + self._trim(y, pool, N), lowest), self.most_workers)
        if want != N:
            self._moved_s = y.now_s
        word = self.in_flight_per_worker_turns
        return CapacityCommand(
            target_workers={self.configuration: want},
            in_flight_setpoint_turns=None if word is None else word * pool.active_workers,
        )

    def _floor(self, y: CapacityReading, pool: PoolReading) -> int:
        F = None if y.setpoint is None else y.setpoint.forecast_per_s
        mu = self.service_per_worker_per_s or pool.service_per_worker_per_s
        floors = None if y.setpoint is None else y.setpoint.floor_workers
        stated = 0 if floors is None else floors.get(self.configuration, 0)
        if F is None or not mu:
            return stated
        return max(stated, math.ceil(min(F / (mu * self.headroom_ratio), 1e6)))

    def _trim(self, y: CapacityReading, pool: PoolReading, N: int) -> int:
        u = load(pool, y, self.measure, pool.active_workers)
        moving = pool.active_workers != N  # some are on their way, or leaving
        if u is None:
            self._low_since_s = None
            return 0
        after = u * N / (N - 1) if self.consolidation and N > 1 else u
        if after >= self.down or N <= 1:
            self._low_since_s = None
        elif self._low_since_s is None:
            self._low_since_s = y.now_s
        if (moving and self.observe_only) or y.now_s < self._moved_s + self.dwell_s:
            return 0
        if u >= self.up:
            return 1
        if self._low_since_s is not None and y.now_s >= self._low_since_s + self.wait_s:
            self._low_since_s = None
            return -1
        return 0
