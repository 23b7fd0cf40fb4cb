"""Predictions of capacity loops: multiplicative scaling with ordered workers unseen for some ticks, thresholds with one
worker a step, and sizes that follow the demand alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

import numpy as np

from policies.admission.credit import Credit
from policies.capacity.hpa import Hpa
from policies.design import capacity as theory
from policies.design.structure import FeedForward, Multiplicative, Scales, Scaling, Steps, reason_for_none
from scenarios.analyze.prediction import Prediction, no_prediction
from scenarios.build.cluster import startup_s
from scenarios.build.laws import make_law
from scenarios.errors import UserError
from scenarios.schema.laws import Candidate
from scenarios.schema.plants import ClusterPlant, LinearTimesPart
from scenarios.schema.scenario import Scenario
from scenarios.schema.workloads import PoissonWorkload, SaturatedWorkload
from scenarios.verdict.thresholds import THRESHOLDS

SIGNAL = "workers_active"


@dataclass(frozen=True, slots=True, kw_only=True)
class Startup:
    """How long an order takes to serve, in seconds, and where that number comes from."""

    delay_s: float
    source: str


def structure_of(candidate: Candidate, scenario: Scenario) -> tuple[Scaling | None, str | None]:
    """Return what a candidate's capacity law declares itself to be, and its reason where it declares nothing."""
    law = make_law("capacity", candidate.capacity, scenario.period_s("capacity", candidate.capacity))
    return (law.scaling() if isinstance(law, Scales) else None), reason_for_none(law)


def undeclared(scenario: Scenario) -> list[str]:
    """Return the pools whose start-up a scaling law's analysis needs and the plant does not declare."""
    plant = scenario.plant
    structures = [
        structure_of(candidate, scenario)[0] for candidate in scenario.candidates if candidate.capacity.kind != "hold"
    ]
    names = [structure.configuration for structure in structures if isinstance(structure, Multiplicative)]
    if not isinstance(plant, ClusterPlant):
        return []
    return [name for name in dict.fromkeys(names) if startup_s(plant.configurations[name]) is None]


def predict_scaling(
    candidate: Candidate, scenario: Scenario, identified: Mapping[str, Startup] | None = None
) -> tuple[Prediction, str]:
    """Return what theory says of a candidate's capacity loop, and where its start-up's length comes from.

    Parameters
    ----------
    candidate : Candidate
    scenario : Scenario
    identified : mapping of str to Startup, optional
        Start-ups that an experiment measured, by configuration; needed where the plant draws them.

    Raises
    ------
    UserError
        The plant draws the start-up and none was identified.
    """
    law, reason = structure_of(candidate, scenario)
    if not isinstance(scenario.plant, ClusterPlant) or law is None:
        return no_prediction(reason), "-"
    if isinstance(law, FeedForward):
        mechanism = f"feed-forward: workers follow the demand through a lag of {law.lag_s:g} s; nothing comes back"
        why = "the count is the demand's, of which theory says nothing"
        return Prediction(mechanism=mechanism, stated_margins={"gain_margin": None}, signal=SIGNAL, uncompared=why), "-"
    if isinstance(law, Steps):
        return _thresholds(law, scenario, scenario.plant), "-"
    start = (identified or {}).get(law.configuration) or _declared(scenario.plant, law.configuration)
    return _multiplicative(law, candidate, scenario, start), start.source


def _declared(plant: ClusterPlant, name: str) -> Startup:
    delay_s = startup_s(plant.configurations[name])
    if delay_s is None:
        raise UserError(
            f"plant.configurations.{name} draws its start-up: identify it first (steadyflow identify FILE "
            "--loop capacity)"
        )
    return Startup(delay_s=delay_s, source="declared by the plant")


def _thresholds(law: Steps, scenario: Scenario, plant: ClusterPlant) -> Prediction:
    most = sum(rack.count * rack.workers for rack in plant.racks)
    loose = [n for n in range(2, most + 1) if not theory.steps_never_chatter(law.down, law.up, n)]
    if law.consolidation:
        reason, loose = "it asks what the load will be with one worker fewer, so no constant load turns it round", []
    elif loose:
        sizes = str(loose[0]) if len(loose) == 1 else f"{loose[0]} to {loose[-1]}"
        reason = f"down x N/(N-1) reaches up for N = {sizes}: some constant loads make it flap there"
    else:
        reason = "down x N/(N-1) stays below up for every N: no constant load makes it flap"
    start_s = startup_s(plant.configurations[law.configuration])
    settles = False
    if loose:
        why = "theory says that some constant loads make it flap, not whether this one does"
    elif not isinstance(scenario.workload, PoissonWorkload | SaturatedWorkload):
        why = "theory speaks of constant loads, and this one changes with time"
    elif plant.faults:
        why = "theory speaks of constant loads, and faults change what this one is to the workers left"
    elif not law.waits and (start_s is None or start_s > scenario.control.capacity_period_s):
        why = "theory speaks of workers that serve by the next tick, and these start later"
    else:
        settles, why = True, ""
    return Prediction(
        mechanism=f"thresholds, one worker a step: {reason}",
        verdict="constant" if settles else None,
        facts={
            "flaps_at_least_workers": loose[0] if loose else None,
            "flaps_at_most_workers": loose[-1] if loose else None,
        },
        signal=SIGNAL,
        uncompared=why,
    )


