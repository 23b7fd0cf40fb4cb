"""From a noise-free flow to a prediction: its word, period, swing and utilisation, and what noise may make of them."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import numpy as np

from policies.design.flow import Path
from policies.design.laps import Lap, lap_of, mean_ratio
from scenarios.analyze.model import Plant
from scenarios.analyze.prediction import Prediction, quiet_word
from scenarios.analyze.tolerance import noise_kept_se, swing_tolerance
from scenarios.catalogue.verdict import Word
from scenarios.verdict.thresholds import THRESHOLDS

# Noise lengthens a clipped cycle by a share of (sd of the open pool / amplitude)^2: 0.06 to 0.08 of it in runs of 125
# to 4,000 slots at 1.2 and 1.5 times the Hopf gain. The flow has no noise, so that much is allowed for.
NOISE_SHARE = 0.1
# How far such a cycle still is from keeping its phase: the damping of the gain that clipping in noise leaves, at most.
ZETA_LEFT = 0.03
# A fundamental within this factor of the verdict's floor may be read either way.
NEAR_FLOOR = 1.4
# Noise of the busy slots above this share of the swing makes a cycle irregular.
RULES = 0.5


def noise_sd_turns(plant: Plant, busy_turns: float) -> float:
    """Return the standard deviation of busy slots that differing residences alone would make, turns."""
    return sqrt(max(busy_turns, 0.0)) * min(plant.shape.cv, 1.0) if plant.noisy else 0.0


def from_path(base: Prediction, path: Path, plant: Plant, window_s: tuple[float, float]) -> Prediction:
    """Return a prediction with word, period, swing and utilisation of a flow; the rest stays as in `base`."""
    used = mean_ratio(path, plant.slots)
    lap = lap_of(path.busy, path.step_s, plant.slots)
    floor = THRESHOLDS.amplitude_ratio
    height = 0.0 if lap is None else lap.fundamental / plant.slots
    if lap is None or height < floor:
        also: frozenset[Word] = frozenset()
        if lap is not None and height > floor / NEAR_FLOOR:
            also = frozenset({"limit_cycle", "quasi_cycle", "ringing"})
        return replace(
            base,
            verdict=quiet_word(plant),
            period_s=None,
            amplitude_ratio=None,
            damping_ratio=None,
            utilization_ratio=used,
            also=also,
        )
    return _cycle(base, lap, used, plant, window_s)


def _cycle(base: Prediction, lap: Lap, used: float, plant: Plant, window_s: tuple[float, float]) -> Prediction:
    sd = noise_sd_turns(plant, used * plant.slots)
    decays = lap.kept_ratio < 1 / THRESHOLDS.decay_factor
    also: set[Word] = set()
    if lap.fundamental / plant.slots < NEAR_FLOOR * THRESHOLDS.amplitude_ratio or decays:
        also |= {"steady", "quasi_cycle"}
    if lap.kept_ratio < 0.7:
        also |= {"ringing", "limit_cycle"}
    if sd > RULES * lap.amplitude:
        also |= {"quasi_cycle", "limit_cycle"}
    longer = NOISE_SHARE * (sd / lap.amplitude) ** 2
    periods = (window_s[1] - window_s[0]) / lap.period_s
    return replace(
        base,
        verdict="ringing" if decays else "limit_cycle",
        period_s=lap.period_s,
        period_bias_ratio=base.period_bias_ratio + longer,
        period_se_ratio=max(base.period_se_ratio, noise_kept_se(ZETA_LEFT, periods)[0] if sd > 0 else 0.0),
        amplitude_ratio=lap.amplitude / plant.slots,
        amplitude_tolerance_ratio=swing_tolerance(lap.amplitude / plant.slots, sd / plant.slots),
        damping_ratio=None if decays else 0.0,
        utilization_ratio=used,
        also=frozenset(also),
    )


def swing_of(path: Path, period_s: float) -> float:
    """Return half of the median peak-to-peak of busy slots over windows of one period, turns, as the verdict has it."""
    width = max(round(period_s / path.step_s), 2)
    count = len(path.busy) // width
    if count == 0:
        return float(np.ptp(path.busy)) / 2
    return float(np.median(np.ptp(path.busy[: count * width].reshape(count, width), axis=1))) / 2
