"""What a scenario expects of a candidate: words and bounded numbers, by their path in the run's summary."""

from __future__ import annotations

from pydantic import model_validator

from scenarios.errors import nearest
from scenarios.schema.base import NotNegative, Part, Share

# The words that the verdict and the flow have, and the summary's own parts; a test holds them to the rooms they name.
VERDICTS = (
    *("constant", "undecided", "unbounded", "driven", "echo", "limit_cycle", "quasi_cycle", "ringing", "steady"),
)
FLOWS = ("fed", "starved", "saturated")
# Short keys speak of the decode pool's own verdict.
SHORT_KEYS = ("verdict", "period_s", "amplitude_ratio", "damping_ratio", "cost_ratio")
PARTS = (
    *("verdict", "flow", "latency", "goodput", "by_class", "counts", "trace", "cpu_s_by_part", "headline", "gpu_hours"),
    *("window_s", "turns_per_cpu_s", "peak_rss_mb", "ended", "kv", "theory", "reconfigurations", "pools", "stranded"),
)


class Bound(Part):
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


Expectation = dict[str, str | Bound]


def check_expectation(candidate: str, expectation: Expectation) -> None:
    """Raise ValueError where a key misspells a part of the summary, or a word is none that could ever come."""
    for key, want in expectation.items():
        first = key.split(".")[0]
        known = (*SHORT_KEYS, *PARTS)
        meant = "" if first in known else nearest(first, known)
        if meant:  # a plant may add parts of its own to a summary; a misspelt one is refused
            raise ValueError(f"expect.{candidate}.{key}: no part of a run's summary{meant}")
        words = VERDICTS if key.split(".")[-1] == "verdict" else FLOWS if key == "flow.fed" else None
        if words is not None and isinstance(want, str) and want not in words:
            raise ValueError(
                f"expect.{candidate}.{key}: there is no {want!r}{nearest(want, words)}; there are {', '.join(words)}"
            )
