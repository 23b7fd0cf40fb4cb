"""The leaderboard keeps what it has run, goes on from there, and takes a law of the user's own."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from scenarios.leaderboard.field import run_field
from scenarios.leaderboard.ranking import ranked
from scenarios.run.many import Job
from tests.paths import ROOT

LAW = f"{ROOT / 'docs' / 'examples' / 'my_law.py'}:MyLaw(k_per_s=0.05)"


class Runs:
    """Stand in for the runs: count them, and break off after some."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, last: int = 10_000) -> None:
        self.jobs: list[Job] = []
        self.last = last
        monkeypatch.setattr(sys.modules["scenarios.leaderboard.field"], "run_many", self.run)

    def run(self, jobs: Sequence[Job], _: int) -> Iterator[tuple[Hashable, dict[str, Any]]]:
        for job in jobs:
            if len(self.jobs) == self.last:
                raise KeyboardInterrupt
            self.jobs.append(job)
            yield (
                job.key,
                {
                    "verdict": {"decode_occupancy_ratio": {"cost": {"utilization_lost_ratio": 0.1}}},
                    "flow": {"starved_ratio": 0.0, "retirement_per_s": float(job.seed)},
                    "goodput": {"turns_per_s": None},
                    "gpu_hours": 1.0,
                },
            )


def test_an_interrupted_ranking_goes_on_from_what_it_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kept = tmp_path / "runs.jsonl"
    first = Runs(monkeypatch, last=2)
    with pytest.raises(KeyboardInterrupt):
        run_field(["mild"], seeds=3, kept=kept)
    second = Runs(monkeypatch)
    rows = run_field(["mild"], seeds=3, kept=kept)
    third = Runs(monkeypatch)
    assert run_field(["mild"], seeds=3, kept=kept) == rows
    assert len(first.jobs) + len(second.jobs) == sum(map(len, rows))
    assert third.jobs == []
    assert {(job.candidate, job.seed) for job in first.jobs}.isdisjoint(
        (job.candidate, job.seed) for job in second.jobs
    )


def test_a_law_of_the_users_own_takes_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    Runs(monkeypatch)
    places = ranked(run_field(["mild"], seeds=2, policy_file=LAW))
    place_ = next(place for place in places if place.law == "my_law")
    assert place_.runs == 2
    assert place_.steadiness["mean"] == pytest.approx(0.9)
    assert place_.goods_per_gpu == {"mean": 1.0, "ci95": [1.0, 1.0]}
