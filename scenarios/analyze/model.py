"""The parameters of a plant that theory needs: slots, dead time, residence, and the delay of observation."""

from __future__ import annotations

from dataclasses import dataclass

from policies.design.residence import EXPONENTIAL, Shape
from policies.design.tandem_model import TandemModel
from scenarios.build import plants
from scenarios.errors import UserError
from scenarios.schema.plants import FluidPlant, ResidenceLaw, TandemPlant
from scenarios.schema.scenario import Scenario
from scenarios.schema.workloads import PoissonWorkload, SaturatedWorkload


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """A plant and its surroundings, in the theory's terms.

    `shape` is that of residence. `ceiling_per_s` is the most that the door releases (None: no limit). `arrivals_per_s`
    None: work waits at the door for ever. `noisy` False: a fluid. `source` says where the numbers come from.
    `residences_s`: mean residence in an empty and in a full pool as an experiment measured them, then at either end of
    its confidence (empty: one number holds throughout). `dead_times_s`: those of turns at equally spaced ranks, where a
    run showed them (empty: all have the same).
    """

    slots: float
    residence_s: float
    dead_time_s: float
    ceiling_per_s: float | None
    arrivals_per_s: float | None
    noisy: bool
    source: str
    residences_s: tuple[tuple[float, float], ...] = ()
    dead_times_s: tuple[float, ...] = ()
    shape: Shape = EXPONENTIAL

    def seen_by(self, scenario: Scenario, period_s: float) -> TandemModel:
        """Return the model with the delays of one law's telemetry and period in it."""
        telemetry = scenario.telemetry
        return TandemModel(
            slots=self.slots,
            residence_s=self.residence_s,
            dead_time_s=self.dead_time_s,
            observation_s=telemetry.age_s + telemetry.period_s / 2 + period_s / 2,
            shape=self.shape,
        )


def shape_of(law: ResidenceLaw) -> Shape:
    """Return the shape of a residence law."""
    return Shape(kind=law.shape, stages=law.stages, cv_ratio=law.cv_ratio)


def plant_of(
    scenario: Scenario,
    identified: TandemModel | None = None,
    open_per_s: float | None = None,
    residences_s: tuple[tuple[float, float], ...] = (),
) -> Plant:
    """Return the plant's own model, or the identified one where it declares none.

    `open_per_s` is what the identified plant brings to its decode pool with the door open, `residences_s` its
    residence in an empty and in a full pool, and how well they are known.

    Raises
    ------
    UserError
        The plant declares no model and none was identified.
    """
    declared = plants.declared(scenario)
    work, ceiling = scenario.workload, scenario.admission.max_release_per_s
    arrivals = work.rate_per_s if isinstance(work, PoissonWorkload) else None
    if not isinstance(work, SaturatedWorkload | PoissonWorkload):
        raise UserError(
            f"workload.kind: {work.kind} has no analysis; saturated and poisson have: analyse with one of them"
        )
    if declared is not None and isinstance(scenario.plant, TandemPlant | FluidPlant):
        return Plant(
            slots=declared.slots,
            residence_s=declared.residence_s,
            dead_time_s=declared.dead_time_s,
            shape=shape_of(scenario.plant.residence),
            ceiling_per_s=ceiling,
            arrivals_per_s=arrivals,
            noisy=isinstance(scenario.plant, TandemPlant),
            source="declared by the plant",
        )
    if identified is None:
        raise UserError("the plant declares no model: identify it first (steadyflow identify FILE --loop admission)")
    return Plant(
        slots=identified.slots,
        residence_s=identified.residence_s,
        dead_time_s=identified.dead_time_s,
        shape=identified.shape,
        ceiling_per_s=min((x for x in (ceiling, open_per_s) if x is not None), default=None),
        arrivals_per_s=arrivals,
        noisy=True,
        source="identified by open-loop experiment",
        residences_s=residences_s,
    )
