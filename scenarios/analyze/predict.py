"""One candidate's prediction, from what its law declares and what the plant is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

import numpy as np

from policies.design import describing, echo, loops, noise, orbits, steady
from policies.design.admission import TandemModel
from policies.design.structure import OneForOne, RelayOnBusy, RelayOnWork, Smooth, Structure
from scenarios.analyze.model import Plant
from scenarios.verdict.thresholds import THRESHOLDS
from scenarios.verdict.words import Word


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What theory expects of the decode occupancy.

    `verdict` None: no prediction is made. Fields are None where theory says nothing. `margins` is empty where there is
    no linear loop; `facts` holds what belongs to the mechanism (Hopf gain, describing function, roots, set point).
    """

    mechanism: str
    verdict: Word | None = None
    period_s: float | None = None
    amplitude_ratio: float | None = None
    damping_ratio: float | None = None
    utilization_ratio: float | None = None
    margins: Mapping[str, float | None] = field(default_factory=dict)
    facts: Mapping[str, float | None] = field(default_factory=dict)

    def numbers(self) -> dict[str, object]:
        """Return the prediction without mechanism and margins, as JSON values."""
        kept = ("verdict", "period_s", "amplitude_ratio", "damping_ratio", "utilization_ratio")
        return {**{name: getattr(self, name) for name in kept}, "facts": dict(self.facts)}


def predict(structure: Structure | None, plant: Plant, model: TandemModel, window_s: tuple[float, float]) -> Prediction:
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
        return _through_the_dead_time(structure, plant, model)
    if isinstance(structure, Smooth):
        return _around_the_dead_time(structure, plant, model)
    return Prediction(mechanism="no linearisation is declared: no prediction")


def _arrival_limited(plant: Plant, arrivals_per_s: float) -> Prediction:
    share = arrivals_per_s * plant.residence_s / plant.slots
    return Prediction(
        mechanism="arrivals below capacity: the door has nothing to hold back",
        verdict="steady" if plant.noisy else "constant",
        utilization_ratio=share,
    )


def _rate(plant: Plant) -> float:
    # A door without a limit empties the queue at once; a thousand full pools a second stands for that.
    return plant.ceiling_per_s if plant.ceiling_per_s is not None else 1000 * plant.slots / plant.residence_s


def _relay_on_busy(law: RelayOnBusy, plant: Plant, model: TandemModel) -> Prediction:
    made = {
        "slots": plant.slots,
        "residence_s": plant.residence_s,
        "dead_time_s": model.loop_delay_s,
        "open_at_turns": law.open_at_turns,
        "close_at_turns": law.close_at_turns,
        "rate_per_s": _rate(plant),
    }
    orbit = orbits.relay_orbit(**made)
    if orbit is None:
        share = min(1.0, _rate(plant) * plant.residence_s / plant.slots)
        return Prediction(
            mechanism="a relay that never closes: the open gate cannot lift the pool to its level",
            verdict="steady" if plant.noisy else "constant",
            utilization_ratio=share,
        )
    amplitude = orbit.amplitude_turns / plant.slots
    kind = "full and empty" if law.close_at_turns >= plant.slots else "unsaturated"
    facts: dict[str, float | None] = {
        "trough_ratio": orbit.trough_turns / plant.slots,
        "peak_ratio": orbit.peak_turns / plant.slots,
        "ready_peak_turns": orbit.ready_peak_turns,
    }
    if kind == "unsaturated":
        facts |= _describing(law, plant, model)
    # The fundamental of such a swing is about 0.8 of it, and that is what the verdict's floor is held against.
    return Prediction(
        mechanism=f"relay through the dead time, {kind}: a limit cycle",
        verdict="limit_cycle" if 0.8 * amplitude > THRESHOLDS.amplitude_ratio else "steady",
        period_s=orbit.period_s,
        amplitude_ratio=amplitude,
        damping_ratio=0.0,
        utilization_ratio=orbit.utilization_ratio,
        facts=facts,
    )


def _describing(law: RelayOnBusy, plant: Plant, model: TandemModel) -> dict[str, float | None]:
    half, drive = (law.close_at_turns - law.open_at_turns) / 2, _rate(plant) / 2
    response = loops.rational([1.0], [1.0, 1 / plant.residence_s], model.loop_delay_s)
    grid = loops.frequency_grid(plant.residence_s + model.loop_delay_s, model.loop_delay_s, 4000)
    found = describing.harmonic_balance(
        describing.relay(drive, half), response, grid, np.geomspace(1.02 * half, plant.slots, 60)
    )
    if not found:
        return {}
    return {"describing_period_s": found[0].period_s, "describing_amplitude_turns": found[0].amplitude}


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
        verdict=_quiet(plant),
        utilization_ratio=_utilization(plant, buffer, 1 / max(model.observation_s, 1e-3)),
        facts={
            "gate_period_s": orbit.period_s,
            "work_swing_ratio": orbit.amplitude_turns / plant.slots,
            "ready_mean_turns": buffer,
        },
    )


def _quiet(plant: Plant) -> Word:
    return "steady" if plant.noisy else "constant"


