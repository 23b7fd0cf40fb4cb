"""Run every candidate on every seed, in processes, and join what came of them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scenarios.build.laws import missing
from scenarios.compare.join import differences, expected, joined, unheld
from scenarios.errors import UserError
from scenarios.run.execute import run
from scenarios.run.processes import processes
from scenarios.schema.scenario import Scenario

Summary = dict[str, Any]


@dataclass(frozen=True)
class Comparison:
    """What a comparison found.

    `summaries[candidate]` holds one summary a seed, in the order of `seeds`; `folders[candidate]` the record of the
    first seed, where records were kept. `skipped` says of each candidate that could not be built which optional package
    it wants; its expectations are not held to anything, so `ok` is False where it has any.
    """

    scenario: Scenario
    seeds: tuple[int, ...]
    summaries: dict[str, list[Summary]]
    folders: dict[str, Path]
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def checks(self) -> dict[str, list[dict[str, Any]]]:
        """Return each candidate's expectations with what was got."""
        return {name: expected(self.scenario.expect.get(name, {}), own) for name, own in self.summaries.items()}

    @property
    def ok(self) -> bool:
        """Tell whether every expectation holds."""
        return not self.unheld and all(check["ok"] for checks in self.checks.values() for check in checks)

    @property
    def unheld(self) -> list[dict[str, Any]]:
        """Return the expectations of skipped candidates: what was wanted, and why nothing was got."""
        expect = self.scenario.expect
        return [
            {"candidate": name, **check}
            for name, why in self.skipped.items()
            for check in unheld(expect.get(name, {}), why)
        ]

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
                    **joined(own),
                    "candidate": name,
                    "difference": differences(own, first) if own is not first else {},
                    "expect": checks[name],
                }
                for name, own in self.summaries.items()
            },
            "skipped": dict(self.skipped),
            "expect": [{"candidate": name, **check} for name, own in checks.items() for check in own] + self.unheld,
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
        Told (runs done, runs in all) as they end.

    Raises
    ------
    UserError
        `out` exists, or no candidate can be built.
    """
    if out is not None and out.exists():
        raise UserError(f"{out}: the folder exists; a comparison never overwrites another: name a new one with --out")
    wanted = list(candidates) or [candidate.name for candidate in scenario.candidates]
    lacking = {name: missing(scenario, scenario.candidate(name)) for name in wanted}
    skipped = {name: why for name, why in lacking.items() if why is not None}
    names = [name for name in wanted if name not in skipped]
    if not names:
        raise UserError(next(iter(skipped.values())))
    numbers = tuple(scenario.seed + i for i in range(seeds))
    work = [(name, seed) for seed in numbers for name in names]
    folders = {name: out / name for name in names} if out is not None else {}
    results: dict[tuple[str, int], Summary] = {}
    try:
        for name, seed, summary in _made(scenario, work, folders, numbers[0], jobs):
            results[name, seed] = summary
            if done is not None:
                done(len(results), len(work))
    except BaseException:  # nothing half-written: the folder is this comparison's own
        if out is not None:
            shutil.rmtree(out, ignore_errors=True)
        raise
    summaries = {name: [results[name, seed] for seed in numbers] for name in names}
    return Comparison(scenario=scenario, seeds=numbers, summaries=summaries, folders=folders, skipped=skipped)


def _made(
    scenario: Scenario, work: list[tuple[str, int]], folders: dict[str, Path], first_seed: int, jobs: int
) -> Iterator[tuple[str, int, Summary]]:
    """Yield each run's summary as it ends."""

    def folder(name: str, seed: int) -> Path | None:
        return folders.get(name) if seed == first_seed else None

    if jobs <= 1 or len(work) == 1:
        for name, seed in work:
            yield name, seed, _one(scenario, name, seed, folder(name, seed))
        return
    with processes(jobs) as pool:
        futures = {pool.submit(_one, scenario, name, seed, folder(name, seed)): (name, seed) for name, seed in work}
        for future in as_completed(futures):
            yield *futures[future], future.result()


def _one(scenario: Scenario, name: str, seed: int, out: Path | None) -> Summary:
    return dict(run(scenario, name, seed=seed, out=out).summary)
