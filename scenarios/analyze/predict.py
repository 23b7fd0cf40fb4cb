"""Predict one candidate from the structure that its law declares and the parameters of the plant."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from policies.design import echo, steady
from policies.design.structure import OneForOne, RelayOnBusy, RelayOnWork, Smooth, Structure
from policies.design.tandem_model import TandemModel
from scenarios.analyze import tolerance
from scenarios.analyze.cycles import swing_of
from scenarios.analyze.flowing import Flows
from scenarios.analyze.model import Plant
from scenarios.analyze.prediction import Prediction, no_prediction
from scenarios.analyze.relays import relay_on_busy, relay_on_work
from scenarios.analyze.smooth import around_the_dead_time, on_the_buffer, through_the_dead_time
from scenarios.verdict.thresholds import THRESHOLDS


def predict(
    structure: Structure | None,
    plant: Plant,
    model: TandemModel,
    window_s: tuple[float, float],
    reason: str | None,
    flows: Flows,
) -> Prediction:
    """Predict one candidate's run while work always waits.

    Parameters
    ----------
    structure : Structure or None
        What the law declares itself to be.
    plant : Plant
        The plant and its surroundings.
    model : TandemModel
        The same with this law's observation delay.
    window_s : (float, float)
        The part of the run that will be judged, for cycles that die away.
    reason : str, optional
        Why the law has no structure, as the law states it.
    flows : Flows
        The candidate's noise-free flows, for what has no closed form.
    """
    if isinstance(structure, RelayOnBusy):
        return relay_on_busy(structure, plant, model, window_s, flows)
    if isinstance(structure, RelayOnWork):
        return relay_on_work(structure, plant, model, window_s, flows)
    if isinstance(structure, OneForOne):
        return _one_for_one(structure, plant, window_s, flows)
    if isinstance(structure, Smooth) and structure.on == "busy":
        return through_the_dead_time(structure, plant, model, window_s, flows)
    if isinstance(structure, Smooth) and structure.on == "at_decode":
        return on_the_buffer(structure, plant, model, window_s, flows)
    if isinstance(structure, Smooth):
        return around_the_dead_time(structure, plant, model, window_s, flows)
    return no_prediction(reason)


def ring_use(law: OneForOne, plant: Plant) -> float:
    """Return the mean share of busy slots of a ring: exact for exponential residence, else without queueing."""
    if plant.shape.kind == "exponential" and plant.noisy:
        return steady.ring_utilization(
            slots=round(plant.slots),
            cap_turns=round(law.cap_turns),
            residence_s=plant.residence_s,
            dead_time_s=plant.dead_time_s,
        )
    return echo.ring_utilization(
        slots=plant.slots, cap_turns=law.cap_turns, residence_s=plant.residence_s, dead_time_s=plant.dead_time_s
    )


def _one_for_one(law: OneForOne, plant: Plant, window_s: tuple[float, float], flows: Flows) -> Prediction:
    transit = plant.dead_time_s + plant.residence_s
    mode = echo.ring_mode_of(residence_s=plant.residence_s, dead_time_s=plant.dead_time_s, shape=plant.shape)
    damping, period = mode.damping_ratio, mode.period_s
    decay = damping * 2 * np.pi / period
    # All released at once make one pulse a lap, as wide as the pool takes to serve it.
    batches = law.cap_turns / plant.slots
    width = plant.residence_s * max(batches, 1.0)
    height = min(batches, 1.0) * abs(np.sin(np.pi * min(width / period, 1.0))) * 2 / np.pi
    start, end = window_s
    span = 2 * decay * (end - start)
    left = np.exp(-decay * start) * (np.sqrt(-np.expm1(-span) / span) if span > 1e-9 else 1.0)
    fundamental = float(height * left)
    # The floor is compared with the fundamental; the amplitude returned is half of the peak-to-peak.
    rings = fundamental > THRESHOLDS.amplitude_ratio
    near = THRESHOLDS.amplitude_ratio / 1.4 < fundamental < 1.4 * THRESHOLDS.amplitude_ratio
    base = Prediction(
        mechanism="one release for one retirement: a ring that carries bunches round",
        verdict="echo" if rings else "steady",
        also=frozenset({"echo", "steady"}) if near else frozenset(),
        utilization_ratio=ring_use(law, plant),
        facts={
            "transit_s": transit,
            "round_trip_cv": plant.shape.cv * plant.residence_s / transit,
            "ring_damping_ratio": damping,
            "ring_period_s": period,
            "in_flight_bound_turns": law.cap_turns,
        },
    )
    if not rings:
        return base
    starts = 2 * float(height) * plant.slots * float(np.exp(-decay * start))
    swing = swing_of(flows.path(), period) / plant.slots
    # A pool's own count scatters about its bunches by a binomial law.
    in_slot = plant.residence_s / transit
    sd = np.sqrt(plant.slots * in_slot * (1 - in_slot)) * min(plant.shape.cv, 1.0) if plant.noisy else 0.0
    return replace(
        base,
        period_s=period,
        amplitude_ratio=swing,
        amplitude_tolerance_ratio=tolerance.swing_tolerance(swing, sd / plant.slots),
        damping_ratio=damping,
        damping_se_ratio=tolerance.ring_se(plant.slots, plant.residence_s / transit, starts) if plant.noisy else 0.0,
    )
