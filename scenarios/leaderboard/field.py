"""Run the field of the leaderboard: every candidate of its scenarios on every seed, kept as it goes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from orchestrator.catalogue import HEADLINE
from scenarios.build.laws.file import with_policy_file
from scenarios.run.kept import Kept
from scenarios.run.many import Job, run_many
from scenarios.schema.load import load, to_toml
from scenarios.suite.execute import Row


def run_field(
    names: Sequence[str],
    *,
    seeds: int,
    jobs: int = 1,
    policy_file: str | None = None,
    kept: Path | None = None,
    done: Callable[[int, int, str], None] | None = None,
) -> list[list[Row]]:
    """Return the rows of every seed, each in the order of the scenarios and of their candidates.

    Parameters
    ----------
    names : sequence of str
        Library names, or files.
    seeds : int
        Every scenario runs on its own seed and those after it.
    jobs : int
        Processes.
    policy_file : str, optional
        A law of the user's own, `path/to/law.py:Class(name=value)`, as one more candidate of every scenario.
    kept : Path, optional
        A file of JSON lines, one a finished run; runs kept there are not made again.
    done : callable, optional
        Called with (runs done, runs in all, name of the last one) after each run.
    """
    field = {name: load(name) for name in names}
    if policy_file is not None:
        field = {name: with_policy_file(scenario, policy_file)[0] for name, scenario in field.items()}
    digests = {name: hashlib.sha256(to_toml(scenario).encode()).hexdigest()[:16] for name, scenario in field.items()}
    source = "" if policy_file is None else _source_digest(policy_file)
    keys = [
        (name, entry.name, k) for k in range(seeds) for name, scenario in field.items() for entry in scenario.candidates
    ]
    texts = {(n, c, k): json.dumps([digests[n], source, c, k]) for n, c, k in keys}
    measured = Kept(kept)
    work = [
        Job(key=key, scenario=field[key[0]], candidate=key[1], seed=field[key[0]].seed + key[2])
        for key in keys
        if texts[key] not in measured
    ]
    for number, (job, summary) in enumerate(run_many(work, jobs), len(keys) - len(work) + 1):
        key = cast(tuple[str, str, int], job)
        measured.add(texts[key], _figures(summary))
        if done is not None:
            done(number, len(keys), f"{key[0]}/{key[1]}, seed {field[key[0]].seed + key[2]}")
    rows = [
        (k, Row(scenario=name, candidate=candidate, summary=measured[texts[name, candidate, k]], checks=()))
        for name, candidate, k in keys
    ]
    return [[row for at, row in rows if at == k] for k in range(seeds)]


def _source_digest(policy_file: str) -> str:
    path = Path(policy_file.partition(".py:")[0] + ".py")
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def _figures(summary: dict[str, Any]) -> dict[str, Any]:  # Any: the JSON of a run
    """Return what a place is made of."""
    pool = summary["verdict"].get(HEADLINE, {})
    return {
        "verdict": {HEADLINE: {"cost": pool.get("cost", {})}},
        "flow": {name: summary["flow"][name] for name in ("starved_ratio", "retirement_per_s")},
        "goodput": {"turns_per_s": summary["goodput"]["turns_per_s"]},
        "gpu_hours": summary["gpu_hours"],
    }
