"""A scenario that crosses into a worker process comes out equal, laws of every slot and nested ones included."""

from __future__ import annotations

import pickle

import pytest

from scenarios.schema.load import load


@pytest.mark.parametrize("name", ["full_empty_reference", "day_six_loops", "role_flips", "kv_retract"])
def test_a_scenario_survives_pickling(name: str) -> None:
    scenario = load(name)
    copy = pickle.loads(pickle.dumps(scenario))
    assert copy == scenario
    assert [candidate.model_fields_set for candidate in copy.candidates] == [
        candidate.model_fields_set for candidate in scenario.candidates
    ]
