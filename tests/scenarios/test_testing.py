"""The user's tools for property tests, used as a user would."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.stateful import run_state_machine_as_test

from orchestrator.control import Law
from orchestrator.messages import AdmissionCommand, AdmissionReading
from orchestrator.ports import Every
from policies.admission.pi_backlog import PiBacklog
from scenarios.run.result import Run
from scenarios.schema.scenario import Scenario
from scenarios.testing import LawMachine, assert_invariants, run, worlds


@settings(max_examples=4, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(worlds(horizon_s=15.0))
def test_invariants_hold_in_any_world(world: Scenario) -> None:
    assert_invariants(run(world))


def test_a_broken_record_is_caught() -> None:
    from hypothesis import find

    world = find(worlds(horizon_s=5.0), lambda w: True, settings=settings(database=None, derandomize=True))
    good = run(world)
    counts = {**good.summary["counts"], "arrived": good.summary["counts"]["arrived"] + 1}
    bad = Run(replace(good.data, summary={**good.summary, "counts": counts}))
    with pytest.raises(AssertionError, match="not conserved"):
        assert_invariants(bad)


class PiMachine(LawMachine):
    def make_law(self) -> Law:
        return PiBacklog(Every(period_s=1.0), dead_time_s=1.0, full_per_s=40.0)


class Negative:
    cadence = Every(period_s=1.0)

    def act(self, y: AdmissionReading) -> AdmissionCommand:
        return AdmissionCommand(release_per_s=40.0 - y.in_flight_turns)


class NegativeMachine(LawMachine):
    def make_law(self) -> Law:
        return Negative()


FEW = settings(max_examples=8, stateful_step_count=8, deadline=None, database=None, derandomize=True)


def test_a_sound_law_survives_the_machine() -> None:
    run_state_machine_as_test(PiMachine, settings=FEW)


def test_the_machine_catches_a_negative_rate() -> None:
    with pytest.raises(AssertionError, match="release_per_s is negative"):
        run_state_machine_as_test(NegativeMachine, settings=FEW)
