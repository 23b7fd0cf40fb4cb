"""Identify the admission loop's plant: excite the release rate and fit a first-order lag with dead time.

Two runs. In the first the release rate is at its limit until the pool is full, which gives the slots and the rate of a
full pool. In the second the release rate follows an excitation between half and three quarters of that rate, where
slots never run out, and busy slots are fitted as gain x lag x dead time of the release rate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from scipy.optimize import brentq

from policies.design import fits
from policies.design.shaped_fit import fit_gain
from policies.design.tandem_model import TandemModel
from scenarios.build import plants
from scenarios.errors import UserError
from scenarios.identify.turns import Turns, shape_from
from scenarios.run.execute import run
from scenarios.schema.laws import Candidate
from scenarios.schema.plants import FluidPlant
from scenarios.schema.scenario import Scenario
from scenarios.schema.workloads import PoissonWorkload, SaturatedWorkload, SyntheticWorkload
from scenarios.verdict.run import column, window_of
from scenarios.verdict.types import Floats

Excitation = Literal["step", "prbs", "relay"]
# Levels of the excitation, as shares of a full pool's rate: high enough to be representative of a busy plant, low
# enough that noise does not fill the pool.
LOW, HIGH = 0.5, 0.75
MOST_SAMPLES = 4000
LEAST_EXPLAINED, MOST_GAIN_ERROR = 0.5, 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Identified:
    """A fitted plant.

    `slots` N, `full_per_s` the rate of a full pool, `open_per_s` the arrival rate at the decode pool with unlimited
    admission (below the release limit where fill workers are the bottleneck; None: not measured). `gain_s` d(busy
    slots)/d(release rate), `tau_s` the lag and `dead_time_s` the dead time, each with its 95 % half-width;
    `explained_ratio` of the output's variance; `white` whether the residual passes for white noise; `arx` the same by a
    difference equation. `ultimate_*` are set by the relay experiment only. `source` names the experiment.
    `residences_ratio`: residences of the experiment's turns over their mean, at equally spaced ranks (empty: it had no
    turns). Where they are not exponential, `tau_s` is their mean and `dead_time_s` that of the turns.
    """

    slots: float
    full_per_s: float
    open_per_s: float | None
    gain_s: float
    gain_ci_s: float
    tau_s: float
    tau_ci_s: float
    dead_time_s: float
    dead_time_ci_s: float
    explained_ratio: float
    white: bool
    excitation: str
    source: str
    residences_ratio: Sequence[float] = ()
    arx: Mapping[str, Any] | None = None
    ultimate_gain_per_s: float | None = None
    ultimate_period_s: float | None = None

    def model(self) -> TandemModel:
        """Return the tandem model: N slots, the mean residence (equal to the gain), the dead time."""
        return TandemModel(
            slots=self.slots,
            residence_s=self.gain_s,
            dead_time_s=self.dead_time_s,
            shape=shape_from(self.residences_ratio),
        )

    def residences_s(self) -> tuple[tuple[float, float], ...]:
        """Return the mean residence in an empty and in a full pool: for the estimated gain and for both ends of its
        interval.

        Residence is assumed linear in the load, T = T_1 - s (1 - m) at a share m of the slots. More turns slow each
        other down, so that the gain is d(busy)/d(rate) = T^2 / (T - m s); T_1 is slots / full rate.
        """
        full, m = self.slots / self.full_per_s, (LOW + HIGH) / 2
        if shape_from(self.residences_ratio).kind != "exponential":
            # The turns of the experiment show the residence at its mean load.
            share = m * self.tau_s / full
            return ((max(full - (full - self.tau_s) / (1 - share), 0.1 * full), full),)

        def range_of(gain_s: float) -> tuple[float, float]:
            def excess(s: float) -> float:
                mean = full - s * (1 - m)
                return mean**2 - gain_s * (mean - m * s)

            steepest = 0.95 * full
            if excess(0.0) >= 0.0:  # no significant slow-down with load
                return full, full
            slope = float(brentq(excess, 0.0, steepest)) if excess(steepest) > 0.0 else steepest
            return full - slope, full

        return tuple(
            range_of(gain) for gain in (self.gain_s, self.gain_s - self.gain_ci_s, self.gain_s + self.gain_ci_s)
        )

    def to_json(self) -> dict[str, object]:
        """Return every field as a JSON value."""
        return asdict(self)


def supplied(scenario: Scenario) -> Scenario:
    """Return the scenario with a saturated workload, as an open-loop experiment needs it.

    Raises
    ------
    UserError
        The workload is a recorded one: its arrivals would limit the releases.
    """
    work = scenario.workload
    if isinstance(work, SaturatedWorkload):
        return scenario
    if not isinstance(work, SyntheticWorkload):
        raise UserError(
            f"workload.kind: {work.kind} brings its own arrivals, which would limit an admission experiment; "
            "`steadyflow analyze FILE --verify` and `steadyflow compare FILE` take the plant that each run measures"
        )
    waiting = SaturatedWorkload(
        kind="saturated", waiting_turns=1024, prompt=work.prompt, output=work.output, by_class=work.by_class
    )
    admission = scenario.admission
    if admission.max_release_per_s is None and isinstance(work, PoissonWorkload):
        # Without a release limit, a saturated queue would be admitted at one instant.
        admission = admission.model_copy(update={"max_release_per_s": 2 * work.rate_per_s})
    return scenario.model_copy(update={"workload": waiting, "admission": admission})


def identify(
    scenario: Scenario, *, excitation: Excitation = "prbs", seed: int | None = None, hold_s: float | None = None
) -> Identified:
    """Identify the admission loop's plant.

    Parameters
    ----------
    scenario : Scenario
        Its candidates are not used; horizon and warm-up apply to the experiment.
    excitation : {"step", "prbs", "relay"}
        The excitation of the release rate.
    seed : int, optional
        None: the scenario's.
    hold_s : float, optional
        How long one level lasts; by default a tenth of the window for a step, a fiftieth for the sequence.

    Raises
    ------
    UserError
        The release rate cannot fill the pool, or the record does not determine a model; the message names a remedy.
    """
    period_s, age_s = scenario.control.admission_period_s, scenario.telemetry.age_s
    if excitation == "relay" and period_s < age_s:
        raise UserError(
            f"control.admission_period_s = {period_s:g} is shorter than the age of the readings, telemetry.age_s = "
            f"{age_s:g}: a relay would switch before it reads the effect; raise it, or use prbs or step"
        )
    fed = supplied(scenario)
    slots, full_per_s, open_per_s = _full_pool(fed, seed)
    window_s = scenario.horizon_s - scenario.warmup_s
    low, high = LOW * full_per_s, HIGH * full_per_s
    hold = hold_s or window_s / (10 if excitation == "step" else 50)
    law: dict[str, object] = {"kind": excitation, "low_per_s": low, "high_per_s": high}
    if excitation == "relay":
        law |= {"threshold_turns": (LOW + HIGH) / 2 * slots, "band_turns": 0.02 * slots}
    else:
        law |= {"hold_s": hold}
    t, u, x, turns = _experiment(fed, law, seed, slots)
    if float(np.quantile(x, 0.99)) > 0.99 * slots:
        raise UserError("the pool filled up under the excitation: the record does not describe the unsaturated plant")
    fit = _fitted(t, u, x, turns)
    stationary(fit.residual, x)
    relay = fits.relay_ultimate(t, u, x) if excitation == "relay" else None
    return Identified(
        slots=slots,
        full_per_s=full_per_s,
        open_per_s=open_per_s,
        gain_s=fit.model.gain,
        gain_ci_s=fit.gain_ci,
        tau_s=fit.model.tau_s,
        tau_ci_s=fit.tau_ci_s,
        dead_time_s=fit.model.dead_time_s,
        dead_time_ci_s=fit.dead_time_ci_s,
        explained_ratio=fit.explained,
        white=fit.white,
        excitation=excitation,
        source=f"open-loop {excitation} experiment" if excitation != "relay" else "relay experiment",
        residences_ratio=turns.residences_ratio,
        arx=difference_equation(t, u, x, fit.model.dead_time_s),
        ultimate_gain_per_s=None if relay is None else relay.gain,
        ultimate_period_s=None if relay is None else relay.period_s,
    )


def _full_pool(scenario: Scenario, seed: int | None) -> tuple[float, float, float | None]:
    declared = plants.declared(scenario)
    if declared is not None:
        return float(declared.slots), declared.service_per_s, None
    unlimited = scenario.model_copy(update={"candidates": (Candidate.model_validate({"name": "open"}),), "expect": {}})
    signals = run(unlimited, seed=seed).signals
    record = window_of(signals, scenario.warmup_s, scenario.horizon_s)
    busy, share = column(record, "decoding_turns", 1.0), column(record, "decode_occupancy_ratio", 1.0)
    if not len(share) or float(np.median(share)) < 0.9:
        raise UserError(
            "with unlimited admission the decode pool is not full after the warm-up: raise "
            "admission.max_release_per_s, add fill workers, or lengthen warmup_s"
        )
    slots = float(np.median(busy[share > 0.5] / share[share > 0.5]))
    width = float(record["t_s"].iloc[1] - record["t_s"].iloc[0])
    retired = column(record, "retirement_per_s", width)
    full = float(retired[share > 0.97].mean() if np.any(share > 0.97) else retired.mean())
    at_decode = busy + column(record, "ready_turns", 1.0) + np.cumsum(retired) * width
    arrival_per_s = float(np.polyfit(np.arange(len(at_decode)) * width, at_decode, 1)[0])
    return round(slots), full, arrival_per_s


def _experiment(
    scenario: Scenario, law: Mapping[str, object], seed: int | None, slots: float
) -> tuple[Floats, Floats, Floats, Turns]:
    excited = Candidate.model_validate({"name": "excited", "admission": law})
    admission = scenario.admission.model_copy(update={"slew_per_s2": None})
    experiment = scenario.model_copy(update={"candidates": (excited,), "expect": {}, "admission": admission})
    if isinstance(experiment.plant, FluidPlant):
        experiment = experiment.model_copy(
            update={"record": experiment.record.model_copy(update={"signal_bin_s": experiment.bin_s})}
        )
    finished = run(experiment, seed=seed)
    record = window_of(finished.signals, scenario.warmup_s, scenario.horizon_s)
    turns = Turns.of(finished.summary.get("measured"))
    start = record["t_s"].to_numpy(dtype=np.float64)
    width = float(start[1] - start[0])
    join = max(len(start) // MOST_SAMPLES, 1)
    rate, busy = column(record, "admission_per_s", width), column(record, "decode_occupancy_ratio", width) * slots
    keep = len(start) // join * join
    t = start[:keep].reshape(-1, join)[:, 0]
    rate, busy = (series[:keep].reshape(-1, join).mean(axis=1) for series in (rate, busy))
    return t - t[0], rate, busy, turns


def _fitted(t: Floats, u: Floats, x: Floats, turns: Turns) -> fits.FopdtFit:
    try:
        span = float(t[-1])
        shape, skip_s = shape_from(turns.residences_ratio), 0.2 * span
        if shape.kind == "exponential":
            fit = fits.fit_fopdt(t, u, x, most_dead_time_s=span / 10, skip_s=skip_s, rising=True)
        else:
            # No lag describes it, and its turns show dead time and residence themselves.
            fit = fit_gain(t, u, x, mean_s=turns.residence_s, dead_time_s=turns.dead_time_s, shape=shape, skip_s=skip_s)
    except ValueError as error:
        raise UserError(f"no model fits the record: {error}") from error
    if fit.explained < LEAST_EXPLAINED or fit.gain_ci > MOST_GAIN_ERROR * fit.model.gain:
        raise UserError(
            f"the record does not determine a model (explained {fit.explained:.0%}, gain {fit.model.gain:.3g} +- "
            f"{fit.gain_ci:.2g} s): lengthen horizon_s, or hold each level longer (--hold-s)"
        )
    return fit


def stationary(residual: Floats, output: Floats) -> None:
    """Raise UserError where the plant changed during the experiment."""
    if fits.drifts(residual, output):
        raise UserError(
            "the record is not stationary: the residual of the model shifts permanently; identify within a "
            "span without faults or changes of load (set warmup_s and horizon_s around it, or take the faults out)"
        )


def difference_equation(t: Floats, u: Floats, x: Floats, dead_time_s: float) -> dict[str, object] | None:
    """Return the plant as a first-order difference equation (ARX); None where the record does not determine one."""
    step = float(t[1] - t[0])
    try:
        arx = fits.fit_arx(u, x, a_order=1, b_order=1, delay=max(round(dead_time_s / step) + 1, 1))
    except ValueError:
        return None
    return {
        "a": arx.a.tolist(),
        "a_ci": arx.a_ci.tolist(),
        "b": arx.b.tolist(),
        "b_ci": arx.b_ci.tolist(),
        "delay_samples": arx.delay,
        "step_s": step,
        "white": arx.white,
    }
