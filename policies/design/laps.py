"""Laps of a computed flow: period, swing and means of a cycle that has settled.

Everything here is of a path without noise; for records of runs there is the verdict.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from policies.design.flow import Path

Floats = NDArray[np.float64]
LEAST_LAPS = 3.0
SAME = 0.9
"""The first lag whose correlation reaches this share of the best one is the period."""
LEAST_SWING = 1e-3
"""Half of the swing, as a share of the scale, below which a path is at rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lap:
    """Period in seconds; lowest and highest level of a mean lap and amplitude of its fundamental, in turns.

    `kept_ratio`: the swing of the last third of the laps over that of the first (1: it keeps itself).
    """

    period_s: float
    trough: float
    peak: float
    fundamental: float
    kept_ratio: float

    @property
    def amplitude(self) -> float:
        """Return half of the peak-to-peak swing."""
        return (self.peak - self.trough) / 2


def lap_of(series: Floats, step_s: float, scale: float) -> Lap | None:
    """Return the lap of a series in turns; None where it rests, or shows fewer than three laps."""
    if len(series) < 16 or float(np.ptp(series)) / 2 < LEAST_SWING * scale:
        return None
    lag = _period_steps(series)
    if lag is None or len(series) < LEAST_LAPS * lag:
        return None
    laps = int(len(series) / lag)
    edges = np.linspace(len(series) - laps * lag, len(series), laps + 1).astype(int)
    highs = np.array([series[a:b].max() for a, b in pairwise(edges)])
    lows = np.array([series[a:b].min() for a, b in pairwise(edges)])
    third = max(laps // 3, 1)
    swing = highs - lows
    between_edges = series[edges[0] :]
    wave = np.exp(-2j * np.pi * np.arange(len(between_edges)) / lag)
    return Lap(
        period_s=lag * step_s,
        trough=float(lows.mean()),
        peak=float(highs.mean()),
        fundamental=float(2 * np.abs(np.mean((between_edges - between_edges.mean()) * wave))),
        kept_ratio=float(swing[-third:].mean() / max(swing[:third].mean(), 1e-300)),
    )


def _period_steps(series: Floats) -> float | None:
    x = series - series.mean()
    n = len(x)
    size = 1 << (2 * n - 1).bit_length()
    raw = np.fft.irfft(np.abs(np.fft.rfft(x, size)) ** 2, size)[: n * 2 // 3]
    acf = raw / raw[0] * n / (n - np.arange(len(raw)))
    below = np.flatnonzero(acf < 0)
    if len(below) == 0:
        return None
    tops = np.flatnonzero((acf[1:-1] > acf[:-2]) & (acf[1:-1] >= acf[2:])) + 1
    tops = tops[tops > below[0]]
    if len(tops) == 0 or float(acf[tops].max()) < 0.2:
        return None
    first = float(tops[np.flatnonzero(acf[tops] >= SAME * float(acf[tops].max()))[0]])
    # A later whole lap shows the same period with a smaller error of reading.
    for laps in (2, 4, 8, 16):
        centre = round(laps * first)
        if centre + first / 4 >= len(acf):
            break
        near = slice(round(centre - first / 4), round(centre + first / 4) + 1)
        first = (near.start + int(np.argmax(acf[near]))) / laps
    return first


def mean_ratio(path: Path, slots: float) -> float:
    """Return the mean share of busy slots of a path."""
    return float(path.busy.mean()) / slots
