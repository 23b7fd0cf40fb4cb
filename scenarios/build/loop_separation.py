"""Whether the loops of a candidate are far enough apart in time to be designed apart (essay, section 22).

Each loop has a pace: the longest of its period and of the spans by which its law holds itself back. Neighbours in the
cascade demand -> capacity -> admission -> batching should be a factor of 5 apart at least, better 10: closer, the slow
one acts on the fast one's transients. Source: Kokotovic, Khalil and O'Reilly, "Singular Perturbation Methods in
Control" (1986), ch. 2; `policies.design.separation` makes the test on linear models.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from orchestrator.control import CASCADE
from orchestrator.messages import Slot
from scenarios.schema.laws import Candidate, Hold
from scenarios.schema.scenario import Scenario

LEAST_FACTOR = 5.0
# Fields by which laws hold themselves back, in seconds.
HOLDS = ("dwell_s", "down_s", "flip_s", "settle_s", "fall_s", "down_window_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Two neighbouring loops and the factor between their paces."""

    slow: Slot
    fast: Slot
    slow_s: float
    fast_s: float

    @property
    def factor(self) -> float:
        """How many times slower the slow one is."""
        return self.slow_s / self.fast_s

    def warning(self) -> str | None:
        """Return one line where the loops are too close, else None."""
        if self.factor >= LEAST_FACTOR:
            return None
        return (
            f"{self.slow} (pace {self.slow_s:g} s) and {self.fast} (pace {self.fast_s:g} s) are a factor of "
            f"{self.factor:.1f} apart, below {LEAST_FACTOR:g}: each will act on the other's transients"
        )


def pace_s(scenario: Scenario, candidate: Candidate, slot: Slot) -> float:
    """Return the time scale of a loop in seconds."""
    law = getattr(candidate, slot)
    spans = [scenario.period_s(slot, law), *(getattr(law, name, 0.0) or 0.0 for name in HOLDS)]
    if slot == "capacity":
        spans.append((candidate.reconfigure or scenario.reconfigure).dwell_s)
    return float(max(spans))


def gaps(scenario: Scenario, candidate: Candidate) -> list[Gap]:
    """Return the gaps between the loops that act, slow to fast; a held slot closes no loop and is passed over."""
    live = [slot for slot in CASCADE if not isinstance(getattr(candidate, slot), Hold)]
    paces = {slot: pace_s(scenario, candidate, slot) for slot in live}
    return [Gap(slow=a, fast=b, slow_s=paces[a], fast_s=paces[b]) for a, b in pairwise(live)]


def warnings(scenario: Scenario, candidate: Candidate) -> list[str]:
    """Return one line for each pair of neighbouring loops that is too close."""
    return [line for gap in gaps(scenario, candidate) if (line := gap.warning()) is not None]
