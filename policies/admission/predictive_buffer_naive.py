"""Predictive buffer as one would first write it: the present retirement rate as service rate. Kept for the lesson.

    r     mean(retired/s), exponential over tau                         turns/s
    u     r + k (B* - (W - N - r L))                                    turns/s   (symbols of `predictive_buffer`)

A starved pool retires little, and this estimate believes it: the loop has a slow root (for N = 512, L = 10 s, T = 5 s
and tau = 2 L at -0.0071/s, 141 s), so a cold start crawls. Source: Dynamo issue 12430, a capacity model that learns
from a pool which is not full. Missing data: until the first retirement, the scenario's stated rate.
"""

from __future__ import annotations

import math

from orchestrator.messages import AdmissionReading
from policies.admission.predictive_buffer import PredictiveBuffer
from policies.design.structure import Smooth
from policies.design.tandem_model import TandemModel, predictive_on_retirements


class PredictiveBufferNaive(PredictiveBuffer):
    """`PredictiveBuffer` with the present retirement rate as the service rate: kept for the lesson."""

    _rate: float | None = None

    def structure(self, model: TandemModel) -> Smooth:
        """Return u = (1 + k L) r - k W with r the filtered retirements."""
        N, L = model.slots, self.dead_time_s
        return Smooth(
            linear=predictive_on_retirements(self.k_per_s, self.tau_s, L),
            setpoint_turns=N * (1.0 + self.buffer_ratio) + model.service_per_s * L,
            rate_per_s=model.service_per_s,
            on="in_flight",
        )

    def _full_rate(self, y: AdmissionReading) -> float:
        """Return the retirement rate, as if the pool were full."""
        before, self._before = self._before, y
        if before is not None and y.at_s > before.at_s and y.retired_total > 0:
            span_s = y.at_s - before.at_s
            seen = (y.retired_total - before.retired_total) / span_s
            if self._rate is None:
                self._rate = self.full_per_s
            self._rate += (1.0 - math.exp(-span_s / self.tau_s)) * (seen - self._rate)
        return self.full_per_s if self._rate is None else self._rate
