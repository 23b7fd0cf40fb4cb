"""Find the parameters of one candidate that serve best over the uncertainty of its plant, by trials in parallel.

Every trial meets the same plants on the same seeds. The best one is then run on plants and seeds that no trial met
(held out), and only those figures are reported as what to expect: the best of many trials has also been lucky.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scenarios.analyze import analyze
from scenarios.errors import UserError
from scenarios.robust import LawYield
from scenarios.robust.robust import alone
from scenarios.run.processes import processes
from scenarios.schema.load import to_toml
from scenarios.schema.scenario import Scenario
from scenarios.tune.evaluation import Evaluation
from scenarios.tune.space import Parameter
from scenarios.tune.study import Study
from scenarios.tune.trials import Goal, Trial

HELD_OUT = 1_000_003
"""Added to the seed for the plants and runs that no trial meets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """A finished search. `best` is None where no trial met the constraints; then so are what follows from it.

    `scenario` holds the candidate as tuned; `held_out` its runs on plants and seeds that no trial met; `objective` the
    mean objective there; `margins` theory's at the stated plant.
    """

    candidate: str
    parameters: tuple[Parameter, ...]
    goal: Goal
    trials: tuple[Trial, ...]
    best: Trial | None
    scenario: Scenario | None = None
    held_out: LawYield | None = None
    objective: float | None = None
    margins: Mapping[str, float | None] | None = None

    def to_json(self) -> dict[str, object]:
        """Return the object of `tune --json`."""
        held = self.held_out
        return {
            "candidate": self.candidate,
            "objective": self.goal.objective,
            "least_yield": self.goal.least_yield,
            "parameters": [
                {"path": parameter.path, "low": parameter.low, "high": parameter.high, "log": parameter.log}
                for parameter in self.parameters
            ],
            "best": None if self.best is None else self.best.to_json(),
            "held_out": None
            if held is None
            else {
                "objective": self.objective,
                "yield": held.yield_ratio,
                "yield_ci95": list(held.interval),
                "draws": len(held.outcomes),
            },
            "margins": None if self.margins is None else dict(self.margins),
            "pruned_by_theory": sum(parameter.pruned is not None for parameter in self.trials),
            "trials": [parameter.to_json() for parameter in self.trials],
        }


def tune(
    file: str,
    parameters: Sequence[Parameter],
    goal: Goal,
    *,
    candidate: str | None = None,
    sets: Sequence[str] = (),
    trials: int = 40,
    count: int = 8,
    held_out: int = 16,
    folder: Path | None = None,
    jobs: int = 1,
    done: Callable[[int, int], None] | None = None,
) -> Tuned:
    """Search.

    Parameters
    ----------
    file : str
        A scenario file or library name. With `[uncertainty]` its plants are drawn, else only seeds differ.
    parameters : sequence of Parameter
        What is varied, each with its range. The search begins at the file's own values where they lie inside.
    goal : Goal
    candidate : str, optional
        None: the first.
    sets : sequence of str
        Overrides for every trial.
    trials, count, held_out : int
        Trials, training plants a trial, and plants for the best one that no trial met.
    folder : Path, optional
        For the study and the finished runs; an interrupted search goes on from there.
    jobs : int
        Processes, and trials at a time.
    done : callable, optional
        Called with (trials ended, trials in all).

    Raises
    ------
    UserError
        A path leads nowhere, or Optuna is not installed.
    """
    space = tuple(parameters)
    kept = None if folder is None else folder / "runs.jsonl"
    arguments = (file, sets, candidate, space, goal)
    if jobs <= 1:
        return _search(Evaluation(*arguments, count=count, kept=kept), space, goal, trials, held_out, folder, 1, done)
    with processes(jobs) as pool:
        evaluation = Evaluation(*arguments, count=count, kept=kept, pool=pool)
        return _search(evaluation, space, goal, trials, held_out, folder, jobs, done)


def _search(
    evaluation: Evaluation,
    space: tuple[Parameter, ...],
    goal: Goal,
    trials: int,
    held_out: int,
    folder: Path | None,
    jobs: int,
    done: Callable[[int, int], None] | None,
) -> Tuned:
    start = _start(evaluation, space)
    name = _name(evaluation, space, goal)
    journal = None if folder is None else folder / "study.log"
    study = Study(space, name=name, journal=journal, seed=evaluation.stated.seed, trials=trials)
    if start is not None:
        study.start_at(start)
    while (ended := len(study.ended())) < trials:
        if done is not None:
            done(ended, trials)
        for trial in evaluation.trials(study.ask(min(jobs, trials - ended))):
            study.tell(trial)
    if done is not None:
        done(trials, trials)
    every = tuple(study.ended())
    best = max((trial for trial in every if trial.feasible), key=lambda trial: trial.score, default=None)
    if best is None:
        return Tuned(candidate=evaluation.name, parameters=space, goal=goal, trials=every, best=None)
    scenario = evaluation.scenario(best.values)
    seed = evaluation.stated.seed + HELD_OUT
    unseen = evaluation.over({0: scenario}, evaluation.plants(held_out, seed), seed)[0]
    return Tuned(
        candidate=evaluation.name,
        parameters=space,
        goal=goal,
        trials=every,
        best=best,
        scenario=scenario,
        held_out=unseen,
        objective=goal.shown(goal.mean(unseen.outcomes)),
        margins=_margins(scenario, evaluation.name),
    )


def _margins(scenario: Scenario, name: str) -> Mapping[str, float | None]:
    try:
        (analysis,) = analyze(alone(scenario, name))
    except UserError:  # the workload or the plant has no analysis
        return {}
    return analysis.prediction.margins


def _start(evaluation: Evaluation, space: tuple[Parameter, ...]) -> dict[str, float] | None:
    """Return the file's own values; None where one is not stated or outside its range.

    Raises
    ------
    UserError
        A path is not a parameter of the candidate.
    """
    law = evaluation.stated.candidate(evaluation.name).model_dump(mode="json")
    values: dict[str, float] = {}
    for parameter in space:
        head = f"candidates.{evaluation.name}."
        if not parameter.path.startswith(head):
            raise UserError(f"--vary {parameter.path}: must begin with {head}: a search varies laws, not plants")
        here = law
        for step in parameter.path.removeprefix(head).split("."):
            if not isinstance(here, dict) or step not in here:
                raise UserError(f"--vary {parameter.path}: no such key")
            here = here[step]
        if isinstance(here, int | float) and parameter.low <= here <= parameter.high:
            values[parameter.path] = float(here)
    return values if len(values) == len(space) else None


def _name(evaluation: Evaluation, space: tuple[Parameter, ...], goal: Goal) -> str:
    """Return the study's name: other settings, another study."""
    what = [
        to_toml(alone(evaluation.stated, evaluation.name)),
        [(parameter.path, parameter.low, parameter.high, parameter.log, parameter.integer) for parameter in space],
        [goal.objective, goal.least_yield, sorted((goal.least_margins or {}).items())],
        [sorted(draw.items()) for draw in evaluation.training],
    ]
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:16]
