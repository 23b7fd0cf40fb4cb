"""Shed by priority, from the bottom up, while turns wait too long.

    over   wait of the oldest > limit                                        -
    A      share of the arrivals to admit                                    1
    A      (1 - down) A when over, A + up otherwise, within [0, 1]           1
    shed   of class c: what of its share of arrivals lies above A            1

Classes are ranked; the highest fills A first. Steps are unequal on purpose: shed fast, come back slowly. Source: Zhou
et al., "Overload control for scaling WeChat microservices" (SoCC 2018): mean queueing time of 20 ms as the sign of
overload, 5 % down and 1 % up. There priorities are many and fine; here there are as many as classes, and a class at
the edge is shed in part. Missing data: with no arrivals counted, shares stay as they were.
"""

from __future__ import annotations

from math import fsum
from typing import ClassVar

from orchestrator.messages import AdmissionCommand, AdmissionReading
from orchestrator.ports import Cadence
from orchestrator.turn import ClassName
from policies.parameters import Positive, Share


class Dagor:
    """Shed by priority from the bottom up: fast down, slowly back.

    Parameters
    ----------
    cadence : Cadence
    ranking : sequence of str
        Classes from the highest priority to the lowest; others come last.
    limit_s : float
        Wait above which the system counts as overloaded.
    down_ratio, up_ratio : float
        Steps of A.
    """

    no_linearisation = (
        "unequal steps of a share, down by a factor and up by a constant: it saws about its limit of wait and "
        "never rests"
    )
    example: ClassVar = {"ranking": ["interactive", "standard", "batch"], "limit_s": 0.5}

    def __init__(
        self,
        cadence: Cadence,
        *,
        ranking: tuple[str, ...],
        limit_s: Positive,
        down_ratio: Share = 0.05,
        up_ratio: Share = 0.01,
    ) -> None:
        self.cadence = cadence
        self.ranking = tuple(ranking)
        self.limit_s, self.down_ratio, self.up_ratio = limit_s, down_ratio, up_ratio
        self._A = 1.0
        self._arrived: dict[ClassName, float] = {}
        self._shares: dict[ClassName, float] = {}

    def act(self, y: AdmissionReading) -> AdmissionCommand:
        """Set each class's share to shed."""
        self._A = (1.0 - self.down_ratio) * self._A if y.wait_s > self.limit_s else min(1.0, self._A + self.up_ratio)
        come = {name: max(0.0, c.arrived_turns - self._arrived.get(name, 0.0)) for name, c in y.by_class.items()}
        self._arrived = {name: c.arrived_turns for name, c in y.by_class.items()}
        total = fsum(come.values())
        if total > 0.0:
            self._shares = {name: n / total for name, n in come.items()}
        rank = {name: i for i, name in enumerate(self.ranking)}
        shed, left = {}, self._A
        for name in sorted(y.by_class, key=lambda c: (rank.get(c, len(rank)), c)):
            share = self._shares.get(name, 0.0)
            passed = min(share, left)
            left -= passed
            shed[name] = min(1.0, max(0.0, 1.0 - passed / share)) if share > 0.0 else 0.0
        return AdmissionCommand(shed_ratio=shed)
