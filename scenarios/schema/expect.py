"""What a scenario expects of a candidate: words and bounded numbers, by their path in the run's summary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Discriminator, Tag, model_validator

from scenarios.catalogue.verdict import FLOW_WORDS, WORDS
from scenarios.errors import nearest
from scenarios.schema import summary
from scenarios.schema.base import NotNegative, ScenarioTable, Share

# Short keys speak of the decode pool's own verdict.
SHORT_KEYS = ("verdict", "period_s", "amplitude_ratio", "damping_ratio", "cost_ratio")


class Bound(ScenarioTable):
    """A number expected: near `value` (within `rel` of it or `abs_tol` of it), or between the bounds."""

    value: float | None = None
    rel: Share | None = None
    abs_tol: NotNegative | None = None
    at_least: float | None = None
    at_most: float | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Bound:
        if self.value is None and self.at_least is None and self.at_most is None:
            raise ValueError("an expectation needs value, at_least or at_most")
        if self.value is not None and self.rel is None and self.abs_tol is None:
            raise ValueError("an expected value needs rel or abs_tol")
        return self


TAGS = ("<word>", "<bounds>")  # no key of a TOML file looks like these


def _tag(given: object) -> str:
    return TAGS[0] if isinstance(given, str) else TAGS[1]


Expectation = dict[str, Annotated[Annotated[str, Tag(TAGS[0])] | Annotated[Bound, Tag(TAGS[1])], Discriminator(_tag)]]


def check_expectation(
    candidate: str, expectation: Expectation, names: summary.Names, lacking: Mapping[str, str]
) -> None:
    """Raise ValueError where no run could meet an expectation.

    Parameters
    ----------
    candidate : str
    expectation : Expectation
    names : mapping of str to names
        The `signal`s that its runs may judge, and what the scenario calls its `class`es and `pool`s.
    lacking : mapping of str to str
        Parts of a summary that this scenario's runs leave empty, and what would fill them.
    """
    for key, want in expectation.items():
        place = f"expect.{candidate}.{key}"
        word = key == "verdict" or summary.among(key, summary.WORDS, names)
        if not word and key not in SHORT_KEYS and not summary.among(key, summary.NUMBERS, names):
            meant = nearest(key, [*SHORT_KEYS, *summary.spelled((*summary.WORDS, *summary.NUMBERS), names)])
            raise ValueError(f"{place}: no key of a run's summary{meant}")
        if why := lacking.get(key.split(".")[0]):
            raise ValueError(f"{place}: no run of this scenario tells it; {why}")
        if isinstance(want, str) and not word:
            raise ValueError(
                f"{place} = {want!r}: is a number; write {{ value = ..., rel = ... }} or {{ at_least = ... }}"
            )
        if word and not isinstance(want, str):
            raise ValueError(f"{place}: is a word, not a number; write it in quotes")
        words = WORDS if key.split(".")[-1] == "verdict" else FLOW_WORDS if key == "flow.fed" else None
        if words is not None and want not in words:
            raise ValueError(f"{place}: there is no {want!r}{nearest(str(want), words)}; there are {', '.join(words)}")
