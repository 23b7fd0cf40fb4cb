"""A plant on which no turn could be served is refused when its scenario is read; one that may become able is not."""

from __future__ import annotations

import pytest

from scenarios.errors import UserError
from scenarios.schema.load import load

IDLE = '[{ configuration = "spare", workers = 64 }]'
FILL = '[{ configuration = "fill", workers = 16 }]'
DECODE = '[{ configuration = "decode", workers = 16 }]'


@pytest.mark.parametrize(
    ("name", "sets", "said"),
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
    ],
)
def test_a_plant_that_could_serve_no_turn_is_refused(name: str, sets: list[str], said: str) -> None:
    with pytest.raises(UserError) as refused:
        load(name, sets)
    line = str(refused.value)
    assert line.startswith(f"{name}.toml: ")
    assert said in line
    assert "\n" not in line


@pytest.mark.parametrize(("name", "pools"), [("pending_blind", IDLE), ("role_flips", FILL), ("role_flips", DECODE)])
def test_pools_that_begin_empty_and_are_filled_by_a_capacity_law_are_no_mistake(name: str, pools: str) -> None:
    load(name, [f"plant.pools={pools}"])
