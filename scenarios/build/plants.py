"""From a plant's table to a plant, and what the plant declares about itself to theory."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.clock import Clock
from orchestrator.messages import Role
from orchestrator.ports import Plant
from plant.hidden_turns import HiddenTurns
from plant.theory.tandem import Residence, Tandem
from scenarios.build.cluster import cluster, gpus
from scenarios.build.kv import kv_spec
from scenarios.errors import UserError
from scenarios.schema.plants import ClusterPlant, EnginesPlant, FluidPlant, ResidenceLaw, TandemPlant
from scenarios.schema.scenario import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What theory needs of a plant: N slots, dead time L, mean residence T, and so the full rate N/T."""

    slots: int
    dead_time_s: float
    residence_s: float

    @property
    def service_per_s(self) -> float:
        """Turns a second that a full pool retires."""
        return self.slots / self.residence_s

    @property
    def transit_s(self) -> float:
        """Mean time from release to retirement."""
        return self.dead_time_s + self.residence_s


def residence(law: ResidenceLaw) -> Residence:
    """Return the residence law of a table."""
    return Residence(mean_s=law.mean_s, shape=law.shape, stages=law.stages, cv_ratio=law.cv_ratio)


def plant(scenario: Scenario, clock: Clock, hidden_turns: HiddenTurns, seed: int = 0) -> Plant:
    """Return the scenario's plant of turns; the fluid plant has none and is run by itself."""
    part = scenario.plant
    match part:
        case TandemPlant():
            return Tandem(
                clock, hidden_turns, slots=part.slots, dead_time_s=part.dead_time_s, residence=residence(part.residence)
            )
        case FluidPlant():
            raise UserError("plant.kind: the fluid plant has no turns to run")
        case EnginesPlant():
            raise UserError("plant.kind engines: real engines answer in real time only: use `steadyflow serve`")
        case ClusterPlant():
            kv = None if part.kv is None else kv_spec(part.kv, part.racks, scenario)
            return cluster(part, clock, hidden_turns, seed, kv)


def declared(scenario: Scenario) -> Declared | None:
    """Return the plant's own model, where it has one."""
    part = scenario.plant
    if isinstance(part, TandemPlant | FluidPlant):
        return Declared(slots=part.slots, dead_time_s=part.dead_time_s, residence_s=part.residence.mean_s)
    return None


def gpus_by_configuration(scenario: Scenario) -> dict[str, int]:
    """Return accelerators per worker of each configuration; a theory's plant counts as one worker."""
    part = scenario.plant
    if isinstance(part, ClusterPlant):
        return {
            name: 0 if configuration.role is Role.IDLE else gpus(configuration)
            for name, configuration in part.configurations.items()
        }
    return {"engine" if isinstance(part, EnginesPlant) else "decode": part.gpus}
