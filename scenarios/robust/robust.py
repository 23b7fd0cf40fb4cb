"""Run every law of a scenario over the same draws of its uncertainty; keep each run as it ends."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from scenarios.errors import UserError, nearest
from scenarios.robust.draws import drawn, draws, ranges_of
from scenarios.robust.outcome import (
    WORDS,
    Break,
    Outcome,
    binomial_interval,
    breaks_at,
    figures_of,
    outcome_of,
    quantiles,
)
from scenarios.run.kept import Kept
from scenarios.run.many import Job, run_many
from scenarios.schema.load import to_toml
from scenarios.schema.scenario import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class LawYield:
    """One candidate over all draws, in their order."""

    candidate: str
    outcomes: tuple[Outcome, ...]

    @property
    def holding(self) -> int:
        """Return at how many draws the law is steady and feeds the pool."""
        return sum(outcome.word == "holds" for outcome in self.outcomes)

    @property
    def yield_ratio(self) -> float:
        """Return the share of the draws at which it does."""
        return self.holding / len(self.outcomes)

    @property
    def interval(self) -> tuple[float, float]:
        """Return the interval of 95 % of that share."""
        return binomial_interval(self.holding, len(self.outcomes))

    @property
    def breaks(self) -> Break | None:
        """Return where the law breaks, if one parameter tells."""
        return breaks_at(self.outcomes)

    @property
    def utilization(self) -> dict[str, float]:
        """Return quantiles of the utilisation of the decode pool."""
        return quantiles([outcome.utilization_ratio for outcome in self.outcomes]) or {}

    @property
    def ttft_p99_s(self) -> dict[str, float] | None:
        """Return quantiles, over draws, of the 99th percentile of the time to first token (None: never measured)."""
        return quantiles([outcome.ttft_p99_s for outcome in self.outcomes])

    def to_json(self) -> dict[str, object]:
        """Return the law's part of `robust --json`."""
        low, high = self.interval
        words = Counter(outcome.word for outcome in self.outcomes)
        return {
            "yield": {"ratio": self.yield_ratio, "ci95": [low, high], "holding": self.holding},
            "outcomes": {word: words[word] for word in WORDS},
            "decode_utilization_ratio": self.utilization,
            "ttft_p99_s": self.ttft_p99_s,
            "breaks": None if self.breaks is None else str(self.breaks),
            "draws": [outcome.to_json() for outcome in self.outcomes],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Robustness:
    """All laws of a scenario over the same draws; `ranges` are those that were drawn from."""

    title: str
    ranges: Mapping[str, tuple[float, float]]
    laws: tuple[LawYield, ...]

    def to_json(self) -> dict[str, object]:
        """Return the object of `robust --json`."""
        return {
            "scenario": self.title,
            "ranges": {name: list(ends) for name, ends in self.ranges.items()},
            "draws": len(self.laws[0].outcomes),
            "candidates": {law.candidate: law.to_json() for law in self.laws},
        }


def robust(
    scenario: Scenario,
    *,
    count: int,
    candidates: Sequence[str] = (),
    kept: Path | None = None,
    jobs: int = 1,
    seed: int | None = None,
    done: Callable[[int, int], None] | None = None,
) -> Robustness:
    """Run the laws.

    Parameters
    ----------
    scenario : Scenario
        It states an uncertainty.
    count : int
        Draws; every candidate meets the same ones, draw i on the seed `seed + i`.
    candidates : sequence of str, optional
        Only these, in this order; empty: all.
    kept : Path, optional
        A file of JSON lines, one a finished run; runs kept there are not done again.
    jobs : int
        Processes.
    seed : int, optional
        Of the draws, and the first of the runs; None: the scenario's.
    done : callable, optional
        Called after each finished run with (done, total).

    Raises
    ------
    UserError
        No such candidate, no uncertainty, or one that the plant cannot be given.
    """
    known = [candidate.name for candidate in scenario.candidates]
    wrong = next((name for name in candidates if name not in known), None)
    if wrong is not None:
        raise UserError(f"no candidate {wrong}{nearest(wrong, known)}; there are {', '.join(known)}")
    first = scenario.seed if seed is None else seed
    names, ranges = tuple(candidates) or tuple(known), ranges_of(scenario)
    points = draws(ranges, count, first)
    runs = {
        (name, i): alone(drawn(scenario, point), name)
        for i, point in enumerate(points)  # draws outermost: an early stop leaves the laws compared on equal terms
        for name in names
    }
    keys = {key: run_key(scenario_run, first + key[1]) for key, scenario_run in runs.items()}
    results = Kept(kept)
    work = [
        Job(key=key, scenario=scenario_run, candidate=key[0], seed=first + key[1])
        for key, scenario_run in runs.items()
        if keys[key] not in results
    ]
    if done is not None:
        done(len(runs) - len(work), len(runs))
    for number, (job, summary) in enumerate(run_many(work, jobs), len(runs) - len(work) + 1):
        results.add(keys[cast(tuple[str, int], job)], figures_of(summary))
        if done is not None:
            done(number, len(runs))
    return Robustness(
        title=scenario.title,
        ranges=ranges,
        laws=tuple(
            LawYield(
                candidate=name,
                outcomes=tuple(outcome_of(point, first + i, results[keys[name, i]]) for i, point in enumerate(points)),
            )
            for name in names
        ),
    )


def alone(scenario: Scenario, name: str) -> Scenario:
    """Return the scenario with this candidate alone, so that an edit of another one leaves its kept runs in place."""
    return scenario.model_copy(update={"candidates": (scenario.candidate(name),), "expect": {}, "uncertainty": None})


def run_key(scenario: Scenario, seed: int) -> str:
    """Return the key of a kept run: the scenario as resolved, so that an edited file is run again."""
    return json.dumps([hashlib.sha256(to_toml(scenario).encode()).hexdigest()[:16], seed])
