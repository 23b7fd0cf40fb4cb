"""The prediction of one candidate, and the parts that several kinds of loop share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields

import numpy as np

from policies.design import loops, stability, steady
from policies.design.tandem_model import Linear, Regime, TandemModel
from scenarios.analyze.model import Plant
from scenarios.analyze.tolerance import MODEL_DAMPING, MODEL_PERIOD
from scenarios.catalogue.verdict import Word


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearLoop:
    """A candidate's linearised loop about its set point, and the grid of frequencies that shows it.

    `margin_names`: the margins that mean something for this loop (an unstable one has a gain margin at most).
    """

    law: Linear
    model: TandemModel
    regime: Regime
    slowest_s: float
    fastest_s: float
    stable: bool = True
    margin_names: tuple[str, ...] = tuple(field.name for field in fields(loops.Margins))

    @property
    def response(self) -> loops.Response:
        """Return the loop gain as a function of complex frequency, dead time exact."""
        return self.law.loop(self.model, self.regime)

    @property
    def omega_rad_s(self) -> loops.Floats:
        """Return the frequencies, rad/s; for a residence that is not exponential, close enough for what it winds."""
        if self.model.shape.kind == "exponential":
            return loops.frequency_grid(self.slowest_s, self.fastest_s)
        grid = stability.loop_grid(self.model, self.slowest_s)
        return grid[grid <= 50 / self.fastest_s]

    def margins(self) -> dict[str, float | None]:
        """Return the margins as JSON values: what is infinite or never crossed becomes None.

        `delay_margin_s` is of the readings, which delays all of the loop; `pipeline_margin_s` of the true pipeline,
        while the law goes on with the dead time that it assumes.
        """
        if not self.margin_names:
            return {}
        margins = asdict(loops.margins(self.response, self.omega_rad_s))
        wide = stability.loop_grid(self.model, self.slowest_s)
        if not np.isfinite(margins["gain_margin"]):
            margins["gain_margin"] = stability.far_gain_margin(self.response, wide)
        if self.stable:
            margins["pipeline_margin_s"] = stability.pipeline_margin_s(self.law, self.model, self.regime, wide)
        names = (*self.margin_names, *(("pipeline_margin_s",) if self.stable else ()))
        return {name: margins[name] if np.isfinite(margins[name]) else None for name in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What theory expects of one signal: the decode occupancy, or the active workers for a capacity loop.

    `verdict` None: no prediction is made. Fields are None where theory says nothing. `margins` is empty where there is
    no linear loop; those of `loop` are computed when they are asked for, `stated_margins` are known without one. A run
    should come as near as the error of the theory (`*_bias_ratio`) and three standard errors of one run (`*_se_ratio`,
    each a share of the value) let it; utilisation is absolute. `facts` holds what belongs to the mechanism (Hopf gain,
    describing function, roots, set point). `uncompared`: why there is no verdict to compare. `also`: the
    other words that noise, or the nearness of an edge, may make of it.
    """

    mechanism: str
    verdict: Word | None = None
    period_s: float | None = None
    amplitude_ratio: float | None = None
    damping_ratio: float | None = None
    utilization_ratio: float | None = None
    period_bias_ratio: float = MODEL_PERIOD
    period_se_ratio: float = 0.0
    damping_bias_ratio: float = MODEL_DAMPING
    damping_se_ratio: float = 0.0
    utilization_tolerance_ratio: float = 0.01
    utilization_se_ratio: float = 0.0
    amplitude_tolerance_ratio: float = 0.01
    also: frozenset[Word] = frozenset()
    loop: LinearLoop | None = None
    stated_margins: Mapping[str, float | None] = field(default_factory=dict)
    facts: Mapping[str, float | None] = field(default_factory=dict)
    signal: str = "decode_occupancy_ratio"
    uncompared: str = "theory makes no prediction of this law"

    @property
    def margins(self) -> Mapping[str, float | None]:
        """Return the loop's margins; the first use imports python-control, which takes over a second."""
        return self.stated_margins if self.loop is None else self.loop.margins()

    def numbers(self) -> dict[str, object]:
        """Return the prediction without mechanism and margins, as JSON values."""
        kept = ("verdict", "period_s", "amplitude_ratio", "damping_ratio", "utilization_ratio")
        values = {name: getattr(self, name) for name in kept}
        return {**values, "or_verdicts": sorted(self.also), "facts": dict(self.facts)}


def no_prediction(reason: str | None) -> Prediction:
    """Return an empty prediction with the reason that the law gives."""
    return Prediction(mechanism=f"no linearisation, no prediction: {reason or 'the law declares none'}")


def quiet_word(plant: Plant) -> Word:
    """Return the word of a loop that does not swing: a fluid is constant, turns are steady."""
    return "steady" if plant.noisy else "constant"


def utilization(plant: Plant, buffer_turns: float, gain_per_s: float) -> float:
    """Return the mean share of busy slots behind a ready buffer of this mean above 0, under noise (none in a fluid)."""
    if not plant.noisy:
        return 1.0
    return steady.paced_utilization(
        slots=plant.slots,
        buffer_turns=buffer_turns,
        gain_per_s=gain_per_s,
        dead_time_s=plant.dead_time_s,
        throughput_per_s=plant.slots / plant.residence_s,
        shape=plant.shape,
    )
