"""The committed calibration table: its promises, its digest, the code's thresholds, and a part run again."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from itertools import islice
from pathlib import Path

import pytest

from scenarios.verdict import calibrate
from scenarios.verdict.thresholds import THRESHOLDS

ROOT = Path(__file__).resolve().parent.parent
TABLE = json.loads((ROOT / "docs" / "verdict_calibration.json").read_text(encoding="utf-8"))


def test_the_thresholds_in_the_code_are_the_ones_that_were_calibrated() -> None:
    assert asdict(THRESHOLDS) == TABLE["thresholds"]


def test_the_table_carries_its_command_seed_and_an_honest_digest() -> None:
    body = {key: value for key, value in TABLE.items() if key not in ("command", "seed", "digest")}
    assert hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest() == TABLE["digest"]
    assert (TABLE["command"], TABLE["seed"]) == (calibrate.COMMAND, calibrate.SEED)


def test_at_most_four_false_alarms_in_a_thousand_nulls_and_no_cycle_missed() -> None:
    total = TABLE["nulls_total"]
    assert total["series"] >= 1000
    assert 1000 * total["false_alarms"] <= 4 * total["series"]
    for row in TABLE["cycles"].values():
        assert row["found"] == row["series"]
        assert row["worst_period_error_ratio"] <= 0.01


@pytest.mark.slow
@pytest.mark.parametrize("place", [0, 3])
def test_thirty_nulls_and_more_come_out_again_as_the_table_says(place: int) -> None:
    name, family = next(islice(calibrate.nulls(calibrate.ROWS), place, None))
    assert calibrate.null_row(family) == TABLE["nulls"][name]


def test_the_power_curve_in_the_guide_is_the_tables() -> None:
    guide = (ROOT / "docs" / "verdict.md").read_text(encoding="utf-8")
    for periods in calibrate.PERIODS:
        row = [one["found_ratio"] for one in TABLE["power"] if one["periods"] == periods]
        assert f"| {periods} | " + " | ".join(f"{share:.0%}" for share in row) + " |" in guide
