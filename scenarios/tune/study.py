"""The search itself: Optuna's tree-structured Parzen estimator, then a closer look around the best trial.

Trials are asked for in batches and told as they end. The study lies in a journal beside the kept runs, so that an
interrupted search goes on; a trial that had begun is asked again with the same values.

References
----------
Bergstra et al., "Algorithms for hyper-parameter optimization" (NeurIPS 2011); Akiba et al., "Optuna" (KDD 2019).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scenarios.errors import UserError
from scenarios.tune.space import Parameter, Values
from scenarios.tune.trials import Trial

# The last part of the trials looks this close around the best one, as a share of each range, and ever closer.
CLOSE_FROM, CLOSE_SHARE = 0.6, 0.1


class Study:
    """An Optuna study of some parameters; `name` tells studies of other settings in the same journal apart.

    Raises
    ------
    UserError
        Optuna is not installed, or the journal cannot be read.
    """

    def __init__(
        self, parameters: Sequence[Parameter], *, name: str, journal: Path | None, seed: int, trials: int
    ) -> None:
        optuna = _optuna()
        self._parameters, self._seed, self._trials = tuple(parameters), seed, trials
        storage = None
        if journal is not None:
            journal.parent.mkdir(parents=True, exist_ok=True)
            storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(journal)))
        sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=max(4, trials // 4))
        self._study = optuna.create_study(
            study_name=name, storage=storage, sampler=sampler, direction="maximize", load_if_exists=True
        )
        self._asked: dict[int, Any] = {}  # Any: trials of Optuna, which is imported where it is needed
        self._states = optuna.trial.TrialState
        self._distributions = {
            parameter.path: optuna.distributions.IntDistribution(
                int(parameter.low), int(parameter.high), log=parameter.log
            )
            if parameter.integer
            else optuna.distributions.FloatDistribution(parameter.low, parameter.high, log=parameter.log)
            for parameter in parameters
        }
        for begun in self._study.get_trials(states=(self._states.RUNNING,)):
            self._study.tell(begun.number, state=self._states.FAIL)
            self._study.enqueue_trial(dict(begun.params), skip_if_exists=False)

    def start_at(self, values: Values) -> None:
        """Ask for these values first, unless the study has begun."""
        if not self._study.get_trials(deepcopy=False):
            self._study.enqueue_trial(dict(values))

    def ended(self) -> list[Trial]:
        """Return the trials that have been told, in their order."""
        complete = self._study.get_trials(states=(self._states.COMPLETE,))
        return [Trial(**trial.user_attrs["trial"]) for trial in complete]

    def ask(self, count: int) -> list[tuple[int, dict[str, float]]]:
        """Return the next trials: number and values by path."""
        asked: list[tuple[int, dict[str, float]]] = []
        for _ in range(count):
            known = self.ended()
            best = max((ended for ended in known if ended.feasible), key=lambda ended: ended.score, default=None)
            waiting = bool(self._study.get_trials(states=(self._states.WAITING,)))
            share = (len(known) + len(asked)) / self._trials
            if best is not None and not waiting and share >= CLOSE_FROM:
                self._study.enqueue_trial(self._close_to(best.values, share, len(known) + len(asked)))
            trial = self._study.ask(self._distributions)
            self._asked[trial.number] = trial
            # Nine digits: what --set would be given, and so that kept runs are met again.
            asked.append((trial.number, {path: float(f"{value:.9g}") for path, value in trial.params.items()}))
        return asked

    def _close_to(self, best: Values, share: float, number: int) -> dict[str, Any]:
        width = CLOSE_SHARE * (1.0 - 0.9 * (share - CLOSE_FROM) / (1.0 - CLOSE_FROM))
        draws = np.random.default_rng((self._seed, number)).random(len(self._parameters))
        near = {
            parameter.path: parameter.near(best[parameter.path], width, float(u))
            for parameter, u in zip(self._parameters, draws)
        }
        return {
            parameter.path: int(near[parameter.path]) if parameter.integer else near[parameter.path]
            for parameter in self._parameters
        }

    def tell(self, trial: Trial) -> None:
        """Keep how a trial ended."""
        fields = {name: getattr(trial, name) for name in Trial.__slots__}
        fields["values"] = dict(trial.values)
        self._asked.pop(trial.number).set_user_attr("trial", fields)
        self._study.tell(trial.number, trial.score)


def _optuna() -> Any:  # Any: imported where it is needed, for the core installs without it
    try:
        import optuna
        import optuna.storages.journal
    except ModuleNotFoundError as error:
        raise UserError(f'tune needs the package {error.name}: pip install "steadyflow[tune]"') from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
