"""Run every candidate of many scenarios in one pool of processes, and check each against its expectations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import as_completed
from dataclasses import dataclass
from typing import Any

from scenarios.build.laws import missing
from scenarios.compare.join import expected, skipped_expectations
from scenarios.run.execute import run
from scenarios.run.processes import processes
from scenarios.schema.load import load
from scenarios.schema.scenario import Scenario

Summary = dict[str, Any]  # Any: the JSON of a run


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One candidate of one scenario: its numbers, and its expectations with the values reached.

    `skipped` names the missing optional package of a candidate that was not run; it has no numbers, and its
    expectations are not met, so it is `ok` only where it has none.
    """

    scenario: str
    candidate: str
    summary: Summary
    checks: tuple[dict[str, Any], ...]
    skipped: str | None = None

    @property
    def ok(self) -> bool:
        """Tell whether every expectation holds."""
        return all(check["ok"] for check in self.checks)

    def to_json(self) -> dict[str, Any]:
        """Return the row as `suite --json` prints it."""
        return {
            "scenario": self.scenario,
            "candidate": self.candidate,
            **(cells(self.summary) if self.skipped is None else {"skipped": self.skipped}),
            "expect": list(self.checks),
            "ok": self.ok,
        }


def cells(summary: Summary) -> dict[str, Any]:
    """Return the figures of the suite's table from a run's summary."""
    changes = summary.get("reconfigurations") or {}
    return {
        "headline": summary["headline"],
        "goodput_ratio": summary["goodput"]["ratio"],
        "goodput_per_s": summary["goodput"]["turns_per_s"],
        "ttft_p99_s": summary["latency"]["ttft_s"]["p99"],
        "gpu_hours": summary["gpu_hours"],
        "reconfigurations": changes.get("count", 0),
        "flaps": changes.get("flaps", 0),
        "reversals": changes.get("reversals", 0),
    }


def run_suite(
    names: Iterable[str], *, jobs: int = 1, seed_offset: int = 0, done: Callable[[int, int, str], None] | None = None
) -> list[Row]:
    """Run the scenarios.

    Parameters
    ----------
    names : iterable of str
        Library names, or files.
    jobs : int
        Processes.
    seed_offset : int
        Added to each scenario's seed.
    done : callable, optional
        Called with (runs done, runs in all, name of the last one) after each run.

    Returns
    -------
    list of Row, in the order of the names and of each file's candidates; those that want a package which is not
    installed are skipped and say so
    """
    scenarios = {name: load(name) for name in names}
    candidates = [(name, candidate.name) for name, s in scenarios.items() for candidate in s.candidates]
    lacking = {
        (name, candidate): missing(scenarios[name], scenarios[name].candidate(candidate))
        for name, candidate in candidates
    }
    work = [key for key in candidates if lacking[key] is None]
    results: dict[tuple[str, str], Summary] = {}

    def keep(key: tuple[str, str], summary: Summary) -> None:
        results[key] = summary
        if done is not None:
            done(len(results), len(work), "/".join(key))

    if jobs <= 1:
        for name, candidate in work:
            keep((name, candidate), _summary_of(scenarios[name], candidate, seed_offset))
    else:
        with processes(jobs) as pool:
            futures = {pool.submit(_summary_of, scenarios[n], c, seed_offset): (n, c) for n, c in work}
            for future in as_completed(futures):
                keep(futures[future], future.result())
    return [_row(key, scenarios[key[0]], results.get(key), lacking[key]) for key in candidates]


def _row(key: tuple[str, str], scenario: Scenario, summary: Summary | None, lacking: str | None) -> Row:
    name, candidate = key
    want = scenario.expect.get(candidate, {})
    checks = expected(want, [summary]) if summary is not None else skipped_expectations(want, str(lacking))
    return Row(scenario=name, candidate=candidate, summary=summary or {}, checks=tuple(checks), skipped=lacking)


def _summary_of(scenario: Scenario, candidate: str, seed_offset: int) -> Summary:
    return dict(run(scenario, candidate, seed=scenario.seed + seed_offset).summary)
