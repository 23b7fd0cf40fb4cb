"""Predictions of capacity loops: multiplicative scaling through the ticks in which it cannot see what it ordered."""

from __future__ import annotations

from math import ceil

import numpy as np

from policies.design import capacity as theory
from policies.design.structure import Scales
from scenarios.analyze.prediction import Prediction
from scenarios.build.laws import capacity
from scenarios.schema.laws import Candidate
from scenarios.schema.plants import ClusterPlant
from scenarios.schema.scenario import Scenario


def predict_scaling(candidate: Candidate, scenario: Scenario) -> Prediction:
    """Return what theory says of a candidate's capacity loop, in logarithms of workers.

    No verdict is foretold: what a pool does depends on its load besides. The gain margin and the period at the edge
    are the law's and the start-up delay's alone.
    """
    period_s = scenario.period_s("capacity", candidate.capacity)
    law = capacity(candidate.capacity, period_s)
    if not isinstance(law, Scales) or not isinstance(scenario.plant, ClusterPlant):
        return Prediction(mechanism="capacity loop: no linearisation is declared, no prediction")
    own = law.scaling()
    configuration = scenario.plant.configurations[own.configuration]
    delay_s = configuration.load_s + configuration.warm_s + scenario.telemetry.age_s
    # Ordered at one tick, a worker that is there by the next was never unseen.
    unseen = 0 if own.pending_counted else max(ceil(delay_s / period_s) - 1, 0)
    critical = theory.critical_gain(unseen)
    size = float(np.abs(theory.scaling_roots(own.gain, unseen)).max())
    if own.gain < critical * (1 - 1e-9):
        word = "settles by itself"
    else:
        word = "marginal: repeats for ever" if own.gain <= critical * (1 + 1e-9) else "grows with each turn"
    window = (
        f"; held up on the way down for {own.window_s:g} s, which ends it after one overshoot"
        if (own.window_s > 0 and own.gain >= critical * (1 - 1e-9))
        else ""
    )
    return Prediction(
        mechanism=f"multiplicative scaling, {unseen} unseen ticks: {word}{window}",
        period_s=theory.critical_period_ticks(unseen) * period_s if own.gain >= critical * (1 - 1e-9) else None,
        margins={"gain_margin": critical / own.gain},
        facts={
            "unseen_ticks": float(unseen),
            "critical_gain": critical,
            "gain": own.gain,
            "growth_per_tick_ratio": size,
            "startup_s": delay_s,
        },
    )
