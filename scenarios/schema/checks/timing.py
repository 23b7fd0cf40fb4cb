"""Refuse periods that no run could keep: more steps than it can take, or a loop that is faster than its readings."""

from __future__ import annotations

from scenarios.schema.contents import ScenarioContents
from scenarios.schema.laws.registry import SLOTS

# No run of a minute makes a thousandth of these; more is a slip of an exponent.
MOST_TICKS = 1e9
# Slots whose laws act through a plant of workers; the theory's plants have nothing for them to move.
CLUSTER_SLOTS = ("capacity", "retention")


def refuse_endless_runs(scenario: ScenarioContents) -> None:
    """Raise ValueError for the first period that makes more steps in the horizon than a run can take."""
    periods = [(f"control.{slot}_period_s", scenario.period_s(slot, None)) for slot in SLOTS]
    periods += [
        (f"candidates.{candidate.name}.{slot}.period_s", scenario.period_s(slot, getattr(candidate, slot)))
        for candidate in scenario.candidates
        for slot in SLOTS
    ]
    periods += [("telemetry.period_s", scenario.telemetry.period_s), ("record.signal_bin_s", scenario.bin_s)]
    for place, period_s in periods:
        if period_s > 0.0 and scenario.horizon_s / period_s > MOST_TICKS:
            raise ValueError(
                f"{place} = {period_s:g} makes more than {MOST_TICKS:g} steps in horizon_s = "
                f"{scenario.horizon_s:g}; at least {scenario.horizon_s / MOST_TICKS:g} would do"
            )


def refuse_idle_or_hasty_loops(scenario: ScenarioContents) -> None:
    """Raise ValueError for the first law that acts faster than its readings age, or that has no workers to move."""
    for candidate in scenario.candidates:
        for slot in SLOTS:
            law = getattr(candidate, slot)
            period_s = scenario.period_s(slot, law)
            allowed = slot in scenario.control.allow_period_below_age
            if law.kind != "hold" and period_s < scenario.telemetry.age_s and not allowed:
                raise ValueError(
                    f"candidates.{candidate.name}.{slot}: a period of {period_s:g} s is shorter than the age of "
                    f"the readings, telemetry.age_s = {scenario.telemetry.age_s:g} s; act less often, or name "
                    f'"{slot}" in control.allow_period_below_age'
                )
            if scenario.telemetry.ledger == "fresh" and hasattr(law, "stale_after_s"):
                raise ValueError(
                    f"candidates.{candidate.name}.{slot}.stale_after_s: would have no effect: with telemetry.ledger = "
                    '"fresh" a reading is of the tick, however old the part of it that the plant gives'
                )
            if slot in CLUSTER_SLOTS and law.kind != "hold" and scenario.plant.kind != "cluster":
                raise ValueError(
                    f"candidates.{candidate.name}.{slot}: the {scenario.plant.kind} plant has no workers to move"
                )
