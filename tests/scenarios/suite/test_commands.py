"""The commands `suite` and `leaderboard` on a small file: table, page, JSON, ranks and exit code."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from scenarios.cli import app

SMALL = """
title = "Two laws"
question = "Which one sizes the pool?"
seed = 1
horizon_s = 60.0
warmup_s = 10.0
workload = { kind = "poisson", rate_per_s = 0.5 }
[plant]
kind = "cluster"
racks = [{ workers = 4, uplink_bytes_per_s = 50e9 }]
pools = [{ configuration = "serve", workers = 2 }, { configuration = "spare", workers = 2 }]
[plant.configurations.serve]
role = "aggregated"
slots = 8
times = { kind = "linear", base_s = 20e-3, per_sequence_s = 0.0, per_kv_token_s = 0.0, per_new_token_s = 0.0 }
[plant.configurations.spare]
role = "idle"
[[candidates]]
name = "held"
[[candidates]]
name = "solver"
capacity = { kind = "mpc", configuration = "serve", most_workers = 4, service_per_worker_per_s = 5.0 }
[expect.held]
"flow.retirement_per_s" = { at_least = 0.1 }
[expect.solver]
"flow.retirement_per_s" = { at_least = 0.1 }
"""


def test_the_suite_writes_a_page_and_holds_each_candidate_to_its_expectation(tmp_path: Path) -> None:
    path, page = tmp_path / "small.toml", tmp_path / "suite.html"
    path.write_text(SMALL, encoding="utf-8")
    result = CliRunner().invoke(app, ["suite", str(path), "--jobs", "1", "--out", str(page)])
    assert result.exit_code == 0
    assert "expectations: 2 of 2 hold" in result.stdout
    assert "solver" in page.read_text(encoding="utf-8")
    path.write_text(SMALL.replace("at_least = 0.1 }", "at_least = 1e6 }"), encoding="utf-8")
    result = CliRunner().invoke(app, ["suite", str(path), "--jobs", "1", "--json"])
    assert result.exit_code == 1
    assert [row["ok"] for row in json.loads(result.stdout)["rows"]] == [False, False]


def test_the_leaderboard_ranks_every_candidate(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text(SMALL, encoding="utf-8")
    ranks = CliRunner().invoke(app, ["leaderboard", str(path), "--jobs", "1", "--seeds", "1", "--json"])
    places = json.loads(ranks.stdout)["places"]
    assert sorted(place["law"] for place in places) == ["held", "solver"]
    assert all(0.0 < place["steadiness"]["mean"] <= 1.0 for place in places)
