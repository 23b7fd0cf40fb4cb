"""Predict the ready buffer as `predictive_buffer` does, with dead time and service identified as it goes.

    age   now - the instant at which as many were released as have been filled by now       s
    L     mean age over fills, forgotten at rate 1/tau; at least the present age            s
    r     N x (retired / busy slot-seconds), both forgotten at rate 1/tau                   turns/s
    tau   laps (L + N/r)                                                                    s
    W*    N + r L + B*                                                                      turns
    u     r + k (W* - W)                                                                    turns/s
    k     1 / (L + h + 2 A)                                                                 1/s
    N, W, B*   decode slots; turns released and not retired; buffer_ratio N                 turns
    h, A       period of this law; age of the reading                                       s

The release and fill counters are the same curve, L apart, so their horizontal distance is the dead time whatever the
rate was in between; while nothing has been filled it is a lower bound, and counts as one. r is the rate of a *full*
pool, from what busy slots retire. Both start with the stated values as if these had been seen for one tau, and never
leave [1/most_ratio, most_ratio] times them. Source: essay, section 18; a certainty-equivalent self-tuning regulator
(Astrom and Wittenmark, "Adaptive Control", 2nd ed. 1995, chapters 2 and 3: forgetting, bounds on estimates) of a Smith
predictor (1957). Missing data: a reading that is not newer changes no estimate; as it ages k A stays below 1/2 and k
falls to 0, so that a blind law paces at the last r. Without fills L stays where it was, without busy slots r does.
"""

from __future__ import annotations

import math
from collections import deque
from typing import ClassVar

from orchestrator.messages import AdmissionCommand, AdmissionReading
from orchestrator.ports import Cadence, Every
from policies.design.structure import Smooth
from policies.design.tandem_model import TandemModel, proportional_on_work
from policies.parameters import NotNegative, Positive

# The release counter is kept at this many points a stated dead time, for at most `POINTS`: sixteen dead times.
POINTS_A_DEAD_TIME, POINTS = 256, 4096


class SelfTuningPredictor:
    """Smith predictor on the ready buffer that identifies its own model.

    Parameters
    ----------
    cadence : Cadence
    dead_time_s, full_per_s : float
        L and r as stated, the first estimates.
    buffer_ratio : float
        B* / N, >= 0.
    laps : float
        tau in laps L + N/r.
    most_ratio : float
        How far an estimate may leave the stated value, as a factor either way, >= 1.
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
        laps: Positive = 2.0,
        most_ratio: Positive = 4.0,
    ) -> None:
        self.cadence = cadence
        self.dead_time_s, self.full_per_s = dead_time_s, full_per_s
        self.buffer_ratio, self.laps, self.most_ratio = buffer_ratio, laps, max(most_ratio, 1.0)
        self.h = cadence.period_s if isinstance(cadence, Every) else 0.0
        self.L, self.r = dead_time_s, full_per_s
        self._released: deque[tuple[float, float]] = deque(maxlen=POINTS)
        self._filled = self._ages_s = self._retired = self._busy_s = 0.0
        self._before: AdmissionReading | None = None

    def act(self, y: AdmissionReading) -> AdmissionCommand:
        """Set the release rate."""
        self._identify(y)
        N, W, L, r = y.slots, y.in_flight_turns, self.L, self.r
        k = 1.0 / (L + self.h + 2.0 * max(0.0, y.now_s - y.at_s))
        u = r + k * (N + r * L + self.buffer_ratio * N - W)
        return AdmissionCommand(release_per_s=max(0.0, u))

    def structure(self, model: TandemModel) -> Smooth:
        """Return u = -k W about N + r L + B*, with the estimates where they settle: at the plant's own L and r."""
        N, r = model.slots, self._within(model.service_per_s, self.full_per_s)
        L = self._within(model.dead_time_s, self.dead_time_s)
        return Smooth(
            linear=proportional_on_work(1.0 / (L + self.h + 2.0 * max(0.0, model.observation_s - 0.5 * self.h))),
            setpoint_turns=N * (1.0 + self.buffer_ratio) + r * L,
            rate_per_s=r,
            on="in_flight",
        )

    def _identify(self, y: AdmissionReading) -> None:
        before = self._before
        if before is not None and y.at_s <= before.at_s:
            return
        self._before = y
        if before is None:
            tau = self.laps * (self.L + y.slots / self.r)
            self._retired, self._busy_s = self.r * tau, y.slots * tau
            self._filled, self._ages_s = self.r * tau, self.r * tau * self.L
            self._released.append((y.at_s, y.released_total))
            return
        span_s = y.at_s - before.at_s
        tau = self.laps * (self.L + y.slots / self.r)
        keep = math.exp(-span_s / max(tau, 1e-9))
        self._retired = keep * self._retired + max(0.0, y.retired_total - before.retired_total)
        self._busy_s = keep * self._busy_s + span_s * 0.5 * (y.busy_slots + before.busy_slots)
        if self._retired > 0.0 and self._busy_s > 0.0:
            self.r = self._within(y.slots * self._retired / self._busy_s, self.full_per_s)
        self._identify_dead_time(y, before, keep)

    def _identify_dead_time(self, y: AdmissionReading, before: AdmissionReading, keep: float) -> None:
        if y.at_s - self._released[-1][0] >= self.dead_time_s / POINTS_A_DEAD_TIME:
            self._released.append((y.at_s, y.released_total))
        filled = y.released_total - y.filling_turns
        fills = max(0.0, filled - (before.released_total - before.filling_turns))
        while len(self._released) > 1 and self._released[1][1] <= filled:
            self._released.popleft()
        age = y.at_s - self._released_at(filled) if y.filling_turns > 0.0 else 0.0
        self._filled = keep * self._filled + fills
        self._ages_s = keep * self._ages_s + fills * age
        if self._filled > 0.0:
            self.L = self._within(max(self._ages_s / self._filled, age), self.dead_time_s)

    def _released_at(self, count: float) -> float:
        """Return when the release counter stood at a count, between the points that are kept."""
        (at_s, low), (next_s, high) = self._released[0], self._released[min(1, len(self._released) - 1)]
        return at_s + (next_s - at_s) * (min(max(count, low), high) - low) / (high - low) if high > low else at_s

    def _within(self, value: float, stated: float) -> float:
        return min(max(value, stated / self.most_ratio), stated * self.most_ratio)
