"""The prediction of one candidate, and the parts that several kinds of loop share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from policies.design import steady
from scenarios.analyze.model import Plant
from scenarios.analyze.tolerance import MODEL_DAMPING, MODEL_PERIOD
from scenarios.verdict.types import Word


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What theory expects of one signal: the decode occupancy, or the active workers for a capacity loop.

    `verdict` None: no prediction is made. Fields are None where theory says nothing. `margins` is empty where there is
    no linear loop. A run should come as near as the error of the theory (`*_bias_ratio`) and three standard errors of
    one run (`*_se_ratio`, each a share of the value) let it; utilisation is absolute. `facts` holds what belongs to
    the mechanism (Hopf gain, describing function, roots, set point). `uncompared`: why there is no verdict to compare.
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
    margins: Mapping[str, float | None] = field(default_factory=dict)
    facts: Mapping[str, float | None] = field(default_factory=dict)
    signal: str = "decode_occupancy_ratio"
    uncompared: str = "theory makes no prediction of this law"

    def numbers(self) -> dict[str, object]:
        """Return the prediction without mechanism and margins, as JSON values."""
        kept = ("verdict", "period_s", "amplitude_ratio", "damping_ratio", "utilization_ratio")
        return {**{name: getattr(self, name) for name in kept}, "facts": dict(self.facts)}


def no_prediction(reason: str | None) -> Prediction:
    """Return an empty prediction with the reason that the law gives."""
    return Prediction(mechanism=f"no linearisation, no prediction: {reason or 'the law declares none'}")


def quiet_word(plant: Plant) -> Word:
    """Return the word of a loop that does not swing: a fluid is constant, turns are steady."""
    return "steady" if plant.noisy else "constant"


def utilization(plant: Plant, buffer_turns: float, gain_per_s: float) -> float:
    """Return the mean share of busy slots behind a ready buffer of this mean, under noise (none in a fluid)."""
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