def _utilization(plant: Plant, buffer_turns: float, gain_per_s: float) -> float:
    if buffer_turns <= 0:
        work = plant.slots * (1 + plant.dead_time_s / plant.residence_s) + buffer_turns
        return max(work, 0.0) / (plant.slots * (1 + plant.dead_time_s / plant.residence_s))
    if not plant.noisy:
        return 1.0
    return steady.paced_utilization(
        slots=plant.slots,
        buffer_turns=buffer_turns,
        gain_per_s=gain_per_s,
        dead_time_s=plant.dead_time_s,
        throughput_per_s=plant.slots / plant.residence_s,
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
    # The floor is held against the fundamental; what is told is half of the peak-to-peak.
    rings = float(height * left) > THRESHOLDS.amplitude_ratio
    amplitude = float(min(batches, 1.0) / 2 * left)
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
        utilization_ratio=used,
        facts={"transit_s": transit, "round_trip_cv": cv, "ring_damping_ratio": damping, "ring_period_s": period},
    )


def _through_the_dead_time(law: Smooth, plant: Plant, model: TandemModel) -> Prediction:
    gain = float(np.real(law.linear.feedback["busy"](np.array([0j]))[0]))
    t, dead = plant.residence_s, model.loop_delay_s
    level = (law.rate_per_s + gain * law.setpoint_turns) / (gain + 1 / t)
    if level >= plant.slots:
        return Prediction(
            mechanism="proportional on busy slots, held at a full pool: the feedback is flat there",
            facts={"level_turns": level},
        )
    point = loops.hopf_point(t, dead)
    grid = loops.frequency_grid(t + dead, min(t, dead))
    facts: dict[str, float | None] = {
        "hopf_gain_per_s": point.gain_per_s,
        "hopf_period_s": point.period_s,
        "gain_over_hopf": gain / point.gain_per_s,
        "level_turns": level,
    }
    common = {"utilization_ratio": level / plant.slots, "margins": margins_json(law.linear.loop(model), grid)}
    root = loops.lag_root(residence_s=t, dead_time_s=dead, gain_per_s=gain)
    facts |= {"growth_per_s": root.real}
    if gain >= point.gain_per_s:
        return Prediction(
            mechanism="proportional through the dead time, beyond its Hopf gain: a limit cycle",
            verdict="limit_cycle",
            period_s=2 * np.pi / abs(root.imag),
            damping_ratio=0.0,
            facts=facts,
            margins=common["margins"],  # type: ignore[arg-type]  # a table of two kinds of value
        )
    quiet = noise.steady_noise(
        residence_s=t, dead_time_s=dead, gain_per_s=gain, throughput_per_s=level / t, release_fano=0.0
    )
    sd = np.sqrt(quiet.variance_turns2)
    amplitude = float(np.sqrt(2) * sd / plant.slots)
    seen = plant.noisy and quiet.peak > THRESHOLDS.acf_peak and amplitude > THRESHOLDS.amplitude_ratio
    return Prediction(
        mechanism="proportional through the dead time, below its Hopf gain"
        + (": noise keeps a cycle up" if seen else ": steady"),
        verdict="quasi_cycle" if seen else _quiet(plant),
        period_s=quiet.period_s if seen else None,
        amplitude_ratio=amplitude if seen else None,
        damping_ratio=float(-root.real / abs(root)) if seen else None,
        facts={**facts, "noise_sd_turns": float(sd), "noise_peak": quiet.peak, "noise_period_s": quiet.period_s},
        utilization_ratio=level / plant.slots,
        margins=margins_json(law.linear.loop(model), grid),
    )


def _around_the_dead_time(law: Smooth, plant: Plant, model: TandemModel) -> Prediction:
    gain = float(np.real(law.linear.feedback["in_flight"](np.array([0j]))[0]))
    fast = min(plant.residence_s, plant.dead_time_s or plant.residence_s)
    slow = plant.residence_s + plant.dead_time_s + 1 / gain
    full = plant.slots * (1 + plant.dead_time_s / plant.residence_s)
    # Where the law's rate differs from the true one, the work settles beside the set point.
    buffer = law.setpoint_turns + (law.rate_per_s - plant.slots / plant.residence_s) / gain - full
    if buffer < 0:
        transit = plant.residence_s + plant.dead_time_s
        buffer = (law.rate_per_s + gain * law.setpoint_turns) / (gain + 1 / transit) - full
    starved = loops.rightmost_root(law.linear.loop(model, "starved"), fastest_s=fast, slowest_s=slow)
    filled = loops.rightmost_root(law.linear.loop(model, "full"), fastest_s=fast, slowest_s=slow)
    stable = starved.real < 0 and filled.real < 0
    worst = starved if starved.real > filled.real else filled
    grid = loops.frequency_grid(slow, fast)
    return Prediction(
        mechanism="paced around all work in flight: the dead time leaves the loop",
        verdict=_quiet(plant) if stable else "limit_cycle",
        period_s=None if stable or worst.imag == 0 else 2 * np.pi / worst.imag,
        utilization_ratio=_utilization(plant, buffer, gain),
        margins=margins_json(law.linear.loop(model, "full" if buffer > 0 else "starved"), grid),
        facts={
            "ready_mean_turns": max(buffer, 0.0),
            "slowest_mode_starved_s": -1 / starved.real if starved.real < 0 else None,
            "slowest_mode_full_s": -1 / filled.real if filled.real < 0 else None,
        },
    )


def margins_json(loop: loops.Response, grid: loops.Floats) -> dict[str, float | None]:
    """Return the margins of a loop as JSON values: what is infinite or never crossed becomes None."""
    return {name: value if np.isfinite(value) else None for name, value in asdict(loops.margins(loop, grid)).items()}
