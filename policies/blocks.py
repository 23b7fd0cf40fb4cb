"""Small parts that several laws share: a mean that forgets, Little's sojourn time, a pool's load, a binary sequence."""

from __future__ import annotations

import math
from typing import Literal

from orchestrator.messages import AdmissionReading, CapacityReading, PoolReading, Role

Measure = Literal["occupancy", "kv", "turns"]


class Mean:
    """Exponentially weighted mean over time: a sample that stood for dt seconds weighs 1 - exp(-dt / tau)."""

    __slots__ = ("_at_s", "tau_s", "value")

    def __init__(self, tau_s: float) -> None:
        self.tau_s = tau_s
        self.value: float | None = None
        self._at_s = -math.inf

    def update(self, value: float, at_s: float) -> float:
        """Take in a value sampled at `at_s`, seconds; a sample that is not newer changes nothing."""
        if self.value is None or self.tau_s <= 0.0:
            self.value = value
        elif at_s > self._at_s:
            self.value += -math.expm1(-(at_s - self._at_s) / self.tau_s) * (value - self.value)
        self._at_s = max(self._at_s, at_s)
        return self.value


class Sojourn:
    """Time from release to retirement without a stopwatch: mean turns in flight / turns retired per second.

    One value a window, which closes once it is `window_s` long and has seen `least_turns` retire. Source: Little, "A
    proof for the queuing formula L = lambda W" (1961).
    """

    __slots__ = ("_at_s", "_flown", "_retired", "_since_s", "in_flight_turns", "least_turns", "window_s")

    def __init__(self, window_s: float, least_turns: float) -> None:
        self.window_s, self.least_turns = window_s, least_turns
        self._since_s = self._at_s = math.nan
        self._flown = self._retired = 0.0
        self.in_flight_turns = 0.0

    def update(self, y: AdmissionReading) -> float | None:
        """Take in a reading; return the sojourn in seconds when a window closes, else None."""
        if math.isnan(self._since_s):
            self._since_s = self._at_s = y.at_s
            self._retired = y.retired_total
            return None
        if y.at_s <= self._at_s:
            return None
        self._flown += y.in_flight_turns * (y.at_s - self._at_s)
        self._at_s = y.at_s
        span_s, retired = self._at_s - self._since_s, y.retired_total - self._retired
        if span_s < self.window_s or retired < max(self.least_turns, 1.0):
            return None
        self.in_flight_turns = self._flown / span_s
        sojourn_s = self._flown / retired
        self._since_s, self._retired, self._flown = self._at_s, y.retired_total, 0.0
        return sojourn_s if sojourn_s > 0.0 else None


def standing(pool: PoolReading, y: CapacityReading) -> int:
    """Return how many workers the pool has or is getting: what the actuator has taken on, or else what is there."""
    taken = y.applied.target_workers
    there = pool.active_workers + pool.pending_workers
    return there if taken is None else taken.get(pool.configuration, there)


def load(pool: PoolReading, y: CapacityReading, measure: Measure, workers: int) -> float | None:
    """Return the load of each of `workers`, or None where it is not measured.

    `occupancy`: busy slots / slots. `kv`: KV tokens used / capacity. `turns`: turns at a worker, those that wait for
    the pool included (at the door for fill and aggregated pools, ready for decode pools). Ratios are those of the
    active workers, spread over `workers`.
    """
    if workers <= 0 or pool.active_workers <= 0:
        return None
    if measure == "turns":
        waiting = y.ready_turns if pool.role is Role.DECODE else y.backlog_turns
        return (pool.busy_slots + pool.queued_turns + waiting) / workers
    if measure == "kv":
        if not pool.kv_capacity_tokens or pool.kv_used_tokens is None:
            return None
        used = pool.kv_used_tokens / pool.kv_capacity_tokens
    else:
        if pool.slots <= 0:
            return None
        used = pool.busy_slots / pool.slots
    return used * pool.active_workers / workers


def maximal_sequence() -> tuple[int, ...]:
    """Return one period of a 7-bit shift register, 127 bits of which 64 are ones: b[n] = b[n-6] xor b[n-7].

    Source: Golomb, "Shift Register Sequences" (1967).
    """
    bits = [1] * 7
    while len(bits) < 127:
        bits.append(bits[-6] ^ bits[-7])
    return tuple(bits)
