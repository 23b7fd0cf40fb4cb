"""Predictions of relays: exact orbits where a closed form holds, else the noise-free flow under the law itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from policies.design import describing, loops, orbits
from policies.design.laps import mean_ratio
from policies.design.structure import RelayOnBusy, RelayOnWork
from policies.design.tandem_model import TandemModel
from scenarios.analyze import tolerance
from scenarios.analyze.cycles import from_path, noise_sd_turns
from scenarios.analyze.flowing import Flows, ceiling_per_s
from scenarios.analyze.model import Plant
from scenarios.analyze.prediction import Prediction, quiet_word, utilization
from scenarios.verdict.thresholds import THRESHOLDS

SEEN_PROMPTLY = 0.1
"""Half of the sampling and acting periods as a share of the pipeline, up to which a closed form takes them for a
delay; a gate that looks less often switches at instants of its own."""


def relay_on_busy(
    law: RelayOnBusy, plant: Plant, model: TandemModel, window_s: tuple[float, float], flows: Flows
) -> Prediction:
    """Predict a switch on busy slots."""
    if law.refuses and plant.arrivals_per_s is not None:
        plant = replace(plant, ceiling_per_s=min(ceiling_per_s(plant), plant.arrivals_per_s))
    loaded = _loaded_orbits(law, plant, model)
    if not loaded and not _closed_form(plant, model, flows):
        return _by_its_flow(law, plant, window_s, flows)
    orbit = loaded[0] if loaded else _orbit(law, plant, model)
    if orbit is None:
        share = min(1.0, ceiling_per_s(plant) * plant.residence_s / plant.slots)
        return Prediction(
            mechanism="a relay that never closes: the open gate cannot lift the pool to its level",
            verdict=quiet_word(plant),
            utilization_ratio=share,
        )
    amplitude = orbit.amplitude_turns / plant.slots
    kind = "full and empty" if orbit.utilization_ratio is not None else "unsaturated"
    facts: dict[str, float | None] = {
        "trough_ratio": orbit.trough_turns / plant.slots,
        "peak_ratio": orbit.peak_turns / plant.slots,
        "ready_peak_turns": orbit.ready_peak_turns,
    }
    facts["in_flight_bound_turns"] = busy_bound_turns(plant, flows)
    if kind == "unsaturated":
        facts |= _describing(law, plant, model)
    sd = noise_sd_turns(plant, orbit.trough_turns) / plant.slots
    widest = max((abs(end.amplitude_turns - orbit.amplitude_turns) for end in loaded), default=0.0) / plant.slots
    # The fundamental of such a swing is about 0.8 of it, and that is what the verdict's floor is held against.
    cycles = 0.8 * amplitude > THRESHOLDS.amplitude_ratio
    return Prediction(
        mechanism=f"relay through the dead time, {kind}: "
        + ("a limit cycle" if cycles else "a ripple below the floor"),
        verdict="limit_cycle" if cycles else "steady",
        also=frozenset() if 0.6 * amplitude > THRESHOLDS.amplitude_ratio else frozenset({"steady", "quasi_cycle"}),
        period_s=orbit.period_s,
        amplitude_ratio=amplitude,
        amplitude_tolerance_ratio=tolerance.swing_tolerance(amplitude, sd) + widest,
        damping_ratio=0.0,
        utilization_ratio=orbit.utilization_ratio,
        period_bias_ratio=tolerance.relay_bias(plant.slots, law.close_at_turns - law.open_at_turns),
        period_se_ratio=tolerance.relay_se(plant.slots) if plant.noisy else 0.0,
        utilization_tolerance_ratio=0.01
        + max((abs((end.utilization_ratio or 0.0) - (orbit.utilization_ratio or 0.0)) for end in loaded), default=0.0),
        facts=facts,
    )


def busy_bound_turns(plant: Plant, flows: Flows) -> float:
    """Return a bound on the turns in flight under a relay on busy slots.

    While slots are free nothing is ready, so that in flight are at most all slots and what an open gate released in the
    last dead time; once they are full, the gate goes on for as long as it does not see that.
    """
    longest_s = plant.dead_times_s[-1] if plant.dead_times_s else plant.dead_time_s
    return plant.slots + ceiling_per_s(plant) * (longest_s + flows.blind_s)


def _closed_form(plant: Plant, model: TandemModel, flows: Flows) -> bool:
    exact = plant.shape.kind == "exponential" and not plant.dead_times_s
    return exact and flows.wait_s / 2 <= SEEN_PROMPTLY * model.dead_time_s


def _by_its_flow(law: RelayOnBusy, plant: Plant, window_s: tuple[float, float], flows: Flows) -> Prediction:
    times = plant.dead_times_s
    span = f" ({times[0]:.3g} to {times[-1]:.3g} s from turn to turn)" if times else ""
    path = flows.path(refused_above_per_s=plant.arrivals_per_s if law.refuses else None)
    base = Prediction(
        mechanism=f"relay through the dead time{span}, its flow integrated",
        period_bias_ratio=tolerance.relay_bias(plant.slots, law.close_at_turns - law.open_at_turns),
        period_se_ratio=tolerance.relay_se(plant.slots) * max(plant.shape.cv, 0.1) if plant.noisy else 0.0,
        facts={
            "trough_ratio": float(path.busy.min()) / plant.slots,
            "peak_ratio": float(path.busy.max()) / plant.slots,
            "ready_peak_turns": float(path.ready.max()),
            "in_flight_bound_turns": busy_bound_turns(plant, flows),
        },
    )
    prediction = from_path(base, path, plant, window_s)
    used = prediction.utilization_ratio
    # As in `relay_on_busy`: also what the confidence of the residence against load leaves open.
    ends = [flows.before(replace(plant, residences_s=(end,))).path() for end in plant.residences_s[1:]]
    open_ratio = max((abs(mean_ratio(end, plant.slots) - used) for end in ends if used is not None), default=0.0)
    span_s = window_s[1] - window_s[0]
    return replace(
        prediction,
        utilization_tolerance_ratio=prediction.utilization_tolerance_ratio + open_ratio,
        utilization_se_ratio=tolerance.relay_utilization_se(plant.slots, span_s, plant.shape.cv)
        if plant.noisy
        else 0.0,
    )


def _orbit(law: RelayOnBusy, plant: Plant, model: TandemModel) -> orbits.RelayOrbit | None:
    return orbits.relay_orbit(
        slots=plant.slots,
        residence_s=plant.residence_s,
        dead_time_s=model.loop_delay_s,
        open_at_turns=law.open_at_turns,
        close_at_turns=law.close_at_turns,
        rate_per_s=ceiling_per_s(plant),
    )


def _loaded_orbits(law: RelayOnBusy, plant: Plant, model: TandemModel) -> list[orbits.RelayOrbit]:
    # A pool whose turns slow each other: its orbit as measured, and at either end of the confidence.
    if plant.shape.kind != "exponential":
        return []
    loaded = [
        orbits.loaded_full_empty_orbit(
            slots=plant.slots,
            residence_s=empty_and_full_s,
            dead_time_s=model.loop_delay_s,
            open_at_turns=law.open_at_turns,
            close_at_turns=law.close_at_turns,
            rate_per_s=ceiling_per_s(plant),
        )
        for empty_and_full_s in plant.residences_s
    ]
    return [orbit for orbit in loaded if orbit is not None]


def _describing(law: RelayOnBusy, plant: Plant, model: TandemModel) -> dict[str, float | None]:
    half, drive = (law.close_at_turns - law.open_at_turns) / 2, ceiling_per_s(plant) / 2
    response = loops.Rational([1.0], [1.0, 1 / plant.residence_s], model.loop_delay_s)
    grid = loops.frequency_grid(plant.residence_s + model.loop_delay_s, model.loop_delay_s, 4000)
    balances = describing.harmonic_balance(
        describing.relay(drive, half), response, grid, np.geomspace(1.02 * half, plant.slots, 60)
    )
    if not balances:
        return {}
    return {"describing_period_s": balances[0].period_s, "describing_amplitude_turns": balances[0].amplitude}


def relay_on_work(
    law: RelayOnWork, plant: Plant, model: TandemModel, window_s: tuple[float, float], flows: Flows
) -> Prediction:
    """Predict a switch on all work in flight: straight lines while the pool stays full, else its flow."""
    orbit = orbits.wip_relay_orbit(
        slots=plant.slots,
        residence_s=plant.residence_s,
        dead_time_s=plant.dead_time_s,
        open_at_turns=law.open_at_turns,
        close_at_turns=law.close_at_turns,
        rate_per_s=ceiling_per_s(plant),
        observation_s=model.observation_s,
    )
    mechanism = "relay on all work in flight: the dead time is inside what is counted"
    if orbit is None:
        base = Prediction(mechanism=f"{mechanism}; the gate cannot outpace the pool")
        return from_path(base, flows.path(), plant, window_s)
    buffer = (orbit.trough_turns + orbit.peak_turns) / 2 - plant.slots * (1 + plant.dead_time_s / plant.residence_s)
    base = Prediction(
        mechanism=mechanism,
        facts={
            "gate_period_s": orbit.period_s,
            "work_swing_ratio": orbit.amplitude_turns / plant.slots,
            "ready_mean_turns": buffer,
            "in_flight_bound_turns": law.close_at_turns + ceiling_per_s(plant) * flows.blind_s,
        },
    )
    if orbit.utilization_ratio is not None and plant.shape.kind == "exponential" and not plant.dead_times_s:
        used = utilization(plant, buffer, 1 / max(model.observation_s, 1e-3))
        return replace(base, verdict=quiet_word(plant), utilization_ratio=used)
    path = flows.path()
    starves = replace(base, mechanism=f"{mechanism}; the pool runs short in it, its flow integrated")
    prediction = from_path(starves, path, plant, window_s)
    if (
        prediction.verdict != quiet_word(plant)
        or float(path.ready.mean()) <= 0.0
        or prediction.utilization_ratio is None
    ):
        return prediction
    noisy = utilization(plant, float(path.ready.mean()), 1 / max(model.observation_s, 1e-3))
    return replace(prediction, mechanism=mechanism, utilization_ratio=min(prediction.utilization_ratio, noisy))
