"""What the shipped scenarios of the theory's own plant claim, run on one seed each."""

from __future__ import annotations

from typing import Any

import pytest

from scenarios.compare.join import expected
from scenarios.report.table import verdict_table
from scenarios.run.execute import run
from scenarios.schema.load import load

pytestmark = pytest.mark.slow
# A cycle of 33 s needs the whole horizon for its verdict; what is steady shows it in half of it.
SHIPPED: list[tuple[str, str, float | None]] = [
    ("full_empty_reference", "retirement_gate", None),
    ("full_empty_reference", "credit_n", 700.0),
    ("full_empty_reference", "predictive_buffer", 700.0),
    ("full_empty_reference", "credit_3n", 700.0),
    ("full_empty_reference", "inflight_credit_gate", 700.0),
    ("full_empty_reference", "paced_wip", 700.0),
    ("mild", "retirement_gate", 400.0),
    ("mild", "predictive_buffer", 400.0),
    ("echo", "credit_n", 700.0),
    ("pipeline_blind", "low_gain", 600.0),
    ("pipeline_blind", "high_gain", 700.0),
    ("open_loop_null", "hold", 700.0),
]
_done: dict[tuple[str, str], Any] = {}


def summary(name: str, candidate: str, horizon_s: float | None) -> Any:
    if (name, candidate) not in _done:
        sets = [] if horizon_s is None else [f"horizon_s={horizon_s}"]
        _done[name, candidate] = run(load(name, sets), candidate).summary
    return _done[name, candidate]


@pytest.mark.parametrize(("name", "candidate", "horizon_s"), SHIPPED, ids=lambda x: str(x))
def test_what_a_shipped_scenario_expects_of_its_candidate_holds(
    name: str, candidate: str, horizon_s: float | None
) -> None:
    checks = expected(load(name).expect[candidate], [summary(name, candidate, horizon_s)])
    assert checks
    assert [check for check in checks if not check["ok"]] == []


def test_the_headline_says_what_a_cycle_costs_and_that_a_mild_one_costs_little() -> None:
    reference = summary("full_empty_reference", "retirement_gate", None)
    assert reference["headline"].startswith("limit cycle, period 33.")
    assert "cost 21 %, starved" in reference["headline"]
    mild = summary("mild", "retirement_gate", 400.0)
    assert mild["headline"].startswith("limit cycle, period 4.")
    assert "cost 4 %" in mild["headline"]
    assert verdict_table([reference, mild], title="two cycles").row_count == 2


def test_a_steady_pool_can_be_starved_and_is_called_so() -> None:
    starved = summary("full_empty_reference", "credit_n", 700.0)
    assert starved["flow"]["fed"] == "starved"
    assert starved["flow"]["starved_ratio"] > 0.99
    assert starved["headline"].startswith("steady")
