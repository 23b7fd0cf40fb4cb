"""A candidate that cannot be built for want of an optional package does not keep the others from being compared."""

from __future__ import annotations

import json
import sys

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
    assert [(one["key"], one["ok"]) for one in found.unheld] == [(key, False) for key in both.expect["mpc"]]
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
