"""Run many (scenario, candidate, seed) in processes and yield each summary as it comes."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass
from typing import Any

from scenarios.run.execute import run
from scenarios.run.processes import processes as process_pool
from scenarios.schema.scenario import Scenario

Summary = dict[str, Any]  # Any: the object of `run --json`


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One run to do; `key` comes back with its summary."""

    key: Hashable
    scenario: Scenario
    candidate: str
    seed: int


def run_many(
    jobs: Sequence[Job], processes: int = 1, pool: Executor | None = None
) -> Iterator[tuple[Hashable, Summary]]:
    """Yield (key, summary) in the order in which the runs end; nothing is recorded on disk.

    `pool`: processes that stand already, for callers with work in several rounds.
    """
    if pool is not None:
        for future in as_completed([pool.submit(_run_job, job) for job in jobs]):
            yield future.result()
        return
    if processes <= 1 or len(jobs) <= 1:
        for job in jobs:
            yield _run_job(job)
        return
    with process_pool(processes) as pool:
        for future in as_completed([pool.submit(_run_job, job) for job in jobs]):
            yield future.result()


def _run_job(job: Job) -> tuple[Hashable, Summary]:
    return job.key, dict(run(job.scenario, job.candidate, seed=job.seed).summary)
