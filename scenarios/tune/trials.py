"""One trial of a search: what theory says before any run, what the runs come to, and its score.

    score   mean objective over the training draws                          where the yield suffices
            yield - least yield, below 0                                    where it does not
            -1 - share of the plants at which theory has the loop cycle     pruned: nothing was run
            -3                                                              the scenario refuses these values

An objective is never negative, so that these do not overlap: a search that starts far outside is led back by theory,
then by the yield, then by the objective.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from scenarios.analyze import analyze
from scenarios.analyze.uncertain import CYCLES
from scenarios.errors import UserError
from scenarios.robust.outcome import Outcome
from scenarios.schema.scenario import Scenario

Objective = Literal["goodput_per_gpu_hour", "decode_utilization_ratio", "ttft_p99_s"]
REFUSED = -3.0
# Theory rules a trial out only where more plants than this beyond the allowed share cycle: near an edge runs decide.
THEORY_SLACK = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What is sought: the objective, and the constraints on yield and on theory's margins at the stated plant.

    `least_margins` by name of the margin, as `analyze --json` prints them.
    """

    objective: Objective = "goodput_per_gpu_hour"
    least_yield: float = 0.9
    least_margins: Mapping[str, float] | None = None

    def value(self, outcome: Outcome) -> float:
        """Return the objective of one run, more is better: of a latency its reciprocal."""
        if self.objective == "decode_utilization_ratio":
            return outcome.utilization_ratio
        if self.objective == "ttft_p99_s":
            return 0.0 if not outcome.ttft_p99_s else 1.0 / outcome.ttft_p99_s
        return outcome.good_per_gpu_hour

    def shown(self, score: float) -> float:
        """Return a mean objective in its own unit."""
        return 1.0 / score if self.objective == "ttft_p99_s" and score > 0.0 else score

    def mean(self, outcomes: Sequence[Outcome]) -> float:
        """Return the mean objective of the runs."""
        return math.fsum(self.value(outcome) for outcome in outcomes) / len(outcomes)

    def missed(self, margins: Mapping[str, float | None]) -> str | None:
        """Return which stated margin is too small, in words (None: none; one without limit is large enough)."""
        for name, least in (self.least_margins or {}).items():
            value = margins.get(name)
            if value is not None and value < least:
                return f"{name} {value:.3g} is below {least:g}"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Theory:
    """What theory says of one set of values: the share of plants at which the loop cycles, and the reason to prune."""

    cycling_ratio: float
    pruned: str | None


def theory_of(plants: Sequence[Scenario], goal: Goal) -> Theory:
    """Ask theory about one candidate before several plants, the first of them the stated one.

    Where it makes no prediction it prunes nothing.
    """
    cycles = 0
    allowed = (1.0 - goal.least_yield + THEORY_SLACK) * (len(plants) - 1)
    pruned = None
    for number, plant in enumerate(plants):
        try:
            (analysis,) = analyze(plant)
        except UserError:
            return Theory(cycling_ratio=0.0, pruned=None)
        if analysis.prediction.verdict is None:
            return Theory(cycling_ratio=0.0, pruned=None)
        if number == 0 and (missed := goal.missed(analysis.prediction.margins)) is not None:
            pruned = missed
        if analysis.prediction.verdict in CYCLES and not _may_be_calm(analysis.prediction.also):
            cycles += 1
            if number == 0:
                pruned = (
                    pruned or f"theory: {str(analysis.prediction.verdict).replace('_', ' ')} before the stated plant"
                )
    if pruned is None and cycles > allowed:  # the stated plant is not among these, else it had pruned
        pruned = f"theory: a cycle before {cycles} of {len(plants) - 1} plants"
    return Theory(cycling_ratio=cycles / len(plants), pruned=pruned)


def _may_be_calm(words: Any) -> bool:  # Any: a set of the verdict's words
    return bool({"steady", "constant"} & set(words))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One trial as it ended: its values, its score, why it was pruned (None: it ran), and yield and objective."""

    number: int
    values: Mapping[str, float]
    score: float
    pruned: str | None
    yield_ratio: float | None = None
    objective: float | None = None

    @property
    def feasible(self) -> bool:
        """Tell whether the trial meets every constraint."""
        return self.score >= 0.0

    def to_json(self) -> dict[str, object]:
        """Return the trial as JSON values."""
        return {
            "number": self.number,
            "values": dict(self.values),
            "feasible": self.feasible,
            "pruned": self.pruned,
            "yield": self.yield_ratio,
            "objective": self.objective,
        }


def scored(number: int, values: Mapping[str, float], outcomes: Sequence[Outcome], goal: Goal) -> Trial:
    """Return the trial whose runs came to these outcomes."""
    held = sum(outcome.word == "holds" for outcome in outcomes) / len(outcomes)
    mean = goal.mean(outcomes)
    short = held - goal.least_yield
    return Trial(
        number=number,
        values=values,
        score=mean if short >= 0.0 else short,
        pruned=None,
        yield_ratio=held,
        objective=goal.shown(mean),
    )
