"""Figures of fill and decode pools: loads that swing against each other, and capacity idle while work waits.

Stranded capacity, as shares of all that was paid for in the window:

    compute    worker-seconds in which no new token was being computed
    bandwidth  worker-seconds in which no decode step ran (a step is a scan of weights and KV state)
    decode     decode slots idle while turns waited for a fill worker
    fill       fill workers idle while filled turns waited for decode

A pass that mixes a chunk with a batch is divided: the time of the step alone, and the rest for the chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from orchestrator.clock import SLEEP, Clock
from orchestrator.messages import FILL_ROLES, Role
from orchestrator.turn import ConfigurationName
from plant.workers.pool_counters import Pool
from scenarios.catalogue.verdict import SignalVerdict
from scenarios.run.metrics import Window, bins_inside

Times = dict[str, tuple[float, float, float]]  # by configuration: worker-seconds, of them on new tokens, and on steps


class PoolWatch:
    """Read how the workers of a cluster spent their time, at the end of the warm-up and at the end of the run.

    Parameters
    ----------
    clock : Clock
    pools : mapping of ConfigurationName to Pool
    worker_seconds : callable
        Seconds that workers of each configuration have existed.
    warmup_s : float
    """

    def __init__(
        self,
        clock: Clock,
        pools: Mapping[ConfigurationName, Pool],
        worker_seconds: Callable[[], dict[str, float]],
        warmup_s: float,
    ) -> None:
        self._clock, self._pools, self._worker_seconds = clock, pools, worker_seconds
        self._before: Times = {}
        if warmup_s > 0.0:
            clock.at(warmup_s, self._begin, None, SLEEP)

    def _begin(self, _: None) -> None:
        self._before = self._times()

    def _times(self) -> Times:
        existed, now_s = self._worker_seconds(), self._clock.now()
        return {
            name: (existed.get(name, 0.0), pool.compute_s(now_s), pool.step_span_s(now_s))
            for name, pool in self._pools.items()
            if pool.spec.role is not Role.IDLE and pool.spec.times is not None
        }

    def gained(self) -> Times:
        """Return what each configuration has spent since the end of the warm-up."""
        none = (0.0, 0.0, 0.0)
        return {
            name: (now[0] - then[0], now[1] - then[1], now[2] - then[2])
            for name, now in self._times().items()
            for then in (self._before.get(name, none),)
        }


def stranded(times: Times, pools: Mapping[ConfigurationName, Pool], signals: pd.DataFrame, window_s: Window) -> Any:
    """Return the shares of capacity that lay idle in the window; a stage that no pool serves by itself is None.

    Parameters
    ----------
    times : dict
        Of `PoolWatch.gained`.
    pools : mapping of ConfigurationName to Pool
    signals : DataFrame
        The run's record.
    window_s : (float, float)
        From and to, seconds.
    """
    paid_s = sum(each[0] for each in times.values())
    if paid_s <= 0.0:
        return None
    inside, _ = bins_inside(signals, window_s)

    def level(name: str) -> np.ndarray:
        return signals[name].to_numpy(dtype=float)[inside]

    fills = [name for name, pool in pools.items() if pool.spec.role in FILL_ROLES]
    workers = sum((level(f"pool.{name}.active_workers_mean") for name in fills), np.zeros(int(inside.sum())))
    filling, ready = level("filling_turns_mean"), level("ready_turns_mean")
    slots, decoding = level("slots"), level("decoding_turns_mean")
    divided = len(filling) > 0 and float(workers.sum()) > 0.0 and float(slots.sum()) > 0.0
    idle_decode = np.minimum(np.maximum(slots - decoding, 0.0), np.maximum(filling - workers, 0.0))
    idle_fill = np.minimum(np.maximum(workers - filling, 0.0), ready)
    return {
        "compute_ratio": 1.0 - sum(each[1] for each in times.values()) / paid_s,
        "bandwidth_ratio": 1.0 - sum(each[2] for each in times.values()) / paid_s,
        "decode_ratio": float(idle_decode.sum() / slots.sum()) if divided else None,
        "fill_ratio": float(idle_fill.sum() / workers.sum()) if divided else None,
        "by_pool": {
            name: {"compute_ratio": 1.0 - compute_s / own_s, "bandwidth_ratio": 1.0 - steps_s / own_s}
            for name, (own_s, compute_s, steps_s) in times.items()
            if own_s > 0.0
        },
    }


def swing(signals: pd.DataFrame, window_s: Window, verdicts: Mapping[str, SignalVerdict]) -> dict[str, Any] | None:
    """Return how the loads of fill and decode move beside each other; None where a stage never holds a turn.

    `fill_swing_ratio`, `decode_swing_ratio`: standard deviation of turns in the stage over their mean. Where turns in
    flight cycle: `period_s`, and `behind_deg`, how far decode trails fill at that period; at 180 degrees the loads are
    in anti-phase. A gate on decode load drives both, decode after the fill of L seconds, fill as the sum of the last L,
    so decode trails by 180 (1 - L / period) degrees.
    """
    inside, _ = bins_inside(signals, window_s)
    fill, decode = (
        signals[f"{name}_turns_mean"].to_numpy(dtype=float)[inside] if f"{name}_turns_mean" in signals else np.zeros(0)
        for name in ("filling", "decoding")
    )
    if len(fill) < 2 or not fill.mean() > 0.0 or not decode.mean() > 0.0:
        return None
    figures: dict[str, Any] = {
        "fill_swing_ratio": float(fill.std() / fill.mean()),
        "decode_swing_ratio": float(decode.std() / decode.mean()),
        "period_s": None,
        "behind_deg": None,
    }
    cycle = verdicts.get("in_flight_turns")
    start = signals["t_s"].to_numpy(dtype=float)
    if cycle is None or not cycle.oscillates or cycle.period_s is None or len(start) < 2:
        return figures
    step_s = float(start[1] - start[0])
    segment = min(round(4 * cycle.period_s / step_s), len(fill) // 3)
    from scipy import signal  # slow to import, and only pools that swing need it

    frequency, cross = signal.csd(signal.detrend(fill), signal.detrend(decode), fs=1.0 / step_s, nperseg=segment)
    at = int(np.argmin(np.abs(frequency - 1.0 / cycle.period_s)))
    behind_deg = float(-np.degrees(np.angle(cross[at])) % 360.0)
    return figures | {"period_s": cycle.period_s, "behind_deg": behind_deg}
