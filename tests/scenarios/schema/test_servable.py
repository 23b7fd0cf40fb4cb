"""A plant on which no turn could be served is refused when its scenario is read; one that may become able is not."""

from __future__ import annotations

import pytest

from scenarios.errors import UserError
from scenarios.schema.load import load

IDLE = '[{ configuration = "spare", workers = 64 }]'
FILL = '[{ configuration = "fill", workers = 16 }]'
DECODE = '[{ configuration = "decode", workers = 16 }]'


@pytest.mark.parametrize(
    ("name", "sets", "message"),
    [
        (
            "aggregated_vs_disaggregated",
            [f"candidates.0.pools={FILL}"],
            "pools: no worker could ever decode a turn: disaggregated has no capacity law to move one there; the role "
            "decode or aggregated would do",
        ),
        ("aggregated_vs_disaggregated", [f"plant.pools={DECODE}"], "plant.pools: no worker could ever fill a turn"),
        ("pending_blind", [f"plant.pools={IDLE}", 'candidates.0.capacity={kind="hold"}'], "ever fill a turn"),
        (
            "role_flips",
            [f"plant.pools={DECODE}", 'plant.configurations.fill.role="decode"'],
            "plant.pools: no worker could ever fill a turn: no prepared configuration does",
        ),
        (
            "role_flips",
            [f"plant.pools={FILL}", "candidates.wait.reconfigure={}"],
            "plant.pools: no worker could ever decode a turn: the capacity law of wait can take none to decode; the "
            "role decode or aggregated would do",
        ),
        (
            "role_flips",
            [f"plant.pools={FILL}", 'candidates.whole.capacity.configurations=["fill"]'],
            "the capacity law of whole can take none to decode",
        ),
        (
            "pending_blind",
            [f"plant.pools={IDLE}", "reconfigure={}"],
            "the capacity law of pending_blind can take none to serve",
        ),
    ],
)
def test_a_plant_that_could_serve_no_turn_is_refused(name: str, sets: list[str], message: str) -> None:
    with pytest.raises(UserError) as refused:
        load(name, sets)
    line = str(refused.value)
    assert line.startswith(f"{name}.toml: ")
    assert message in line
    assert "\n" not in line


@pytest.mark.parametrize(("name", "pools"), [("pending_blind", IDLE), ("role_flips", FILL), ("role_flips", DECODE)])
def test_pools_that_begin_empty_and_are_filled_by_a_capacity_law_are_no_mistake(name: str, pools: str) -> None:
    load(name, [f"plant.pools={pools}"])


@pytest.mark.parametrize(
    "sets",
    [
        # The reserve takes what the law gives up.
        [f"plant.pools={DECODE}", 'candidates.whole.capacity.configurations=["decode"]',
         'candidates.whole.reconfigure={reserve="fill"}'],
        [f"plant.pools={FILL}", 'candidates.wait.capacity={kind="file", file="law.py", law="Mine"}',
         "candidates.wait.reconfigure={}"],
        [f"plant.pools={FILL}", 'candidates.wait.capacity={kind="prbs", configuration="decode", low_workers=1, '
         "high_workers=8, hold_s=60.0}"],
    ],
)  # fmt: skip
def test_what_a_capacity_law_or_its_reserve_may_reach_is_not_refused(sets: list[str]) -> None:
    load("role_flips", sets)


@pytest.mark.parametrize("place", ["plant.pools", "candidates.wait.pools"])
def test_an_empty_list_of_pools_is_refused_with_the_form_of_a_pool(place: str) -> None:
    line = f'role_flips.toml: {place} = []: at least one pool is needed, as [{{ configuration = "...", workers = N }}]'
    with pytest.raises(UserError) as refused:
        load("role_flips", [f"{place}=[]"])
    assert str(refused.value) == line
