"""A threshold that its measure cannot reach is refused when the file is read."""

from __future__ import annotations

import pytest

from scenarios.errors import UserError
from scenarios.schema.load import load

LAW = "candidates.thresholds.capacity"


@pytest.mark.parametrize(
    ("sets", "says"),
    [
        ([f"{LAW}.up=60.0"], r"capacity.up = 60 can never be reached: kv is a share from 0 to 1 .*; 0.6 for 60 %\?$"),
        ([f"{LAW}.up=2.0"], r"capacity.up = 2 can never be reached: kv is a share from 0 to 1 \(KV tokens[^;]*$"),
        ([f'{LAW}={{kind="hpa", configuration="serve", measure="kv", target=50.0, most_workers=8}}'], "0.5 for 50 %"),
        (
            [f'{LAW}={{kind="hpa", configuration="serve", target=0.95, most_workers=8}}'],
            r"target = 0.95 can never be reached: .* only above target x \(1 \+ tolerance_ratio\) = 1.04",
        ),
    ],
)
def test_a_threshold_beyond_the_range_of_its_measure_is_refused(sets: list[str], says: str) -> None:
    with pytest.raises(UserError, match=says):
        load("planner_tick", sets)


def test_a_number_of_turns_has_no_such_bound() -> None:
    law = '{kind="hpa", configuration="serve", measure="turns", target=50.0, most_workers=8}'
    assert load("planner_tick", [f"{LAW}={law}"]).candidate("thresholds").capacity.kind == "hpa"


def test_a_gate_on_occupancy_beyond_the_slots_is_refused() -> None:
    gate = '{kind="saturation_gate", limit_ratio=95.0, stale_after_s=4.0, when_stale="open"}'
    with pytest.raises(UserError, match="limit_ratio = 95"):
        load("mild", [f"candidates.0.admission={gate}"])
