"""Compare the candidates of a scenario: run each on every seed, and join the summaries."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scenarios.compare.join import differences, expected, joined
from scenarios.errors import UserError
from scenarios.run.execute import run
from scenarios.run.processes import processes
from scenarios.schema.scenario import Scenario

Summary = dict[str, Any]


@dataclass(frozen=True)
class Comparison:
    """The result of a comparison.

    `summaries[candidate]` holds one summary a seed, in the order of `seeds`; `folders[candidate]` the record of the
    first seed, where records were kept.
    """

    scenario: Scenario
    seeds: tuple[int, ...]
    summaries: dict[str, list[Summary]]
    folders: dict[str, Path]

    @property
    def checks(self) -> dict[str, list[dict[str, Any]]]:
        """Return each candidate's expectations with the values reached."""
        expect = self.scenario.expect
        return {name: expected(expect.get(name, {}), summaries) for name, summaries in self.summaries.items()}

    @property
    def ok(self) -> bool:
        """Tell whether every expectation holds."""
        return all(check["ok"] for checks in self.checks.values() for check in checks)

    def by_candidate(self) -> dict[str, Summary]:
        """Return each candidate's summary: of its run, or joined over the seeds with intervals."""
        return {
            name: summaries[0]
            if len(summaries) == 1
            else {**joined(summaries), "candidate": name, "theory": summaries[0].get("theory")}
            for name, summaries in self.summaries.items()
        }

    def to_json(self) -> dict[str, Any]:
        """Return the object that `compare --json` prints."""
        first = next(iter(self.summaries.values()))
        checks = self.checks
        return {
            "scenario": self.scenario.title,
            "question": self.scenario.question,
            "seeds": list(self.seeds),
            "candidates": {
                name: {
                    **joined(summaries),
                    "candidate": name,
                    "difference": differences(summaries, first) if summaries is not first else {},
                    "expect": checks[name],
                }
                for name, summaries in self.summaries.items()
            },
            "expect": [{"candidate": name, **check} for name, of_candidate in checks.items() for check in of_candidate],
            "ok": self.ok,
        }


def compare(
    scenario: Scenario,
    *,
    seeds: int = 1,
    jobs: int = 1,
    out: Path | None = None,
    candidates: Sequence[str] = (),
    done: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Compare a scenario's candidates.

    Parameters
    ----------
    scenario : Scenario
    seeds : int
        Seeds scenario.seed, scenario.seed + 1, ...: every candidate runs on each of them.
    jobs : int
        Processes.
    out : Path, optional
        A folder for the records of the first seed, one a candidate; None: none are kept.
    candidates : sequence of str, optional
        Only these, in this order; empty: all.
    done : callable, optional
        Called with (runs done, runs in all) after each run.

    Raises
    ------
    UserError
        `out` exists.
    """
    if out is not None and out.exists():
        raise UserError(f"{out}: the folder exists; a comparison never overwrites another: name a new one with --out")
    names = list(candidates) or [candidate.name for candidate in scenario.candidates]
    seed_numbers = tuple(scenario.seed + i for i in range(seeds))
    work = [(name, seed) for seed in seed_numbers for name in names]
    folders = {name: out / name for name in names} if out is not None else {}
    results: dict[tuple[str, int], Summary] = {}
    try:
        for name, seed, summary in _summaries(scenario, work, folders, seed_numbers[0], jobs):
            results[name, seed] = summary
            if done is not None:
                done(len(results), len(work))
    except BaseException:  # leave no half-written folder: it was created here
        if out is not None:
            shutil.rmtree(out, ignore_errors=True)
        raise
    summaries = {name: [results[name, seed] for seed in seed_numbers] for name in names}
    return Comparison(scenario=scenario, seeds=seed_numbers, summaries=summaries, folders=folders)


def _summaries(
    scenario: Scenario, work: list[tuple[str, int]], folders: dict[str, Path], first_seed: int, jobs: int
) -> Iterator[tuple[str, int, Summary]]:
    """Yield each run's summary as it ends."""

    def folder(name: str, seed: int) -> Path | None:
        return folders.get(name) if seed == first_seed else None

    if jobs <= 1 or len(work) == 1:
        for name, seed in work:
            yield name, seed, _summary_of(scenario, name, seed, folder(name, seed))
        return
    with processes(jobs) as pool:
        futures = {
            pool.submit(_summary_of, scenario, name, seed, folder(name, seed)): (name, seed) for name, seed in work
        }
        for future in as_completed(futures):
            yield *futures[future], future.result()


def _summary_of(scenario: Scenario, name: str, seed: int, out: Path | None) -> Summary:
    return dict(run(scenario, name, seed=seed, out=out).summary)
