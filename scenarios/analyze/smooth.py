"""Predictions of laws with a linearisation: feedback through the dead time, around it, or on the buffer.

Linear theory says whether the loop is stable about its set point and what noise does there. Where the loop is unstable,
off its set point, or before a residence that is not exponential, its noise-free flow says what it does.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from policies.design import loops, noise, stability, steady
from policies.design.steady import ATOMIC
from policies.design.structure import Smooth
from policies.design.tandem_model import Regime, TandemModel
from scenarios.analyze.cycles import from_path
from scenarios.analyze.flowing import Flows
from scenarios.analyze.model import Plant
from scenarios.analyze.prediction import LinearLoop, Prediction, quiet_word, utilization
from scenarios.analyze.tolerance import noise_kept_se, quasi_swing_tolerance
from scenarios.verdict.shape import damping_of
from scenarios.verdict.thresholds import THRESHOLDS

QUIET_CV = 0.1
"""Residences that differ less than this make no noise to speak of; what their pool remembers is the flow's."""


def through_the_dead_time(
    law: Smooth, plant: Plant, model: TandemModel, window_s: tuple[float, float], flows: Flows
) -> Prediction:
    """Predict feedback on busy slots: its Hopf gain, its damping, and the noise that it keeps up."""
    gain = float(np.real(law.linear.feedback["busy"](np.array([0j]))[0]))
    t, dead = plant.residence_s, model.loop_delay_s
    level = (law.rate_per_s + gain * law.setpoint_turns) / (gain + 1 / t)
    if level >= plant.slots:
        held = Prediction(
            mechanism="proportional on busy slots, held at a full pool: the feedback is flat there",
            facts={"level_turns": level},
        )
        return from_path(held, flows.path(), plant, window_s)
    point = loops.hopf_point(t, dead, plant.shape)
    facts: dict[str, float | None] = {
        "hopf_gain_per_s": point.gain_per_s,
        "hopf_period_s": point.period_s,
        "gain_over_hopf": gain / point.gain_per_s,
        "level_turns": level,
    }
    loop = LinearLoop(law=law.linear, model=model, regime="starved", slowest_s=t + dead, fastest_s=min(t, dead))
    if plant.shape.kind == "exponential":
        facts |= {"growth_per_s": loops.lag_root(residence_s=t, dead_time_s=dead, gain_per_s=gain).real}
    if gain >= point.gain_per_s:
        beyond = Prediction(
            mechanism="proportional through the dead time, beyond its Hopf gain: its clipped flow integrated",
            facts={**facts, "linear_period_s": point.period_s},
            loop=replace(loop, stable=False, margin_names=("gain_margin", "gain_crossing_rad_s")),
        )
        return from_path(beyond, flows.path(), plant, window_s)
    below = Prediction(mechanism="proportional through the dead time, below its Hopf gain", facts=facts, loop=loop)
    if plant.shape.cv < QUIET_CV:
        prediction = from_path(below, flows.path(), plant, window_s)
        return replace(
            prediction,
            mechanism=f"{prediction.mechanism}: {'steady' if prediction.period_s is None else 'it dies away'}",
        )
    return _kept_up(below, law, plant, dead, point, window_s)


def _kept_up(
    base: Prediction, law: Smooth, plant: Plant, dead_s: float, point: loops.Hopf, window_s: tuple[float, float]
) -> Prediction:
    gain = float(np.real(law.linear.feedback["busy"](np.array([0j]))[0]))
    clipped = noise.clipped_gate(
        residence_s=plant.residence_s,
        dead_time_s=dead_s,
        gain_per_s=gain,
        setpoint_turns=law.setpoint_turns,
        rate_per_s=law.rate_per_s,
        ceiling_per_s=np.inf if plant.ceiling_per_s is None else plant.ceiling_per_s,
        shape=plant.shape,
    )
    quiet = clipped.noise
    sd = np.sqrt(quiet.variance_turns2)
    amplitude = float(np.sqrt(2) * sd / plant.slots)
    seen = plant.noisy and quiet.peak > THRESHOLDS.acf_peak and amplitude > THRESHOLDS.amplitude_ratio
    # A run's damping is read from its first peak, which a loop of one lag and a dead time has a little lower than e^-d.
    zeta = damping_of(-np.log(quiet.peak)) if seen else None
    errors = (0.0, 0.0)
    if seen and zeta is not None and quiet.period_s is not None:
        errors = noise_kept_se(zeta, (window_s[1] - window_s[0]) / quiet.period_s)
    return replace(
        base,
        mechanism=base.mechanism + (": noise keeps a cycle up" if seen else ": steady"),
        verdict="quasi_cycle" if seen else quiet_word(plant),
        period_s=quiet.period_s if seen else None,
        period_se_ratio=errors[0],
        amplitude_ratio=amplitude if seen else None,
        amplitude_tolerance_ratio=quasi_swing_tolerance(amplitude),
        damping_ratio=zeta,
        damping_se_ratio=errors[1],
        facts={
            **base.facts,
            "noise_sd_turns": float(sd),
            "noise_peak": quiet.peak,
            "noise_period_s": quiet.period_s,
            "gain_after_clipping_over_hopf": clipped.gain_per_s / point.gain_per_s,
        },
        utilization_ratio=clipped.level_turns / plant.slots,
    )


