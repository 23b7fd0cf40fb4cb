"""Draws of a scenario's uncertainty by Latin hypercube, and the scenario whose true plant is such a draw.

Each range is cut into as many strips as there are draws, and each strip is met once: few draws still reach both ends of
every range. Ratios of seconds and loads are drawn evenly in their logarithm (half and double are equally far), the
coefficient of variation evenly.

References
----------
McKay, Beckman and Conover, Technometrics 21 (1979) 239-245.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from scipy.stats import qmc

from scenarios.analyze.uncertain import shape_of_cv
from scenarios.errors import UserError
from scenarios.schema.plants import FluidPlant, ResidenceLaw, TandemPlant
from scenarios.schema.scenario import Scenario
from scenarios.schema.workloads import PoissonWorkload, SaturatedWorkload, StepWorkload

Draw = Mapping[str, float]
LINEAR = ("residence_cv_ratio",)
OF_THE_PLANT = ("dead_time_ratio", "residence_ratio", "residence_cv_ratio")


def ranges_of(scenario: Scenario) -> dict[str, tuple[float, float]]:
    """Return the ranges of the box that can differ from what the scenario states, by name.

    Raises
    ------
    UserError
        The scenario states no uncertainty, or one of a kind that its plant or its workload cannot be given.
    """
    box = scenario.uncertainty
    if box is None:
        raise UserError(
            "[uncertainty] is missing: state how far the plant may differ, as dead_time_ratio = [0.5, 2.0] "
            "(or --set 'uncertainty={ dead_time_ratio = [0.5, 2.0] }')"
        )
    stated = {name: value for name, value in box.model_dump().items() if value not in (None, (1.0, 1.0))}
    if isinstance(scenario.workload, SaturatedWorkload):
        stated.pop("load_ratio", None)  # work waits for ever: there is no load to be wrong about
    elif "load_ratio" in stated and not isinstance(scenario.workload, PoissonWorkload | StepWorkload):
        raise UserError(
            f"uncertainty.load_ratio: the arrivals of a workload of kind {scenario.workload.kind} cannot be scaled; "
            "those of poisson and step can"
        )
    wrong = next((name for name in OF_THE_PLANT if name in stated), None)
    if wrong is not None and not isinstance(scenario.plant, TandemPlant | FluidPlant):
        raise UserError(
            f"uncertainty.{wrong}: a plant of kind {scenario.plant.kind} states no such number to differ from; "
            "tandem and fluid do, and load_ratio is for every plant"
        )
    if not stated:
        raise UserError("[uncertainty]: no range differs from 1, so there is nothing to draw")
    return stated


def draws(ranges: Mapping[str, tuple[float, float]], count: int, seed: int) -> list[dict[str, float]]:
    """Return draws of a box.

    Parameters
    ----------
    ranges : mapping of str to (float, float)
        Least and greatest value by name.
    count : int
    seed : int
        Equal seeds, equal draws.
    """
    unit = qmc.LatinHypercube(d=len(ranges), rng=seed).random(count)
    rows = []
    for row in unit:
        values = {name: _between(name, *ends, float(u)) for (name, ends), u in zip(ranges.items(), row)}
        # Nine digits, so that a resumed command meets the same draws again.
        rows.append({name: float(f"{value:.9g}") for name, value in values.items()})
    return rows


def _between(name: str, low: float, high: float, u: float) -> float:
    if name in LINEAR or low == high:
        return low + u * (high - low)
    return low * math.exp(u * math.log(high / low))


def drawn(scenario: Scenario, draw: Draw) -> Scenario:
    """Return the scenario with the drawn plant and arrivals as the true ones; its laws keep their parameters."""
    parts: dict[str, object] = {}
    plant, work = scenario.plant, scenario.workload
    if isinstance(plant, TandemPlant | FluidPlant):
        parts["plant"] = plant.model_copy(
            update={
                "dead_time_s": plant.dead_time_s * draw.get("dead_time_ratio", 1.0),
                "residence": _residence(
                    plant.residence, draw.get("residence_ratio", 1.0), draw.get("residence_cv_ratio")
                ),
            }
        )
    load = draw.get("load_ratio", 1.0)
    if isinstance(work, PoissonWorkload):
        parts["workload"] = work.model_copy(update={"rate_per_s": work.rate_per_s * load})
    elif isinstance(work, StepWorkload):
        steps = tuple(step.model_copy(update={"rate_per_s": step.rate_per_s * load}) for step in work.steps)
        parts["workload"] = work.model_copy(update={"steps": steps})
    return scenario.model_copy(update=parts)


def _residence(law: ResidenceLaw, ratio: float, cv: float | None) -> ResidenceLaw:
    if cv is None:
        return law.model_copy(update={"mean_s": law.mean_s * ratio})
    shape = shape_of_cv(cv)
    return ResidenceLaw(shape=shape.kind, mean_s=law.mean_s * ratio, cv_ratio=shape.cv_ratio)
