"""From a law's table to the law: the class that the table is derived from, made with the table's values by keyword."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from orchestrator.control import EMPTY, Law
from orchestrator.messages import Slot
from orchestrator.ports import Cadence, Every, On, Router
from policies.hold import Hold as HoldLaw
from scenarios.build.laws.file import made_from_file, router_from_file
from scenarios.schema.laws import Candidate, FileLaw, Hold, LawPart, RouterPart
from scenarios.schema.laws.part import DerivedTable
from scenarios.schema.laws.registry import SLOTS
from scenarios.schema.scenario import Scenario


def make_law(slot: Slot, part: LawPart, period_s: float) -> Law:
    """Return the law that a slot's table describes, acting every `period_s`."""
    every = Every(period_s=period_s)
    if isinstance(part, Hold):
        return HoldLaw(every, EMPTY[slot])
    if isinstance(part, FileLaw):
        return made_from_file(part, every)
    return cast(Law, _from_table(part, every))


def router_maker(part: RouterPart | FileLaw) -> Callable[[], Router]:
    """Return what makes one router; every call makes a new one."""
    if isinstance(part, FileLaw):
        return partial(router_from_file, part)
    return lambda: cast(Router, _from_table(part, None))


def acting_laws(scenario: Scenario, candidate: Candidate) -> dict[Slot, Law]:
    """Return the laws of every slot that acts; a held slot needs no loop."""
    parts: dict[Slot, LawPart] = {slot: getattr(candidate, slot) for slot in SLOTS}
    return {
        slot: make_law(slot, part, scenario.period_s(slot, part))
        for slot, part in parts.items()
        if not isinstance(part, Hold)
    }


def _from_table(part: DerivedTable, every: Every | None) -> Any:  # Any: an object of the class behind the table
    """Make what a table describes; a table within it becomes an object too, and a law within a law acts with it."""
    assert part.source is not None
    values = {
        name: _value(getattr(part, name), every) for name in type(part).model_fields if name not in ("kind", "period_s")
    }
    if not isinstance(part, LawPart):
        return part.source(**values)
    event = getattr(part.source, "acts_on", None)
    cadence: Cadence | None = every if event is None else On(event=event)
    return part.source(cadence, **values)


def _value(value: Any, every: Every | None) -> Any:  # Any: a parameter of any type
    if isinstance(value, DerivedTable):
        return _from_table(value, every)
    return tuple(_value(inner, every) for inner in value) if isinstance(value, tuple) else value
