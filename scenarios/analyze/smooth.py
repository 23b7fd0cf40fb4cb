"""Predictions of laws with a linearisation: feedback through the dead time, around it, or on the buffer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from policies.design import loops, noise, steady
from policies.design.structure import Smooth
from policies.design.tandem_model import Regime, TandemModel
from scenarios.analyze.model import Plant
from scenarios.analyze.prediction import LinearLoop, Prediction, quiet_word, utilization
from scenarios.analyze.tolerance import noise_kept_se
from scenarios.verdict.shape import damping_of
from scenarios.verdict.thresholds import THRESHOLDS


def through_the_dead_time(law: Smooth, plant: Plant, model: TandemModel, window_s: tuple[float, float]) -> Prediction:
    """Predict feedback on busy slots: its Hopf gain, its damping, and the noise that it keeps up."""
    gain = float(np.real(law.linear.feedback["busy"](np.array([0j]))[0]))
    t, dead = plant.residence_s, model.loop_delay_s
    level = (law.rate_per_s + gain * law.setpoint_turns) / (gain + 1 / t)
    if level >= plant.slots:
        return Prediction(
            mechanism="proportional on busy slots, held at a full pool: the feedback is flat there",
            facts={"level_turns": level},
            uncompared="feedback is flat at a full pool, so theory has no shape to foretell",
        )
    point = loops.hopf_point(t, dead)
    facts: dict[str, float | None] = {
        "hopf_gain_per_s": point.gain_per_s,
        "hopf_period_s": point.period_s,
        "gain_over_hopf": gain / point.gain_per_s,
        "level_turns": level,
    }
    loop = LinearLoop(law=law.linear, model=model, regime="starved", slowest_s=t + dead, fastest_s=min(t, dead))
    root = loops.lag_root(residence_s=t, dead_time_s=dead, gain_per_s=gain)
    facts |= {"growth_per_s": root.real}
    if gain >= point.gain_per_s:
        return Prediction(
            mechanism="proportional through the dead time, beyond its Hopf gain: a limit cycle",
            verdict="limit_cycle",
            period_s=point.period_s,
            damping_ratio=0.0,
            facts=facts,
            loop=replace(loop, stable=False, margin_names=("gain_margin", "gain_crossing_rad_s")),
        )
    clipped = noise.clipped_gate(
        residence_s=t,
        dead_time_s=dead,
        gain_per_s=gain,
        setpoint_turns=law.setpoint_turns,
        rate_per_s=law.rate_per_s,
        ceiling_per_s=np.inf if plant.ceiling_per_s is None else plant.ceiling_per_s,
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
    return Prediction(
        mechanism="proportional through the dead time, below its Hopf gain"
        + (": noise keeps a cycle up" if seen else ": steady"),
        verdict="quasi_cycle" if seen else quiet_word(plant),
        period_s=quiet.period_s if seen else None,
        period_se_ratio=errors[0],
        amplitude_ratio=amplitude if seen else None,
        damping_ratio=zeta,
        damping_se_ratio=errors[1],
        facts={
            **facts,
            "noise_sd_turns": float(sd),
            "noise_peak": quiet.peak,
            "noise_period_s": quiet.period_s,
            "gain_after_clipping_over_hopf": clipped.gain_per_s / point.gain_per_s,
        },
        utilization_ratio=clipped.level_turns / plant.slots,
        loop=loop,
    )


def around_the_dead_time(law: Smooth, plant: Plant, model: TandemModel) -> Prediction:
    """Predict feedback on all work in flight: its modes with the pool starved and full, and how full it keeps it."""
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
    regime: Regime = "full" if buffer > 0 else "starved"
    return Prediction(
        mechanism="paced around all work in flight: the dead time leaves the loop",
        verdict=quiet_word(plant) if stable else "limit_cycle",
        period_s=None if stable or worst.imag == 0 else 2 * np.pi / worst.imag,
        utilization_ratio=utilization(plant, buffer, gain),
        loop=LinearLoop(law=law.linear, model=model, regime=regime, slowest_s=slow, fastest_s=fast, stable=stable),
        facts={
            "ready_mean_turns": max(buffer, 0.0),
            "slowest_mode_starved_s": -1 / starved.real if starved.real < 0 else None,
            "slowest_mode_full_s": -1 / filled.real if filled.real < 0 else None,
        },
    )


def on_the_buffer(law: Smooth, plant: Plant, model: TandemModel) -> Prediction:
    """Predict feedback on the turns at decode, ready ones included: its modes with the pool starved and full."""
    dead, t = model.loop_delay_s, plant.residence_s
    fast, slow = min(t, dead or t), 10 * (t + dead)
    starved = loops.rightmost_root(law.linear.loop(model, "starved"), fastest_s=fast, slowest_s=slow)
    filled = loops.rightmost_root(law.linear.loop(model, "full"), fastest_s=fast, slowest_s=slow)
    worst = starved if starved.real > filled.real else filled
    stable = worst.real < 0
    controller = law.linear.feedback["at_decode"]
    # Where the law's rate differs from the true one, the work settles beside the set point, unless it integrates.
    gain = float(np.abs(controller(np.array([1e-9 + 0j]))[0]))
    buffer = law.setpoint_turns + (law.rate_per_s - plant.slots / t) / gain - plant.slots
    sd = steady.at_decode_sd_turns(controller, loop_delay_s=dead, throughput_per_s=plant.slots / t)
    used = steady.short_of(plant.slots, buffer, sd if plant.noisy else 0.0) if stable else None
    loop = LinearLoop(law=law.linear, model=model, regime="full", slowest_s=slow, fastest_s=fast)
    return Prediction(
        mechanism="feedback on the turns at decode, through the whole dead time"
        + ("" if stable else ": past its edge, a limit cycle"),
        verdict=quiet_word(plant) if stable else "limit_cycle",
        period_s=None if stable or worst.imag == 0 else 2 * np.pi / worst.imag,
        utilization_ratio=used,
        loop=loop if stable else replace(loop, stable=False, margin_names=()),
        facts={
            "ready_mean_turns": max(buffer, 0.0),
            "at_decode_sd_turns": sd if stable else None,
            "slowest_mode_starved_s": -1 / starved.real if starved.real < 0 else None,
            "slowest_mode_full_s": -1 / filled.real if filled.real < 0 else None,
        },
    )
