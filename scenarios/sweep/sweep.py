"""Sweep one candidate over a grid of parameters: keep each point as it ends, beside what theory expects."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, cast

from scenarios.errors import UserError
from scenarios.run.kept import Kept
from scenarios.run.many import Job, run_many
from scenarios.schema.load import load, to_toml
from scenarios.schema.scenario import Scenario
from scenarios.sweep.grid import MOST_POINTS, Axis

# From calm to unstable.
WORDS = (
    "constant",
    "steady",
    "undecided",
    "ringing",
    "quasi_cycle",
    "driven",
    "echo",
    "limit_cycle",
    "unbounded",
)
Expect = Callable[[Scenario, str], Mapping[str, Any] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One point of the grid: its values by path, the measured figures, the expected ones (None: no prediction)."""

    values: Mapping[str, float]
    measured: Mapping[str, Any]
    expected: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """A finished sweep; points in the order of the grid, the last axis fastest."""

    candidate: str
    signal: str
    axes: tuple[Axis, ...]
    points: tuple[Point, ...]

    def to_json(self) -> dict[str, object]:
        """Return axes and points."""
        return {
            "candidate": self.candidate,
            "signal": self.signal,
            "axes": [{"path": axis.path, "values": list(axis.values)} for axis in self.axes],
            "points": [
                {
                    "values": dict(point.values),
                    "measured": dict(point.measured),
                    "expected": None if point.expected is None else dict(point.expected),
                }
                for point in self.points
            ],
        }


def sweep(
    file: str,
    axes: Sequence[Axis],
    *,
    candidate: str | None = None,
    signal: str = "decode_occupancy_ratio",
    sets: Sequence[str] = (),
    kept: Path | None = None,
    jobs: int = 1,
    seeds: int = 1,
    expect: Expect | None = None,
    done: Callable[[int, int], None] | None = None,
) -> Sweep:
    """Run the grid.

    Parameters
    ----------
    file : str
        A scenario file or library name.
    axes : sequence of Axis
        One or more.
    candidate : str, optional
        None: the first.
    signal : str
        Whose verdict is kept.
    sets : sequence of str
        Overrides for every point.
    kept : Path, optional
        A file of JSON lines, one a finished point; points kept there are not run again.
    jobs : int
        Processes.
    seeds : int
        Runs of each point, on seeds one after the other; the worst verdict stands for the point.
    expect : callable, optional
        Given a point's scenario and the candidate, returns what theory expects.
    done : callable, optional
        Called after each finished point with (done, total).

    Raises
    ------
    UserError
        A path leads nowhere, a value is refused, or the grid is too large.
    """
    grid = _grid(axes)
    scenarios = [load(file, [*sets, *(f"{path}={value!r}" for path, value in point.items())]) for point in grid]
    name = candidate or scenarios[0].candidates[0].name
    if name not in (known := [each.name for each in scenarios[0].candidates]):
        raise UserError(f"--candidate {name}: no such candidate; there are {', '.join(known)}")
    measured = Kept(kept)
    keys = [_key(scenario, name, signal, point) for scenario, point in zip(scenarios, grid)]
    work = [
        Job(key=(key, k), scenario=scenario, candidate=name, seed=scenario.seed + k)
        for key, scenario in zip(keys, scenarios)
        for k in range(seeds)
        if key + _seed(k) not in measured
    ]
    total = len(keys) * seeds
    if done is not None:
        done(total - len(work), total)
    for number, (job, summary) in enumerate(run_many(work, jobs), total - len(work) + 1):
        key, k = cast(tuple[str, int], job)
        measured.add(key + _seed(k), _measured(summary, signal))
        if done is not None:
            done(number, total)
    results = [_over_seeds([measured[key + _seed(k)] for k in range(seeds)]) for key in keys]
    points = tuple(
        Point(values=values, measured=result, expected=None if expect is None else expect(scenario, name))
        for values, result, scenario in zip(grid, results, scenarios)
    )
    return Sweep(candidate=name, signal=signal, axes=tuple(axes), points=points)


def _grid(axes: Sequence[Axis]) -> list[dict[str, float]]:
    total = prod(len(axis.values) for axis in axes)
    if not axes or total > MOST_POINTS:
        raise UserError(f"--grid: {total} points; between 2 and {MOST_POINTS} can be run")
    return [dict(zip([axis.path for axis in axes], values)) for values in product(*(axis.values for axis in axes))]


def _key(scenario: Scenario, candidate: str, signal: str, point: Mapping[str, float]) -> str:
    """Return the key of a kept point: the scenario as resolved, so that an edited file is run again."""
    digest = hashlib.sha256(to_toml(scenario).encode()).hexdigest()[:16]
    return json.dumps([digest, candidate, signal, point], sort_keys=True)


def _seed(k: int) -> str:
    return f" seed+{k}" if k else ""


def _over_seeds(each: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the figures of the seed with the worst verdict, the largest swing among equals; with all verdicts."""
    worst = max(each, key=lambda measured: (WORDS.index(measured["verdict"]), measured["amplitude_ratio"]))
    return {**worst, "verdicts": [measured["verdict"] for measured in each]} if len(each) > 1 else dict(worst)


def _measured(summary: Mapping[str, Any], signal: str) -> dict[str, Any]:
    if signal not in summary["verdict"]:
        raise UserError(f"--signal {signal}: not among {', '.join(summary['verdict'])}")
    verdict = summary["verdict"][signal]
    return {
        "verdict": verdict["verdict"],
        "period_s": verdict["period_s"],
        "amplitude_ratio": verdict["amplitude_ratio"],
        "damping_ratio": verdict["damping_ratio"],
        "decode_utilization_ratio": summary["flow"]["decode_utilization_ratio"],
        "starved_ratio": summary["flow"]["starved_ratio"],
    }
