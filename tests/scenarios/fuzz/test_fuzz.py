"""Random worlds: a fixed few hold every law, and a kernel that is broken on purpose is found, shrunk and repeated."""

from __future__ import annotations

from pathlib import Path

import pytest
import tomli_w

from orchestrator.worker import Worker
from scenarios.fuzz.invariants import broken_law
from scenarios.fuzz.search import replayed, search
from scenarios.fuzz.worlds import scenario_of, world


@pytest.mark.parametrize("number", range(6))
def test_every_law_holds_in_a_fixed_set_of_random_worlds(number: int) -> None:
    assert broken_law(scenario_of(world(1, number))) is None


def test_a_world_of_a_seed_is_the_same_for_ever_and_no_other() -> None:
    assert world(5, 3) == world(5, 3)
    assert world(5, 3) != world(5, 4)
    assert world(5, 3) != world(6, 3)


def test_a_line_that_nobody_serves_is_found_made_small_and_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Worker, "serve", lambda self: None)
    failure = next(iter(search(1, range(8), tries=10)))
    assert failure.broken.law in ("idle", "starved")
    path = failure.write(tmp_path)
    assert len(failure.toml) < len(tomli_w.dumps(world(1, failure.world)))
    assert replayed(path) == failure.broken
    monkeypatch.undo()
    assert replayed(path) is None
