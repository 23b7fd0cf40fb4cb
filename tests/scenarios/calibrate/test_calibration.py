"""The committed calibration table: its promises, its digest, the code's thresholds, and a part run again."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from itertools import islice

import pytest

from scenarios.calibrate import plants, series
from scenarios.calibrate.table import COMMAND, bound, totals
from scenarios.verdict.thresholds import THRESHOLDS
from tests.paths import ROOT

TABLE = json.loads((ROOT / "docs" / "verdict_calibration.json").read_text(encoding="utf-8"))


def test_the_thresholds_in_the_code_are_the_ones_that_were_calibrated() -> None:
    assert asdict(THRESHOLDS) == TABLE["thresholds"]


def test_the_table_carries_its_command_seed_and_an_honest_digest() -> None:
    body = {key: value for key, value in TABLE.items() if key not in ("command", "seed", "digest")}
    assert hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest() == TABLE["digest"]
    assert (TABLE["command"], TABLE["seed"]) == (COMMAND, series.SEED)
    assert TABLE["nulls_total"] == totals(TABLE["nulls_run"], TABLE["nulls_made"])


def test_at_most_four_false_alarms_in_a_thousand_nulls_and_no_cycle_missed() -> None:
    total = TABLE["nulls_total"]
    assert total["runs"] >= 1000
    assert 2 * total["series_from_runs"] >= total["series"]
    assert 1000 * total["false_alarms"] <= 4 * total["series"]
    # The signals of one run are not independent, so the bound is held by runs too.
    assert max(total["bound_95_ratio"], total["bound_95_of_runs_ratio"]) < 0.01
    assert set(TABLE["nulls_run"]) == set(plants.NULLS)
    for row in TABLE["cycles"].values():
        assert row["found"] == row["series"]
        assert row["worst_period_error_ratio"] <= 0.01


def test_the_bound_on_a_rate_is_the_exact_one() -> None:
    assert bound(0, 300) == pytest.approx(1 - 0.05 ** (1 / 300), rel=1e-6)
    assert bound(4, 1000) == pytest.approx(0.00913, rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("place", [0, 3])
def test_thirty_nulls_and_more_come_out_again_as_the_table_says(place: int) -> None:
    name, family = next(islice(series.nulls(series.ROWS), place, None))
    assert series.null_row(family) == TABLE["nulls_made"][name]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["single_server_at_0.8", "tandem_16_at_0.95", "fluid_64_red_demand"])
def test_runs_of_our_own_plants_come_out_again_as_the_table_says(name: str) -> None:
    again, stated = plants.null_row(name, 10), TABLE["nulls_run"][name]
    assert again["first_words"] == stated["first_words"]
    assert again["alarms"] == [alarm for alarm in stated["alarms"] if int(alarm.split(":")[0].split()[1]) < 10]


def test_the_power_curve_in_the_guide_is_the_tables() -> None:
    guide = (ROOT / "docs" / "verdict.md").read_text(encoding="utf-8")
    for periods in series.PERIODS:
        row = [row_["found_ratio"] for row_ in TABLE["power"] if row_["periods"] == periods]
        assert f"| {periods} | " + " | ".join(f"{share:.0%}" for share in row) + " |" in guide
