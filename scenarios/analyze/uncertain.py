"""The worst corner of the uncertainty that a scenario states: theory for the true plant, the law as it was told.

Dead time, residence, its spread and the load are each put at either end of their range (`[uncertainty]`); a law keeps
the parameters of the scenario. The worst corner is one where the loop cycles, else the one that uses the pool least.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from policies.design.residence import Shape
from scenarios.analyze.model import Plant
from scenarios.analyze.prediction import Prediction
from scenarios.schema.settings import UncertaintyPart

CYCLES = frozenset({"limit_cycle", "quasi_cycle", "echo", "ringing"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Corner:
    """One corner of the box, and what theory says there. Ratios are to the scenario's plant; None: as it states it.

    `count` corners were looked at; in `cycling` of them the loop cycles.
    """

    dead_time_ratio: float
    residence_ratio: float
    residence_cv_ratio: float | None
    load_ratio: float
    prediction: Prediction
    count: int
    cycling: int

    def __str__(self) -> str:
        """Return the corner and its outcome in one line."""
        spread = "" if self.residence_cv_ratio is None else f", residence cv {self.residence_cv_ratio:g}"
        load = "" if self.load_ratio == 1.0 else f", load x {self.load_ratio:g}"
        word = (self.prediction.verdict or "no word").replace("_", " ")
        used = self.prediction.utilization_ratio
        share = "" if used is None else f", {used:.3f} of the slots busy"
        return (
            f"L x {self.dead_time_ratio:g}, T x {self.residence_ratio:g}{spread}{load}: {word}{share}; "
            f"cycles in {self.cycling} of {self.count} corners"
        )

    def to_json(self) -> dict[str, object]:
        """Return the corner as JSON values."""
        return {
            "dead_time_ratio": self.dead_time_ratio,
            "residence_ratio": self.residence_ratio,
            "residence_cv_ratio": self.residence_cv_ratio,
            "load_ratio": self.load_ratio,
            "mechanism": self.prediction.mechanism,
            "prediction": self.prediction.numbers(),
            "margins": dict(self.prediction.margins),
            "corners": self.count,
            "cycling_corners": self.cycling,
        }


def corner_plant(plant: Plant, dead_time: float, residence: float, cv: float | None, load: float) -> Plant:
    """Return the plant with its dead time, residence and load times a factor and another spread of residence."""
    return replace(
        plant,
        dead_time_s=plant.dead_time_s * dead_time,
        dead_times_s=tuple(span_s * dead_time for span_s in plant.dead_times_s),
        residence_s=plant.residence_s * residence,
        residences_s=tuple((empty * residence, full * residence) for empty, full in plant.residences_s),
        arrivals_per_s=None if plant.arrivals_per_s is None else plant.arrivals_per_s * load,
        shape=plant.shape if cv is None else shape_of_cv(cv),
    )


def shape_of_cv(cv: float) -> Shape:
    """Return a shape of this spread: fixed at 0, exponential at 1, lognormal else."""
    if cv == 0.0:
        return Shape(kind="fixed")
    return Shape() if cv == 1.0 else Shape(kind="lognormal", cv_ratio=cv)


def worst_corner(box: UncertaintyPart, plant: Plant, predicted: Callable[[Plant], Prediction]) -> Corner | None:
    """Return the worst corner of a box; None where theory has no word at any.

    Parameters
    ----------
    box : UncertaintyPart
    plant : Plant
        The plant that the scenario states.
    predicted : callable
        Returns theory for the candidate before another plant.
    """
    loads: tuple[float, ...] = (1.0,) if plant.arrivals_per_s is None else box.load_ratio
    spreads: tuple[float | None, ...] = box.residence_cv_ratio or (None,)
    corners = [
        ((dead, residence, cv, load), predicted(corner_plant(plant, dead, residence, cv, load)))
        for dead in dict.fromkeys(box.dead_time_ratio)
        for residence in dict.fromkeys(box.residence_ratio)
        for cv in dict.fromkeys(spreads)
        for load in dict.fromkeys(loads)
    ]
    known = [(corner, analysis) for corner, analysis in corners if analysis.verdict is not None]
    if not known:
        return None
    worst, prediction = min(known, key=lambda pair: _order(pair[1]))
    return Corner(
        dead_time_ratio=worst[0],
        residence_ratio=worst[1],
        residence_cv_ratio=worst[2],
        load_ratio=worst[3],
        prediction=prediction,
        count=len(corners),
        cycling=sum(analysis.verdict in CYCLES for _, analysis in known),
    )


def _order(prediction: Prediction) -> tuple[bool, float]:
    used = prediction.utilization_ratio
    return prediction.verdict not in CYCLES, 1.0 if used is None else used
