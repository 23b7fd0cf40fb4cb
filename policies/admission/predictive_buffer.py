"""Hold the ready buffer that will be there when today's releases arrive.

    r     rate of a full pool: N x mean(retired/s) / mean(busy slots)   turns/s   (exponential means over tau)
    b     buffer predicted at t + L: W - N - r L                        turns
    u     release rate: r + k (B* - b)                                  turns/s
    N     decode slots                                                  turns
    W     turns released and not retired                                turns
    L     dead time assumed                                             s
    B*    ready turns wanted, buffer_ratio N                            turns
    tau   span of the means, default 2 L                                s
    k     gain, default 1/L                                             1/s

W counts the pipeline, so this is a Smith predictor (Smith, 1957) whose model is one measured number. r must be the
rate of a *full* pool: see `predictive_buffer_naive` for what the plain retirement rate does. Source: essay, section 18
("regulate admission from smoothed backlog and predicted service rate"); Mooncake's prediction-based early rejection.
Missing data: until the first retirement, r is the rate stated by the scenario.
"""

from __future__ import annotations

import math
from typing import ClassVar

from orchestrator.messages import AdmissionCommand, AdmissionReading
from orchestrator.ports import Cadence
from policies.design.structure import Smooth
from policies.design.tandem_model import TandemModel, proportional_on_work
from policies.parameters import NotNegative, Positive


class PredictiveBuffer:
    """Smith predictor on the ready buffer, with the full pool's rate measured as it goes.

    Parameters
    ----------
    cadence : Cadence
    dead_time_s : float
        L as assumed, > 0.
    full_per_s : float
        r until the first retirement, turns/s.
    buffer_ratio : float
        B* / N, >= 0.
    tau_s, k_per_s : float, optional
        Default 2 L and 1/L.
    """

    monotone = (("in_flight_turns", "release_per_s", -1),)
    example: ClassVar = {"dead_time_s": 0.5, "full_per_s": 40}

    def __init__(
        self,
        cadence: Cadence,
        *,
        dead_time_s: Positive,
        full_per_s: Positive,
        buffer_ratio: NotNegative = 0.1,
        tau_s: Positive | None = None,
        k_per_s: Positive | None = None,
    ) -> None:
        self.cadence = cadence
        self.dead_time_s, self.full_per_s, self.buffer_ratio = dead_time_s, full_per_s, buffer_ratio
        self.tau_s = 2.0 * dead_time_s if tau_s is None else tau_s
        self.k_per_s = 1.0 / dead_time_s if k_per_s is None else k_per_s
        self._retired = self._busy_s = 0.0
        self._before: AdmissionReading | None = None

    def act(self, y: AdmissionReading) -> AdmissionCommand:
        """Set the release rate."""
        N, W, L, k = y.slots, y.in_flight_turns, self.dead_time_s, self.k_per_s
        r = self._full_rate(y)
        b = W - N - r * L
        u = r + k * (self.buffer_ratio * N - b)
        return AdmissionCommand(release_per_s=max(0.0, u))

    def structure(self, model: TandemModel) -> Smooth:
        """Return u = -k W about N + r L + B*; r is the full pool's rate whatever the pool does."""
        N, r, L = model.slots, model.service_per_s, self.dead_time_s
        return Smooth(
            linear=proportional_on_work(self.k_per_s),
            setpoint_turns=N * (1.0 + self.buffer_ratio) + r * L,
            rate_per_s=r,
            on="in_flight",
        )

    def _full_rate(self, y: AdmissionReading) -> float:
        """Return N x retired / busy slot-seconds, both forgotten at rate 1/tau; their ratio starts without bias."""
        before, self._before = self._before, y
        if before is not None and y.at_s > before.at_s:
            span_s = y.at_s - before.at_s
            keep = math.exp(-span_s / self.tau_s)
            self._retired = keep * self._retired + (y.retired_total - before.retired_total)
            self._busy_s = keep * self._busy_s + span_s * 0.5 * (y.busy_slots + before.busy_slots)
        if self._retired <= 0.0 or self._busy_s <= 0.0:
            return self.full_per_s
        return y.slots * self._retired / self._busy_s
