"""Run every candidate of many scenarios in one pool of processes, and check each against its expectations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import as_completed
from dataclasses import dataclass
from typing import Any

from scenarios.compare.join import expected
from scenarios.run.execute import run
from scenarios.run.processes import processes
from scenarios.schema.load import load
from scenarios.schema.scenario import Scenario

Summary = dict[str, Any]  # Any: the JSON of a run


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One candidate of one scenario: its numbers, and its expectations with the values reached."""

    scenario: str
    candidate: str
    summary: Summary
    checks: tuple[dict[str, Any], ...]

    @property
    def ok(self) -> bool:
        """Tell whether every expectation holds."""
        return all(check["ok"] for check in self.checks)

    def to_json(self) -> dict[str, Any]:
        """Return the row as `suite --json` prints it."""
        return {
            "scenario": self.scenario,
            "candidate": self.candidate,
            **cells(self.summary),
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
    list of Row, in the order of the names and of each file's candidates
    """
    scenarios = {name: load(name) for name in names}
    work = [(name, candidate.name) for name, s in scenarios.items() for candidate in s.candidates]
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
    return [_row(key, scenarios[key[0]], results[key]) for key in work]


def _row(key: tuple[str, str], scenario: Scenario, summary: Summary) -> Row:
    name, candidate = key
    checks = expected(scenario.expect.get(candidate, {}), [summary])
    return Row(scenario=name, candidate=candidate, summary=summary, checks=tuple(checks))


def _summary_of(scenario: Scenario, candidate: str, seed_offset: int) -> Summary:
    return dict(run(scenario, candidate, seed=scenario.seed + seed_offset).summary)