def _multiplicative(law: Multiplicative, candidate: Candidate, scenario: Scenario, start: Startup) -> Prediction:
    period_s = scenario.period_s("capacity", candidate.capacity)
    delay_s = start.delay_s + scenario.telemetry.age_s
    # A worker that is ordered at one tick and serves by the next is never unseen.
    unseen = 0 if law.pending_counted else max(ceil(delay_s / period_s - 1e-9) - 1, 0)
    critical = theory.critical_gain(unseen)
    restless = law.gain >= critical * (1 - 1e-9)
    if not restless:
        word = "settles by itself"
    else:
        word = "marginal: repeats for ever" if law.gain <= critical * (1 + 1e-9) else "grows with each turn"
    held = restless and law.window_s > 0
    window = f"; held up on the way down for {law.window_s:g} s, which ends it after one overshoot" if held else ""
    linear_s = theory.critical_period_ticks(unseen) * period_s if restless else None
    path = _path(candidate, scenario, unseen, period_s)
    # Whole workers and their bounds make the lap: the linear period is that of small swings at the critical gain.
    ticks = None if path is None else theory.path_period_ticks(path)
    lap_s = linear_s if path is None else None if ticks is None else ticks * period_s
    # Other loads are random or change with time, and move the count more than the loop does.
    why = (
        "the load comes by chance or changes with time: only turns in flight held at a cap fix the count of every tick"
    )
    if path is not None:
        why = f"the run holds fewer than {THRESHOLDS.min_periods:g} of its periods"
    predicted = path is not None and (
        lap_s is None or scenario.horizon_s - scenario.warmup_s >= THRESHOLDS.min_periods * lap_s
    )
    quiet = ticks is None if path is not None else not restless or held
    judged_path = [] if path is None else path[ceil(scenario.warmup_s / period_s) :]
    return Prediction(
        mechanism=f"multiplicative scaling, {unseen} unseen ticks: {word}{window}",
        verdict=None if not predicted else "constant" if quiet else "limit_cycle",
        period_s=lap_s if predicted and not quiet else None,
        stated_margins={"gain_margin": critical / law.gain},
        facts={
            "unseen_ticks": float(unseen),
            "critical_gain": critical,
            "gain": law.gain,
            "critical_period_s": linear_s,
            "growth_per_tick_ratio": float(np.abs(theory.scaling_roots(law.gain, unseen)).max()),
            "startup_s": start.delay_s,
            "least_wanted_workers": float(min(judged_path)) if judged_path else None,
            "most_wanted_workers": float(max(judged_path)) if judged_path else None,
            "overshoot_workers": float(max(path)) if path else None,
        },
        signal=SIGNAL,
        uncompared=why,
    )


def _path(candidate: Candidate, scenario: Scenario, unseen: int, period_s: float) -> list[int] | None:
    # The count follows tick by tick only from a load that is constant and not random: turns in flight held at a cap by
    # an endless queue, and a measure that does not include the turns waiting for admission.
    law = make_law("capacity", candidate.capacity, period_s)
    cap = make_law("admission", candidate.admission, period_s)
    plant = scenario.plant
    if not (isinstance(cap, Credit) and isinstance(scenario.workload, SaturatedWorkload)):
        return None
    if not (isinstance(law, Hpa) and law.measure == "occupancy" and isinstance(plant, ClusterPlant)):
        return None
    slots = plant.configurations[law.configuration].slots
    start = sum(pool.workers for pool in plant.pools if pool.configuration == law.configuration)
    if slots is None or start == 0:
        return None
    return theory.ceiling_path(
        need_workers=cap.cap_turns / (law.target * slots),
        start_workers=start,
        unseen_ticks=unseen,
        ticks=ceil(scenario.horizon_s / period_s),
        tolerance_ratio=law.tolerance_ratio,
        window_ticks=round(law.down_window_s / period_s),
        pending_counted=law.pending_aware,
        least_workers=law.least_workers,
        most_workers=law.most_workers,
        up_workers=law.up_workers if law.policy_s <= period_s else None,
        unseen_down_ticks=_winding_down_ticks(scenario, law, plant, period_s),
    )


def _winding_down_ticks(scenario: Scenario, law: Hpa, plant: ClusterPlant, period_s: float) -> int | None:
    # A worker that is given up serves until its last turn ends: a mean answer at the batch that the law aims at.
    pool = plant.configurations[law.configuration]
    if not isinstance(pool.times, LinearTimesPart) or pool.slots is None or law.pending_aware:
        return None
    assert isinstance(scenario.workload, SaturatedWorkload)
    tokens = scenario.workload.output.mean_tokens
    step_s = pool.times.base_s + pool.times.per_sequence_s * law.target * pool.slots
    return max(ceil(tokens * step_s / period_s - 1e-9) - 1, 0)
