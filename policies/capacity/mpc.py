"""Model-predictive sizing: plan a horizon of worker counts against the forecast, do the first step, plan again.

    n_k    workers that serve at tick k                                       workers
    r_k    workers needed at tick k: forecast / (mu h)                        workers
    s_k    shortage, s_k >= r_k - n_k, s_k >= 0                               workers
    min    sum_k  a s_k^2 + b n_k + c (n_k - n_{k-1})^2                       -
    with   n_k = n_0 for k < d (workers asked for now serve d ticks later), bounds on n

c suppresses moves; d is the start-up delay in ticks, so what is on its way is in the model. The first free count is
rounded with hysteresis: it moves to a whole number only when it is more than `round_ratio` away from the present one.
Source: Rawlings, Mayne and Diehl, "Model Predictive Control" (2017), ch. 1; solved with OSQP (Stellato et al., 2020).
Missing data: without a forecast, the arrivals; without those, n stays.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge, Le, Lt

from orchestrator.messages import CapacityCommand, CapacityReading
from orchestrator.ports import Cadence
from orchestrator.turn import ConfigurationName
from policies.blocks import Mean, standing
from policies.parameters import Count, CountOrZero, NotNegative, Positive, PositiveShare, at_most


class Mpc:
    """Receding-horizon sizing of one pool.

    Parameters
    ----------
    cadence : Cadence
    configuration : str
    least_workers, most_workers : int
        Bounds.
    delay_ticks : int
        d, ticks from a command to a serving worker.
    horizon_ticks : int
        Length of the plan, > delay_ticks.
    headroom_ratio : float
        h: load of a worker at which it counts as needed.
    shortage_weight, worker_weight, move_weight : float
        a, b, c.
    round_ratio : float
        Distance from the present count at which rounding gives way, in [0.5, 1).
    service_per_worker_per_s : float, optional
        mu; default what the plant states, turns/s.
    tau_s : float
        Span of the mean of arrivals.
    """

    no_linearisation = (
        "a quadratic programme with bounds, rounded to whole workers: piecewise affine, with its own orders and "
        "their delay inside the model, so no unseen delay is left in its loop"
    )
    example: ClassVar = {"configuration": "decode", "most_workers": 40}
    rules = (at_most("least_workers", "most_workers"),)

    def __init__(
        self,
        cadence: Cadence,
        *,
        configuration: str,
        least_workers: Count = 1,
        most_workers: Count,
        delay_ticks: CountOrZero = 1,
        horizon_ticks: Annotated[int, Ge(2), Le(200)] = 20,
        headroom_ratio: PositiveShare = 0.8,
        shortage_weight: Positive = 10.0,
        worker_weight: Positive = 1.0,
        move_weight: NotNegative = 1.0,
        round_ratio: Annotated[float, Ge(0.5), Lt(1.0)] = 0.6,
        service_per_worker_per_s: Positive | None = None,
        tau_s: NotNegative = 60.0,
    ) -> None:
        import osqp  # here, where it is needed: it takes a while

        self.cadence = cadence
        self.configuration = ConfigurationName(configuration)
        self.least_workers, self.most_workers = least_workers, most_workers
        self.headroom_ratio, self.round_ratio = headroom_ratio, round_ratio
        self.service_per_worker_per_s = service_per_worker_per_s
        self._rate = Mean(tau_s)
        self._H, self._d = horizon_ticks, min(delay_ticks, horizon_ticks - 1)
        self._solver: Any = osqp.OSQP()
        self._setup(shortage_weight, worker_weight, move_weight)

    def act(self, y: CapacityReading) -> CapacityCommand:
        """Say how many workers the pool should have."""
        pool = y.pools.get(self.configuration)
        if pool is None:
            return CapacityCommand()
        if y.arrival_per_s is not None:
            self._rate.update(y.arrival_per_s, y.at_s)
        forecast = None if y.setpoint is None else y.setpoint.forecast_per_s
        rate = self._rate.value if forecast is None else forecast
        mu = self.service_per_worker_per_s or pool.service_per_worker_per_s
        n = standing(pool, y)
        if rate is None or not mu:
            return CapacityCommand(target_workers={self.configuration: n})
        most = float(self.most_workers)
        need = min(rate / (mu * self.headroom_ratio), 2.0 * most)
        planned = self._plan(float(min(n, self.most_workers)), min(need, 1e4))
        want = n
        if abs(planned - n) > self.round_ratio:
            want = int(
                np.floor(planned + 1.0 - self.round_ratio) if planned > n else np.ceil(planned - 1.0 + self.round_ratio)
            )
        want = min(max(want, self.least_workers), self.most_workers)
        return CapacityCommand(target_workers={self.configuration: want})

    def _setup(self, a: float, b: float, c: float) -> None:
        """Build the program once; only bounds change from act to act. Variables: n_1..n_H, s_1..s_H."""
        from scipy import sparse  # slow to import, and only this law needs it

        H = self._H
        steps = sparse.csc_array(np.eye(H) - np.eye(H, k=-1))
        self._c, eye = c, sparse.eye_array(H)
        P = sparse.block_diag([2 * c * (steps.T @ steps), 2 * a * eye], format="csc")
        self._q = np.concatenate([np.full(H, b), np.zeros(H)])
        A = sparse.vstack(
            [
                sparse.hstack([eye, eye]),  # n + s >= r
                sparse.hstack([eye, sparse.csc_array((H, H))]),  # bounds of n
                sparse.hstack([sparse.csc_array((H, H)), eye]),  # s >= 0
            ],
            format="csc",
        )
        self._upper = np.concatenate([np.full(H, np.inf), np.full(H, float(self.most_workers)), np.full(H, np.inf)])
        self._lower = np.concatenate([np.zeros(H), np.full(H, float(self.least_workers)), np.zeros(H)])
        self._solver.setup(
            sparse.csc_matrix(P),
            self._q,
            sparse.csc_matrix(A),
            self._lower,
            self._upper,
            verbose=False,
            eps_abs=1e-5,
            eps_rel=1e-5,
        )

    def _plan(self, n: float, need: float) -> float:
        H, d = self._H, self._d
        lower, upper, q = self._lower.copy(), self._upper.copy(), self._q.copy()
        lower[:H] = need
        lower[H : H + d] = upper[H : H + d] = n  # what serves before the delay is over is decided
        if d == 0:
            q[0] -= 2.0 * self._c * n  # the first move is measured from n
        self._solver.update(q=q, l=lower, u=upper)
        self._solver.warm_start(x=np.concatenate([np.full(H, n), np.zeros(H)]), y=np.zeros(3 * H))
        solution = self._solver.solve(raise_error=False)
        return float(solution.x[d]) if solution.x is not None and np.isfinite(solution.x[d]) else n
