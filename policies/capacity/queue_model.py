"""Size a pool by queueing theory: the fewest workers whose predicted wait is short enough.

    lambda  turns a second: the forecast, else the arrivals, mean over tau        turns/s
    mu      turns a second of one full worker, mean over tau                      turns/s
    W(rho)  rho / (1 - rho) x (1 + cv^2) / (2 mu)   M/G/1, each worker a queue    s
    rho*    w mu / (w mu + (1 + cv^2) / 2)          where W = w                   1
    n       ceil(lambda / (mu rho*)), down only where band ratio remains free     workers

mu `stated` is the plant's own model of a full worker; `measured` is turns served / worker-seconds, which believes that
an idle or a starting worker is a slow one (Dynamo issue 12430). Source: Pollaczek and Khinchine, as in Harchol-Balter,
"Performance Modeling and Design of Computer Systems" (2013), ch. 23; Dynamo's SLA planner divides demand by a worker's
rate in the same way. Missing data: n stays.
"""

from __future__ import annotations

import math
from typing import Annotated, ClassVar, Literal

from annotated_types import MinLen

from orchestrator.messages import CapacityCommand, CapacityReading, PoolReading
from orchestrator.ports import Cadence
from orchestrator.turn import ConfigurationName
from policies.blocks import Mean, standing
from policies.design.structure import FeedForward
from policies.parameters import Count, NotNegative, Positive, at_most


class QueueModel:
    """The fewest workers whose predicted wait is short enough, for each configuration.

    Parameters
    ----------
    cadence : Cadence
    configurations : sequence of str
        Pools to size; each serves every turn once.
    wait_s : float
        w, mean wait allowed at each pool, > 0.
    least_workers, most_workers : int
        Bounds for each pool.
    service : {"stated", "measured"}
        Where mu comes from.
    cv_ratio : float
        Coefficient of variation of the service time.
    band_ratio : float
        Free share of the next smaller pool's capacity that lets it be smaller.
    tau_s : float
        Span of the means.
    """

    no_linearisation = (
        "it measures the service rate of its own idle workers: each worker more lowers the estimate, and there "
        "is no size at which it rests"
    )
    example: ClassVar = {"configurations": ["prefill", "decode"], "wait_s": 0.5, "most_workers": 40}
    rules = (at_most("least_workers", "most_workers"),)

    def __init__(
        self,
        cadence: Cadence,
        *,
        configurations: Annotated[tuple[str, ...], MinLen(1)],
        wait_s: Positive,
        least_workers: Count = 1,
        most_workers: Count,
        service: Literal["stated", "measured"] = "stated",
        cv_ratio: NotNegative = 1.0,
        band_ratio: NotNegative = 0.1,
        tau_s: NotNegative = 60.0,
    ) -> None:
        self.cadence = cadence
        self.names = tuple(ConfigurationName(name) for name in configurations)
        self.wait_s, self.cv_ratio, self.band_ratio, self.service = wait_s, cv_ratio, band_ratio, service
        self.least_workers, self.most_workers = least_workers, most_workers
        self._rate = Mean(tau_s)
        self._mu = {name: Mean(tau_s) for name in self.names}
        self._served: dict[ConfigurationName, tuple[float, int]] = {}

    def scaling(self) -> FeedForward | None:
        """Return demand through a lag, where the service rate is the plant's own word; None where it is measured."""
        if self.service == "measured":
            return None
        return FeedForward(configurations=self.names, lag_s=self._rate.tau_s)

    def workers_per_rate(self, mu_per_s: float) -> float:
        """Return 1 / (mu rho*), workers for a turn a second, for workers of this rate (turns/s)."""
        return (self.wait_s * mu_per_s + 0.5 * (1.0 + self.cv_ratio**2)) / (self.wait_s * mu_per_s**2)

    def act(self, y: CapacityReading) -> CapacityCommand:
        """Say how many workers each pool should have."""
        if y.arrival_per_s is not None:
            self._rate.update(y.arrival_per_s, y.at_s)
        forecast = None if y.setpoint is None else y.setpoint.forecast_per_s
        rate = self._rate.value if forecast is None else forecast
        targets = {}
        for name in self.names:
            pool = y.pools.get(name)
            if pool is not None:
                mu = self._service(name, pool, y.at_s)
                n = standing(pool, y)
                targets[name] = n if rate is None or mu is None or mu <= 0.0 else self._size(rate, mu, n)
        return CapacityCommand(target_workers=targets)

    def _size(self, rate: float, mu: float, n: int) -> int:
        load = rate * self.workers_per_rate(mu)
        want = math.ceil(min(load, 1e6) - 1e-9)
        if want < n:  # hysteresis: go down only where the smaller pool would have room to spare
            want = min(n, math.ceil(min(load * (1.0 + self.band_ratio), 1e6) - 1e-9))
        return min(max(want, self.least_workers), self.most_workers)

    def _service(self, name: ConfigurationName, pool: PoolReading, at_s: float) -> float | None:
        if self.service == "stated":
            seen = pool.service_per_worker_per_s
        else:
            before, self._served[name] = self._served.get(name), (at_s, pool.served_total)
            span_s = 0.0 if before is None else at_s - before[0]
            workers = pool.active_workers
            seen = (pool.served_total - before[1]) / (span_s * workers) if before and span_s > 0 and workers else None
        if seen is not None and seen >= 0.0:
            self._mu[name].update(seen, at_s)
        return self._mu[name].value
