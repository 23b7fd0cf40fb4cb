"""Predict a clipped limit cycle, which has no closed form, by running the fluid plant under the same law."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from scenarios.analyze.model import Plant
from scenarios.analyze.prediction import Prediction
from scenarios.analyze.tolerance import noise_kept_se
from scenarios.run.execute import run
from scenarios.schema.laws import Candidate
from scenarios.schema.plants import FluidPlant, ResidenceLaw
from scenarios.schema.scenario import Scenario
from scenarios.schema.workloads import SaturatedWorkload

LEAD_IN, JUDGED = 25.0, 20.0
# Noise lengthens a clipped cycle by a share of (sd of the open pool / amplitude)^2: 0.06 to 0.08 of it in runs of 125
# to 4,000 slots at 1.2 and 1.5 times the Hopf gain. The equation has no noise, so that much is allowed for.
NOISE_SHARE = 0.1
# How far such a cycle still is from keeping its phase: the damping of the gain that clipping in noise leaves, at most.
ZETA_LEFT = 0.03


def integrated(linear: Prediction, scenario: Scenario, candidate: Candidate, plant: Plant) -> Prediction:
    """Return the prediction of a cycle past its edge with period, swing and utilisation of the integrated flow.

    Where the flow does not cycle (its growth is too slow to show, or no cycle is recognised) the linear answer stays.
    """
    if linear.period_s is None:
        return linear
    lap_s = linear.period_s
    period_s = scenario.period_s("admission", candidate.admission)
    telemetry = scenario.telemetry
    dead_s = plant.dead_time_s + telemetry.age_s + telemetry.period_s / 2
    step_s = period_s / ceil(period_s / max(dead_s / 50, lap_s / 500))
    ceiling = plant.ceiling_per_s if plant.ceiling_per_s is not None else 1000 * plant.slots / plant.residence_s
    flow = scenario.model_copy(
        update={
            "plant": FluidPlant(
                kind="fluid",
                slots=round(plant.slots),
                dead_time_s=dead_s,
                residence=ResidenceLaw(mean_s=plant.residence_s),
                step_s=step_s,
            ),
            "workload": SaturatedWorkload(kind="saturated", waiting_turns=round(plant.slots)),
            "admission": scenario.admission.model_copy(update={"max_release_per_s": ceiling}),
            "record": scenario.record.model_copy(update={"signal_bin_s": max(ceil(lap_s / 60 / step_s), 1) * step_s}),
            "warmup_s": LEAD_IN * lap_s,
            "horizon_s": (LEAD_IN + JUDGED) * lap_s,
            "expect": {},
            "candidates": (candidate,),
        }
    )
    finished = run(flow)
    verdict = finished.data.verdicts[linear.signal]
    if verdict.verdict != "limit_cycle" or verdict.period_s is None:
        return linear
    swing = verdict.amplitude_ratio * plant.slots
    longer = NOISE_SHARE * plant.slots * finished.summary["flow"]["decode_utilization_ratio"] / swing**2
    periods = (scenario.horizon_s - scenario.warmup_s) / verdict.period_s
    return replace(
        linear,
        mechanism=f"{linear.mechanism}, its clipped flow integrated",
        period_s=verdict.period_s,
        period_bias_ratio=linear.period_bias_ratio + (longer if plant.noisy else 0.0),
        period_se_ratio=noise_kept_se(ZETA_LEFT, periods)[0] if plant.noisy else 0.0,
        amplitude_ratio=verdict.amplitude_ratio,
        utilization_ratio=finished.summary["flow"]["decode_utilization_ratio"],
        facts={**linear.facts, "linear_period_s": lap_s},
    )
