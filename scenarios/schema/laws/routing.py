"""Tables of the routing laws."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from scenarios.schema.base import Count, NotNegative, Positive, ScenarioTable
from scenarios.schema.laws.part import FileLaw


class LeastLoaded(ScenarioTable):
    """The open worker with the fewest turns."""

    kind: Literal["least_loaded"] = "least_loaded"


class PowerOfTwo(ScenarioTable):
    """The least loaded of a few workers drawn by chance."""

    kind: Literal["power_of_two"]
    choices: Count = 2


class RoundRobin(ScenarioTable):
    """The next open worker in a ring."""

    kind: Literal["round_robin"]


class PrefixAffinity(ScenarioTable):
    """The worker that holds the prefix, while its load is in proportion."""

    kind: Literal["prefix_affinity"]
    absolute_turns: Annotated[int, Field(ge=0)] = 8
    relative_ratio: Annotated[float, Field(ge=1.0)] = 1.5
    least_tokens: Count = 1


class ShortestWork(ScenarioTable):
    """The least work left, in seconds."""

    kind: Literal["shortest_work"]
    tokens_per_s: Positive
    choices: Count = 8


class Backpressure(ScenarioTable):
    """MaxWeight: the steepest drop of backlog, less the price of cost."""

    kind: Literal["backpressure"]
    cost_weight_turns_per_s: NotNegative = 1.0
    margin_turns: NotNegative = 1.0
    choices: Count = 8


class ContextClass(ScenarioTable):
    """Workers prepared for the turn's length."""

    kind: Literal["context_class"]
    bounds_tokens: tuple[Count, ...]
    configurations: tuple[tuple[str, ...], ...]
    spill: bool = True

    @model_validator(mode="after")
    def _matched(self) -> ContextClass:
        if list(self.bounds_tokens) != sorted(set(self.bounds_tokens)):
            raise ValueError("bounds_tokens must rise")
        if len(self.configurations) != len(self.bounds_tokens) + 1:
            raise ValueError("configurations needs one entry more than bounds_tokens")
        return self


class StateAware(ScenarioTable):
    """Where the turn is ready first: queueing against transfer against rebuilding."""

    kind: Literal["state_aware"]
    turn_s: NotNegative
    choices: Count = 2


Routing = Annotated[
    LeastLoaded
    | StateAware
    | PowerOfTwo
    | RoundRobin
    | PrefixAffinity
    | ShortestWork
    | Backpressure
    | ContextClass
    | FileLaw,
    Field(discriminator="kind"),
]