def around_the_dead_time(
    law: Smooth, plant: Plant, model: TandemModel, window_s: tuple[float, float], flows: Flows
) -> Prediction:
    """Predict feedback on all work in flight: its modes with the pool starved and full, and how full it keeps it."""
    gain = float(np.real(law.linear.feedback["in_flight"](np.array([0j]))[0]))
    fast = min(plant.residence_s, plant.dead_time_s or plant.residence_s)
    slow = plant.residence_s + plant.dead_time_s + 1 / gain
    full = plant.slots * (1 + plant.dead_time_s / plant.residence_s)
    # Where the law's rate differs from the true one, the work settles beside the set point.
    buffer = law.setpoint_turns + (law.rate_per_s - plant.slots / plant.residence_s) / gain - full
    stable, modes = _modes(law, model, fast, slow)
    regime: Regime = "full" if buffer > 0 else "starved"
    base = Prediction(
        mechanism="paced around all work in flight: the dead time leaves the loop" + ("" if stable else "; unstable"),
        verdict=quiet_word(plant),
        loop=LinearLoop(law=law.linear, model=model, regime=regime, slowest_s=slow, fastest_s=fast, stable=stable),
        facts={"ready_mean_turns": max(buffer, 0.0), **modes},
    )
    if stable and buffer > 0 and plant.shape.kind == "exponential":
        return replace(base, utilization_ratio=utilization(plant, buffer, gain))
    prediction = _by_its_flow(base, plant, window_s, flows)
    ready = prediction.facts["ready_mean_turns"] or 0.0
    if prediction.verdict != quiet_word(plant) or ready <= 0.0 or prediction.utilization_ratio is None:
        return prediction
    return replace(prediction, utilization_ratio=min(prediction.utilization_ratio, utilization(plant, ready, gain)))


def on_the_buffer(
    law: Smooth, plant: Plant, model: TandemModel, window_s: tuple[float, float], flows: Flows
) -> Prediction:
    """Predict feedback on the turns at decode, ready ones included: its modes with the pool starved and full."""
    dead, t = model.loop_delay_s, plant.residence_s
    fast, slow = min(t, dead or t), 10 * (t + dead)
    stable, modes = _modes(law, model, fast, slow)
    controller = law.linear.feedback["at_decode"]
    # Where the law's rate differs from the true one, the work settles beside the set point, unless it integrates.
    gain = float(np.abs(controller(np.array([1e-9 + 0j]))[0]))
    buffer = law.setpoint_turns + (law.rate_per_s - plant.slots / t) / gain - plant.slots
    sd = steady.at_decode_sd_turns(
        controller, loop_delay_s=dead, throughput_per_s=plant.slots / t, residence_s=t, shape=plant.shape
    )
    loop = LinearLoop(
        law=law.linear, model=model, regime="full" if buffer > 0 else "starved", slowest_s=slow, fastest_s=fast
    )
    base = Prediction(
        mechanism="feedback on the turns at decode, through the whole dead time"
        + ("" if stable else ": past its edge in the full or the starved pool"),
        verdict=quiet_word(plant),
        loop=loop if stable else replace(loop, stable=False, margin_names=()),
        facts={
            "ready_mean_turns": max(buffer, 0.0),
            "at_decode_sd_turns": sd if stable else None,
            **modes,
        },
    )
    noisy_sd = sd if plant.noisy else 0.0
    if stable and buffer > 0 and plant.shape.kind == "exponential":
        return replace(base, utilization_ratio=steady.short_of(plant.slots, buffer, noisy_sd))
    prediction = _by_its_flow(base, plant, window_s, flows)
    ready = prediction.facts["ready_mean_turns"] or 0.0
    if prediction.verdict != quiet_word(plant) or ready <= 0.0 or prediction.utilization_ratio is None:
        return prediction
    used = min(prediction.utilization_ratio, steady.short_of(plant.slots, ready, noisy_sd))
    return replace(prediction, utilization_ratio=used)


def _by_its_flow(base: Prediction, plant: Plant, window_s: tuple[float, float], flows: Flows) -> Prediction:
    path = flows.path()
    prediction = from_path(base, path, plant, window_s)
    return replace(prediction, facts={**prediction.facts, "ready_mean_turns": float(path.ready.mean())})


def _modes(law: Smooth, model: TandemModel, fast: float, slow: float) -> tuple[bool, dict[str, float | None]]:
    """Return whether the loop is stable with the pool starved and full, and its slowest modes where they are cheap."""
    modes: dict[str, float | None] = {}
    stable = True
    for regime in ("starved", "full"):
        loop = law.linear.loop(model, regime)
        stable = stable and stability.unstable_count(loop, stability.loop_grid(model, slow)) == 0
        name = f"slowest_mode_{'starved' if regime == 'starved' else 'full'}_s"
        modes[name] = None
        if regime == "full" or model.shape.kind not in ATOMIC:
            root = _root(loop, fast, slow)
            modes[name] = -1 / root.real if root is not None and root.real < 0 else None
    return stable, modes


def _root(loop: loops.Response, fast: float, slow: float) -> complex | None:
    try:
        return loops.rightmost_root(loop, fastest_s=fast, slowest_s=slow)
    except ValueError:
        return None
