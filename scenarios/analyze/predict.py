"""Predict one candidate from the structure that its law declares and the parameters of the plant."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from policies.design import describing, echo, loops, orbits, steady
from policies.design.spread import spread_relay_orbit
from policies.design.structure import OneForOne, RelayOnBusy, RelayOnWork, Smooth, Structure
from policies.design.tandem_model import TandemModel
from scenarios.analyze import tolerance
from scenarios.analyze.model import Plant
from scenarios.analyze.prediction import Prediction, no_prediction, quiet_word, utilization
from scenarios.analyze.smooth import around_the_dead_time, on_the_buffer, through_the_dead_time
from scenarios.verdict.thresholds import THRESHOLDS


def predict(
    structure: Structure | None,
    plant: Plant,
    model: TandemModel,
    window_s: tuple[float, float],
    reason: str | None = None,
) -> Prediction:
    """Predict one candidate's run.

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
    """
    full_per_s = plant.slots / plant.residence_s
    if plant.arrivals_per_s is not None and plant.arrivals_per_s < full_per_s:
        return _arrival_limited(plant, plant.arrivals_per_s)
    if isinstance(structure, RelayOnBusy):
        return _relay_on_busy(structure, plant, model)
    if isinstance(structure, RelayOnWork):
        return _relay_on_work(structure, plant, model)
    if isinstance(structure, OneForOne):
        return _one_for_one(structure, plant, window_s)
    if isinstance(structure, Smooth) and structure.on == "busy":
        return through_the_dead_time(structure, plant, model, window_s)
    if isinstance(structure, Smooth) and structure.on == "at_decode":
        return on_the_buffer(structure, plant, model)
    if isinstance(structure, Smooth):
        return around_the_dead_time(structure, plant, model)
    return no_prediction(reason)


def _arrival_limited(plant: Plant, arrivals_per_s: float) -> Prediction:
    share = arrivals_per_s * plant.residence_s / plant.slots
    return Prediction(
        mechanism="arrivals below capacity: the door has nothing to hold back",
        verdict="steady" if plant.noisy else "constant",
        utilization_ratio=share,
    )


def _rate(plant: Plant) -> float:
    # Admission without a limit empties the queue at once; a thousand full pools a second stands for that.
    return plant.ceiling_per_s if plant.ceiling_per_s is not None else 1000 * plant.slots / plant.residence_s


def _relay_on_busy(law: RelayOnBusy, plant: Plant, model: TandemModel) -> Prediction:
    if law.refuses and plant.arrivals_per_s is not None:
        plant = replace(plant, ceiling_per_s=min(_rate(plant), plant.arrivals_per_s))
    loaded = _loaded_orbits(law, plant, model)
    orbit = loaded[0] if loaded else _orbit(law, plant, model)
    if orbit is None:
        share = min(1.0, _rate(plant) * plant.residence_s / plant.slots)
        return Prediction(
            mechanism="a relay that never closes: the open gate cannot lift the pool to its level",
            verdict="steady" if plant.noisy else "constant",
            utilization_ratio=share,
        )
    amplitude = orbit.amplitude_turns / plant.slots
    kind = "full and empty" if orbit.utilization_ratio is not None else "unsaturated"
    facts: dict[str, float | None] = {
        "trough_ratio": orbit.trough_turns / plant.slots,
        "peak_ratio": orbit.peak_turns / plant.slots,
        "ready_peak_turns": orbit.ready_peak_turns,
    }
    if kind == "unsaturated":
        facts |= _describing(law, plant, model)
    # The fundamental of such a swing is about 0.8 of it, and that is what the verdict's floor is held against.
    return Prediction(
        mechanism=f"relay through the dead time{_span(plant, model)}, {kind}: a limit cycle",
        verdict="limit_cycle" if 0.8 * amplitude > THRESHOLDS.amplitude_ratio else "steady",
        period_s=orbit.period_s,
        amplitude_ratio=amplitude,
        damping_ratio=0.0,
        utilization_ratio=orbit.utilization_ratio,
        period_bias_ratio=tolerance.relay_bias(plant.slots, law.close_at_turns - law.open_at_turns),
        period_se_ratio=tolerance.relay_se(plant.slots) if plant.noisy else 0.0,
        utilization_tolerance_ratio=0.01
        + max((abs((end.utilization_ratio or 0.0) - (orbit.utilization_ratio or 0.0)) for end in loaded), default=0.0),
        facts=facts,
    )


def _spread(plant: Plant, model: TandemModel) -> bool:
    # The integrated flow has no sampling, so it fits loops whose pipeline is longer than the observation delay. In a
    # shorter one sampling and noise set the period, and neither form is right to a tenth.
    return bool(plant.dead_times_s) and plant.dead_time_s > model.observation_s


def _span(plant: Plant, model: TandemModel) -> str:
    times = plant.dead_times_s
    return f" ({times[0]:.3g} to {times[-1]:.3g} s from turn to turn)" if _spread(plant, model) else ""


def _orbit(law: RelayOnBusy, plant: Plant, model: TandemModel) -> orbits.RelayOrbit | None:
    relay = {
        "slots": plant.slots,
        "residence_s": plant.residence_s,
        "open_at_turns": law.open_at_turns,
        "close_at_turns": law.close_at_turns,
        "rate_per_s": _rate(plant),
    }
    if not _spread(plant, model):
        return orbits.relay_orbit(dead_time_s=model.loop_delay_s, **relay)
    return spread_relay_orbit(dead_times_s=plant.dead_times_s, observation_s=model.observation_s, **relay)


def _loaded_orbits(law: RelayOnBusy, plant: Plant, model: TandemModel) -> list[orbits.RelayOrbit]:
    # A pool whose turns slow each other: its orbit as measured, and at either end of the confidence.
    loaded = [
        orbits.loaded_full_empty_orbit(
            slots=plant.slots,
            residence_s=empty_and_full_s,
            dead_time_s=model.loop_delay_s,
            open_at_turns=law.open_at_turns,
            close_at_turns=law.close_at_turns,
            rate_per_s=_rate(plant),
        )
        for empty_and_full_s in plant.residences_s
    ]
    return [orbit for orbit in loaded if orbit is not None]


def _describing(law: RelayOnBusy, plant: Plant, model: TandemModel) -> dict[str, float | None]:
    half, drive = (law.close_at_turns - law.open_at_turns) / 2, _rate(plant) / 2
    response = loops.Rational([1.0], [1.0, 1 / plant.residence_s], model.loop_delay_s)
    grid = loops.frequency_grid(plant.residence_s + model.loop_delay_s, model.loop_delay_s, 4000)
    balances = describing.harmonic_balance(
        describing.relay(drive, half), response, grid, np.geomspace(1.02 * half, plant.slots, 60)
    )
    if not balances:
        return {}
    return {"describing_period_s": balances[0].period_s, "describing_amplitude_turns": balances[0].amplitude}


def _relay_on_work(law: RelayOnWork, plant: Plant, model: TandemModel) -> Prediction:
    orbit = orbits.wip_relay_orbit(
        slots=plant.slots,
        residence_s=plant.residence_s,
        dead_time_s=plant.dead_time_s,
        open_at_turns=law.open_at_turns,
        close_at_turns=law.close_at_turns,
        rate_per_s=_rate(plant),
        observation_s=model.observation_s,
    )
    mechanism = "relay on all work in flight: the dead time is inside what is counted"
    if orbit is None:
        return Prediction(mechanism=f"{mechanism}; the gate cannot outpace the pool", verdict="steady")
    level = (orbit.trough_turns + orbit.peak_turns) / 2
    buffer = level - plant.slots * (1 + plant.dead_time_s / plant.residence_s)
    return Prediction(
        mechanism=mechanism,
        verdict=quiet_word(plant),
        utilization_ratio=utilization(plant, buffer, 1 / max(model.observation_s, 1e-3)),
        facts={
            "gate_period_s": orbit.period_s,
            "work_swing_ratio": orbit.amplitude_turns / plant.slots,
            "ready_mean_turns": buffer,
        },
    )


def _one_for_one(law: OneForOne, plant: Plant, window_s: tuple[float, float]) -> Prediction:
    transit = plant.dead_time_s + plant.residence_s
    cv = plant.residence_cv * plant.residence_s / transit
    damping = echo.ring_damping(
        residence_s=plant.residence_s, dead_time_s=plant.dead_time_s, residence_cv=plant.residence_cv
    )
    period = transit
    if plant.stages:
        mode = echo.ring_mode(residence_s=plant.residence_s, dead_time_s=plant.dead_time_s, stages=plant.stages)
        damping, period = mode.damping_ratio, mode.period_s
    decay = damping * 2 * np.pi / period
    # All released at once make one pulse a lap, as wide as the pool takes to serve it.
    batches = law.cap_turns / plant.slots
    width = plant.residence_s * max(batches, 1.0)
    height = min(batches, 1.0) * abs(np.sin(np.pi * min(width / period, 1.0))) * 2 / np.pi
    start, end = window_s
    span = 2 * decay * (end - start)
    left = np.exp(-decay * start) * (np.sqrt(-np.expm1(-span) / span) if span > 1e-9 else 1.0)
    # The floor is compared with the fundamental; the amplitude returned is half of the peak-to-peak.
    rings = float(height * left) > THRESHOLDS.amplitude_ratio
    amplitude = float(min(batches, 1.0) / 2 * left)
    starts = 2 * float(height) * plant.slots * float(np.exp(-decay * start))
    if plant.residence_cv == 1.0 and plant.noisy:
        used = steady.ring_utilization(
            slots=round(plant.slots),
            cap_turns=round(law.cap_turns),
            residence_s=plant.residence_s,
            dead_time_s=plant.dead_time_s,
        )
    else:
        used = echo.ring_utilization(
            slots=plant.slots, cap_turns=law.cap_turns, residence_s=plant.residence_s, dead_time_s=plant.dead_time_s
        )
    return Prediction(
        mechanism="one release for one retirement: a ring that carries bunches round",
        verdict="echo" if rings else "steady",
        period_s=period if rings else None,
        amplitude_ratio=amplitude if rings else None,
        damping_ratio=damping if rings else None,
        damping_se_ratio=tolerance.ring_se(plant.slots, plant.residence_s / transit, starts) if plant.noisy else 0.0,
        utilization_ratio=used,
        facts={"transit_s": transit, "round_trip_cv": cv, "ring_damping_ratio": damping, "ring_period_s": period},
    )
