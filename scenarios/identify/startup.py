"""Identify the capacity loop's plant: excite a pool's target size and fit the response of its ready workers.

One run in which the target workers follow an excitation, from the pool's initial size upwards. Ready workers are fitted
as a lag with dead time for starts and another for stops, with one gain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from math import ceil, floor
from typing import Any

import numpy as np
import pandas as pd

from policies.design.two_way import TwoWayFit, fit_two_way, split
from scenarios.build.cluster import startup_s
from scenarios.errors import UserError, nearest
from scenarios.identify.identify import (
    LEAST_EXPLAINED,
    MOST_GAIN_ERROR,
    MOST_SAMPLES,
    Excitation,
    difference_equation,
    stationary,
)
from scenarios.run.execute import run
from scenarios.schema.laws import Candidate
from scenarios.schema.plants import ClusterPlant
from scenarios.schema.scenario import Scenario
from scenarios.verdict.types import Floats

# Samples per tick: fine enough to locate a start within a tick, coarse enough for short records.
MOST_SAMPLES_PER_TICK = 20
# The window must hold at least this many start-up times to distinguish a start from a drift.
LEAST_STARTS = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentifiedStartup:
    """The response of a pool's ready workers to its target.

    `gain_ratio` ready workers per target worker; `dead_time_s`, `tau_s` dead time and lag of starts, `down_*` of stops,
    each with its 95 % half-width (at least half a sample); `delay_ci_s` that of dead time and lag together, which a
    record determines better than their split; `declared_s` the start-up time that the plant declares (None: it is
    random, or may fail). Other fields as in `Identified`.
    """

    configuration: str
    low_workers: int
    high_workers: int
    gain_ratio: float
    gain_ci_ratio: float
    dead_time_s: float
    dead_time_ci_s: float
    tau_s: float
    tau_ci_s: float
    down_dead_time_s: float
    down_dead_time_ci_s: float
    down_tau_s: float
    down_tau_ci_s: float
    delay_ci_s: float
    down_delay_ci_s: float
    explained_ratio: float
    white: bool
    excitation: str
    source: str
    declared_s: float | None = None
    arx: Mapping[str, Any] | None = None
    ultimate_period_s: float | None = None

    @property
    def delay_s(self) -> float:
        """Return the mean time from an order to a serving worker, seconds."""
        return self.dead_time_s + self.tau_s

    @property
    def down_delay_s(self) -> float:
        """Return the mean time from an order to a worker that has gone, seconds."""
        return self.down_dead_time_s + self.down_tau_s

    def to_json(self) -> dict[str, object]:
        """Return every field as a JSON value."""
        return {**asdict(self), "delay_s": self.delay_s, "down_delay_s": self.down_delay_s}


def admission_candidate(scenario: Scenario, name: str) -> Candidate:
    """Return the candidate whose admission law the experiment keeps: the first that scales the pool, or the first.

    Without an admission law a saturated workload would be admitted at one instant.
    """
    scaling = [candidate for candidate in scenario.candidates if name in _scaled(candidate)]
    return (scaling or list(scenario.candidates))[0]


def _scaled(candidate: Candidate) -> tuple[str, ...]:
    law = candidate.capacity
    names = (getattr(law, "configuration", None), *getattr(law, "configurations", ()))
    return tuple(name for name in names if name)


def pool_of(scenario: Scenario, configuration: str | None = None) -> str:
    """Return the configuration to excite: the one named, or the first that a candidate's capacity law scales.

    Raises
    ------
    UserError
        The plant has no workers to move, or no such configuration, or nothing to take workers from.
    """
    plant = scenario.plant
    if not isinstance(plant, ClusterPlant):
        raise UserError(
            f"plant.kind: the {plant.kind} plant has no workers to move; identify --loop capacity needs a cluster"
        )
    name = configuration or next((name for candidate in scenario.candidates for name in _scaled(candidate)), None)
    if name is None:
        raise UserError(
            "no candidate scales a pool: name one by --configuration "
            f"({', '.join(dict.fromkeys(pool.configuration for pool in plant.pools))})"
        )
    if name not in plant.configurations:
        raise UserError(f"--configuration {name}: no such configuration{nearest(name, list(plant.configurations))}")
    if scenario.reconfigure.reserve is None:
        raise UserError("reconfigure.reserve is missing: without idle workers there is nothing to start")
    return name


def identify_startup(
    scenario: Scenario,
    configuration: str,
    *,
    excitation: Excitation = "step",
    seed: int | None = None,
    hold_s: float | None = None,
) -> IdentifiedStartup:
    """Identify the capacity loop's plant.

    Parameters
    ----------
    scenario : Scenario
        Only the first candidate's admission law is used; plant, workload and horizon apply to the experiment.
    configuration : str
        The pool to excite.
    excitation : {"step", "prbs", "relay"}
        The excitation of the target workers.
    seed : int, optional
        None: the scenario's.
    hold_s : float, optional
        How long one size lasts; by default a tenth of the run for a step, a fiftieth for the sequence.

    Raises
    ------
    UserError
        The plant has no workers to move, readings are older than a tick, or the record does not determine a model.
    """
    name = pool_of(scenario, configuration)
    assert isinstance(scenario.plant, ClusterPlant)
    period_s = scenario.control.capacity_period_s
    if period_s < scenario.telemetry.age_s:
        raise UserError(
            f"control.capacity_period_s = {period_s:g} is shorter than the age of the readings, telemetry.age_s = "
            f"{scenario.telemetry.age_s:g}: the effect of a tick is read after the next; raise it to that age or above"
        )
    low, high = _sizes(scenario, name)
    hold = max(hold_s or scenario.horizon_s / (10 if excitation == "step" else 50), period_s)
    law: dict[str, object] = {"kind": excitation, "configuration": name, "low_workers": low, "high_workers": high}
    held_s = ceil(hold / period_s - 1e-9) * period_s
    law |= {"threshold_workers": (low + high) / 2} if excitation == "relay" else {"hold_s": held_s}
    t, u, y = _experiment(scenario, law, name, low, period_s, seed)
    fit = _fitted(t, u, y, low)
    stationary(fit.residual, y)
    ups = t[np.flatnonzero(np.diff(u) > 0)]
    return IdentifiedStartup(
        configuration=name,
        low_workers=low,
        high_workers=high,
        gain_ratio=fit.up.gain,
        gain_ci_ratio=fit.gain_ci,
        dead_time_s=fit.up.dead_time_s,
        dead_time_ci_s=fit.up_dead_time_ci_s,
        tau_s=fit.up.tau_s,
        tau_ci_s=fit.up_tau_ci_s,
        down_dead_time_s=fit.down.dead_time_s,
        down_dead_time_ci_s=fit.down_dead_time_ci_s,
        down_tau_s=fit.down.tau_s,
        down_tau_ci_s=fit.down_tau_ci_s,
        delay_ci_s=fit.up_delay_ci_s,
        down_delay_ci_s=fit.down_delay_ci_s,
        explained_ratio=fit.explained,
        white=fit.white,
        excitation=excitation,
        source=f"open-loop {excitation} experiment" if excitation != "relay" else "relay experiment",
        declared_s=startup_s(scenario.plant.configurations[name]),
        arx=difference_equation(t, _delayed_input(t, u, low, fit), y, 0.0),
        ultimate_period_s=float(np.diff(ups).mean()) if excitation == "relay" and len(ups) > 1 else None,
    )


def _sizes(scenario: Scenario, name: str) -> tuple[int, int]:
    assert isinstance(scenario.plant, ClusterPlant)
    workers: dict[str, int] = {}
    for pool in scenario.plant.pools:
        workers[pool.configuration] = workers.get(pool.configuration, 0) + pool.workers
    low, spare = workers.get(name, 0), workers.get(str(scenario.reconfigure.reserve), 0)
    if spare == 0:
        raise UserError(
            f"plant.pools: no worker of {scenario.reconfigure.reserve}, the reserve, so no worker can start"
        )
    # Half as many more: a worker that is starting cannot be recalled, so a stop takes another one.
    return low, low + min(max(low // 2, 1), spare)


def _experiment(
    scenario: Scenario, law: Mapping[str, object], name: str, low: int, period_s: float, seed: int | None
) -> tuple[Floats, Floats, Floats]:
    # An integer number of samples per tick: the target changes between samples, so the record holds it exactly.
    samples_per_tick = min(max(floor(MOST_SAMPLES * period_s / scenario.horizon_s), 1), MOST_SAMPLES_PER_TICK)
    step = period_s / samples_per_tick
    excited = Candidate.model_validate({"name": "excited", "capacity": {**law, "period_s": period_s}})
    excited = excited.model_copy(update={"admission": admission_candidate(scenario, name).admission})
    record = scenario.record.model_copy(update={"signal_bin_s": step})
    experiment = scenario.model_copy(update={"candidates": (excited,), "expect": {}, "record": record, "warmup_s": 0.0})
    result = run(experiment, seed=seed)
    ready = _at_ends(result.signals, f"pool.{name}.active_workers", float(low))
    t = np.asarray(np.arange(len(ready)) * step, dtype=np.float64)
    u = np.full(len(t), float(low))
    for at_s, wanted in _orders(result.data.events, name):
        u[t >= at_s - 1e-9 * period_s] = wanted
    # The end of a bin is the time of the next sample.
    return t, u, np.asarray(np.concatenate([[float(low)], ready[:-1]]), dtype=np.float64)


def _at_ends(signals: pd.DataFrame, name: str, start: float) -> Floats:
    """Return a level at the end of each bin; its bins are so short that it changes in one direction within each."""
    values, value = [], start
    for least, greatest in zip(signals[f"{name}_min"], signals[f"{name}_max"]):
        value = greatest if greatest > value else least
        values.append(value)
    return np.asarray(values, dtype=np.float64)


def _orders(events: Iterable[Mapping[str, Any]], name: str) -> Iterable[tuple[float, float]]:
    for event in events:
        if event["kind"] == "command" and event["slot"] == "capacity":
            wanted = event["command"].get("target_workers", {})
            if name in wanted:
                yield float(event["at_s"]), float(wanted[name])


def _fitted(t: Floats, u: Floats, y: Floats, low: int) -> TwoWayFit:
    span = float(t[-1])
    longer = "lengthen horizon_s, or hold each size longer (--hold-s)"
    try:
        fit = fit_two_way(t, u, y, rest=low, most_dead_time_s=span / LEAST_STARTS)
    except ValueError as error:
        raise UserError(f"no model fits the record: {error}: {longer}") from error
    start_s = fit.up.dead_time_s + fit.up.tau_s
    if start_s > span / LEAST_STARTS * (1 - 1e-3):
        raise UserError(
            f"the record is too short: {span:g} s hold fewer than {LEAST_STARTS:g} starts of {start_s:.3g} s or more; "
            f"set horizon_s to {10 * ceil(LEAST_STARTS * start_s * 2 / 10):g} or above"
        )
    if fit.explained < LEAST_EXPLAINED or fit.gain_ci > MOST_GAIN_ERROR * fit.up.gain:
        raise UserError(
            f"the record does not determine a model (explained {fit.explained:.0%}, gain {fit.up.gain:.3g} +- "
            f"{fit.gain_ci:.2g}): {longer}"
        )
    return fit


def _delayed_input(t: Floats, u: Floats, low: int, fit: TwoWayFit) -> Floats:
    step = float(t[1] - t[0])

    # The input delayed by the dead time of its direction, so that one difference equation fits.
    def delayed(x: Floats, dead_time_s: float) -> Floats:
        samples = round(dead_time_s / step)
        return np.concatenate([np.zeros(samples), x[: len(x) - samples]])

    up, down = split(u, float(low))
    return delayed(up, fit.up.dead_time_s) + delayed(down, fit.down.dead_time_s)
