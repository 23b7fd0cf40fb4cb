"""Run and score the trials of one candidate: theory first, then the training plants, each run kept as it ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import cast

from scenarios.errors import UserError, nearest
from scenarios.robust import LawYield
from scenarios.robust.draws import drawn, draws, ranges_of
from scenarios.robust.outcome import figures_of, outcome_of
from scenarios.robust.robust import alone, run_key
from scenarios.run.kept import Kept
from scenarios.run.many import Job, run_many
from scenarios.schema.load import load
from scenarios.schema.scenario import Scenario
from scenarios.tune.space import Parameter, Values, settings
from scenarios.tune.trials import REFUSED, Goal, Theory, Trial, scored, theory_of

Draws = Sequence[Mapping[str, float]]


class Evaluation:
    """Run and score values of one candidate's parameters; finished runs are kept.

    Parameters
    ----------
    file : str
        A scenario file or library name.
    sets : sequence of str
        Overrides for every trial.
    candidate : str, optional
        None: the first.
    parameters : tuple of Parameter
    goal : Goal
    count : int
        Training plants a trial.
    kept : Path, optional
        A file of JSON lines, one a finished run.
    pool : Executor, optional
        Processes; None: this one.
    """

    def __init__(
        self,
        file: str,
        sets: Sequence[str],
        candidate: str | None,
        parameters: tuple[Parameter, ...],
        goal: Goal,
        *,
        count: int,
        kept: Path | None = None,
        pool: ProcessPoolExecutor | None = None,
    ) -> None:
        self._file, self._sets, self._parameters, self._goal = file, tuple(sets), parameters, goal
        stated = load(file, sets)
        names = [law.name for law in stated.candidates]
        self.name = candidate or names[0]
        if self.name not in names:
            raise UserError(f"no candidate {self.name}{nearest(self.name, names)}; there are {', '.join(names)}")
        self.stated = stated
        self.ranges = ranges_of(stated) if stated.uncertainty is not None else {}
        self.training = self.plants(count, stated.seed)
        self._kept, self._pool = Kept(kept), pool

    def plants(self, count: int, seed: int) -> Draws:
        """Return draws of the stated uncertainty; without one, the stated plant as often."""
        return draws(self.ranges, count, seed) if self.ranges else [{} for _ in range(count)]

    def scenario(self, values: Values) -> Scenario:
        """Return the scenario with these values; UserError where it refuses them."""
        return load(self._file, [*self._sets, *settings(self._parameters, values)])

    def trials(self, asked: Sequence[tuple[int, Values]]) -> list[Trial]:
        """Return the trials as they end, theory first."""
        loaded: dict[int, Scenario | str] = {}
        for number, values in asked:
            try:
                loaded[number] = self.scenario(values)
            except UserError as error:
                loaded[number] = str(error)
        fit = {
            number: loaded_scenario
            for number, loaded_scenario in loaded.items()
            if isinstance(loaded_scenario, Scenario)
        }
        theories = self._theory(fit)
        runs = {number: loaded_scenario for number, loaded_scenario in fit.items() if theories[number].pruned is None}
        yields = self.over(runs, self.training, self.stated.seed)
        ended = []
        for number, values in asked:
            loaded_scenario = loaded[number]
            if isinstance(loaded_scenario, str):
                ended.append(Trial(number=number, values=values, score=REFUSED, pruned=loaded_scenario))
            elif theories[number].pruned is not None:
                theory = theories[number]
                score = -1.0 - theory.cycling_ratio
                ended.append(Trial(number=number, values=values, score=score, pruned=theory.pruned))
            else:
                ended.append(scored(number, values, yields[number].outcomes, self._goal))
        return ended

    def _theory(self, scenarios: Mapping[int, Scenario]) -> dict[int, Theory]:
        asked = {
            number: [alone(plant, self.name), *(alone(drawn(plant, draw), self.name) for draw in self.training)]
            for number, plant in scenarios.items()
        }
        if self._pool is None:
            return {number: theory_of(plants, self._goal) for number, plants in asked.items()}
        futures = {number: self._pool.submit(theory_of, plants, self._goal) for number, plants in asked.items()}
        return {number: future.result() for number, future in futures.items()}

    def over(self, scenarios: Mapping[int, Scenario], plants: Draws, seed: int) -> dict[int, LawYield]:
        """Run several scenarios over the same plants, plant i on the seed `seed + i`."""
        runs = {
            (number, i): alone(drawn(plant, draw), self.name)
            for number, plant in scenarios.items()
            for i, draw in enumerate(plants)
        }
        keys = {key: run_key(plant, seed + key[1]) for key, plant in runs.items()}
        work = [
            Job(key=key, scenario=plant, candidate=self.name, seed=seed + key[1])
            for key, plant in runs.items()
            if keys[key] not in self._kept
        ]
        for job, summary in run_many(work, pool=self._pool):
            self._kept.add(keys[cast(tuple[int, int], job)], figures_of(summary))
        return {
            number: LawYield(
                candidate=self.name,
                outcomes=tuple(
                    outcome_of(draw, seed + i, self._kept[keys[number, i]]) for i, draw in enumerate(plants)
                ),
            )
            for number in scenarios
        }
