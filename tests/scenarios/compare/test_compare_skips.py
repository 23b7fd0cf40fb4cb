"""A candidate that cannot be built for want of an optional package does not keep the others from being compared."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from scenarios.cli import app
from scenarios.cli.analyze import only
from scenarios.compare.compare import compare
from scenarios.errors import UserError
from scenarios.schema.load import load

SHORT = ["horizon_s=60", "warmup_s=10", "workload.steps=[{ at_s = 0.0, rate_per_s = 0.5 }]"]


def test_what_wants_a_missing_package_is_skipped_by_name_and_its_expectations_are_not_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "osqp", None)
    both = only(load("pending_blind", SHORT), ["pending_aware", "mpc"])
    found = compare(both.model_copy(update={"expect": {"mpc": both.expect["mpc"]}}))
    assert list(found.summaries) == ["pending_aware"]
    assert "needs OSQP" in found.skipped["mpc"]
    assert not found.ok
    assert [(one["key"], one["ok"]) for one in found.skipped_expectations] == [
        (key, False) for key in both.expect["mpc"]
    ]
    assert compare(both.model_copy(update={"expect": {}})).ok
    with pytest.raises(UserError, match="needs OSQP"):
        compare(both, candidates=["mpc"])


def test_the_command_says_what_it_skipped_and_does_not_exit_with_nought(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "osqp", None)
    sets = [part for one in SHORT for part in ("--set", one)]
    told = CliRunner().invoke(app, ["compare", "pending_blind", "--json", "--jobs", "1", *sets])
    assert told.exit_code == 1
    assert "mpc: skipped, capacity mpc needs OSQP" in told.stderr
    assert "2 of its expectations skipped with it, so the exit code is 1" in told.stderr
    answer = json.loads(told.stdout)
    assert (list(answer["skipped"]), answer["ok"]) == (["mpc"], False)
    assert sum("skipped" in one for one in answer["expect"]) == 2


SMALL = """
title = "Two laws, one of them with a solver"
question = "Does the other run?"
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


def test_the_suite_skips_by_name_too_and_the_leaderboard_ranks_the_rest(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "osqp", None)
    path = tmp_path / "small.toml"
    path.write_text(SMALL, encoding="utf-8")
    page = tmp_path / "suite.html"
    told = CliRunner().invoke(app, ["suite", str(path), "--jobs", "1", "--out", str(page)])
    assert told.exit_code == 1
    assert f"{path}/solver: skipped, capacity mpc needs OSQP" in told.stderr
    assert "skipped: 1 of 2 candidates; 1 of their expectations skipped with them" in told.stderr
    assert "expectations: 1 of 1 hold" in told.stdout
    assert "skipped: capacity mpc needs OSQP" in page.read_text(encoding="utf-8")
    rows = json.loads(CliRunner().invoke(app, ["suite", str(path), "--jobs", "1", "--json"]).stdout)["rows"]
    assert ["skipped" in row for row in rows] == [False, True]
    path.write_text(SMALL.split("[expect.solver]")[0], encoding="utf-8")
    assert CliRunner().invoke(app, ["suite", str(path), "--jobs", "1", "--json"]).exit_code == 0
    ranks = CliRunner().invoke(app, ["leaderboard", str(path), "--jobs", "1", "--seeds", "1", "--json"])
    assert [place["law"] for place in json.loads(ranks.stdout)["places"]] == ["held"]
    assert "solver: skipped" in ranks.stderr
