"""From a routing law's table to what makes one router for each copy that the dispatch runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import assert_never

from orchestrator.ports import Router
from policies.routing.backpressure import Backpressure
from policies.routing.context_class import ContextClass
from policies.routing.least_loaded import LeastLoaded
from policies.routing.power_of_two import PowerOfTwo
from policies.routing.prefix_affinity import PrefixAffinity
from policies.routing.round_robin import RoundRobin
from policies.routing.shortest_work import ShortestWork
from policies.routing.state_aware import StateAware
from scenarios.build.laws.file import router_from_file
from scenarios.schema.laws import FileLaw
from scenarios.schema.laws import routing as parts


def router_maker(part: parts.Routing) -> Callable[[], Router]:
    """Return what makes one router; every call makes a new one."""
    match part:
        case FileLaw():
            return partial(router_from_file, part)
        case parts.LeastLoaded():
            return LeastLoaded
        case parts.RoundRobin():
            return RoundRobin
        case parts.PowerOfTwo():
            return partial(PowerOfTwo, choices=part.choices)
        case parts.PrefixAffinity():
            return partial(
                PrefixAffinity,
                absolute_turns=part.absolute_turns,
                relative_ratio=part.relative_ratio,
                least_tokens=part.least_tokens,
            )
        case parts.StateAware():
            return partial(StateAware, turn_s=part.turn_s, choices=part.choices)
        case parts.ShortestWork():
            return partial(ShortestWork, tokens_per_s=part.tokens_per_s, choices=part.choices)
        case parts.Backpressure():
            return partial(
                Backpressure,
                cost_weight_turns_per_s=part.cost_weight_turns_per_s,
                margin_turns=part.margin_turns,
                choices=part.choices,
            )
        case parts.ContextClass():
            return partial(
                ContextClass,
                bounds_tokens=part.bounds_tokens,
                configurations=part.configurations,
                spill=part.spill,
            )
    assert_never(part)
