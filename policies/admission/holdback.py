"""Keep room for short interactive work: a reserve in the cap, sized by what the class needs.

    W     turns in flight <= cap                                             turns
    a     arrivals a second of a reserved class, mean over tau               turns/s
    S     its sojourn in flight, W_c / retirements a second, mean over tau   s
    R     ceil(a S + z sqrt(a S)), at most most_ratio of the cap             turns
    floor trickle_turns are kept for every other class                       turns
    within  what another law says beside the cap: its gate or its rate       -

Square-root staffing: the reserve covers the class's offered load and z standard deviations of it, no more, so what it
does not need goes to the rest; the trickle keeps strict priority from starving batch work. Source: essay, section 18;
Halfin and Whitt, "Heavy-traffic limits for queues with many exponential servers" (1981);
gateway-api-inference-extension issue 1861 for what strict priority does. Missing data: until a class has retired a
turn, S is the scenario's.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

from orchestrator.messages import AdmissionCommand, AdmissionReading
from orchestrator.ports import Cadence
from orchestrator.turn import ClassName
from policies.admission.paced_wip import PacedWip
from policies.admission.pi_backlog import PiBacklog
from policies.admission.predictive_buffer import PredictiveBuffer
from policies.admission.retirement_gate import RetirementGate
from policies.design.structure import OneForOne, Structure
from policies.design.tandem_model import TandemModel
from policies.parameters import Count, CountOrZero, NotNegative, Positive, Share


class Holdback:
    """A cap on turns in flight with reserves that follow the reserved classes' load.

    Parameters
    ----------
    cadence : Cadence
    cap_turns : int
        The cap.
    reserved : sequence of str
        Classes to keep room for.
    sojourn_s : float
        S until it is measured.
    z : float
        Standard deviations covered.
    most_ratio : float
        Largest reserve as a share of the cap.
    trickle_turns : int
        Room kept for each other class.
    tau_s : float
        Span of the means.
    within : RetirementGate, PacedWip, PredictiveBuffer or PiBacklog, optional
        A law that gates or paces, acting at the same cadence; the reserve is kept within what it lets in.
    """

    example: ClassVar = {"cap_turns": 120, "reserved": ["interactive"], "sojourn_s": 3.0}

    def __init__(
        self,
        cadence: Cadence,
        *,
        cap_turns: Count,
        reserved: tuple[str, ...],
        sojourn_s: Positive,
        z: NotNegative = 2.0,
        most_ratio: Share = 0.5,
        trickle_turns: CountOrZero = 1,
        tau_s: Positive = 30.0,
        within: RetirementGate | PacedWip | PredictiveBuffer | PiBacklog | None = None,
    ) -> None:
        self.cadence, self.within = cadence, within
        self.cap_turns, self.reserved, self.sojourn_s = cap_turns, frozenset(reserved), sojourn_s
        self.z, self.most_ratio, self.trickle_turns, self.tau_s = z, most_ratio, trickle_turns, tau_s
        self._before: AdmissionReading | None = None
        # Per class: arrivals, turn-seconds in flight and retirements, and seconds, all forgotten at rate 1/tau.
        self._sums: dict[ClassName, list[float]] = {}

    def act(self, y: AdmissionReading) -> AdmissionCommand:
        """Set the cap and the reserves."""
        before, self._before = self._before, y
        if before is not None and y.at_s > before.at_s:
            self._learn(before, y)
        reserves = {name: self._reserve(name) if name in self.reserved else self.trickle_turns for name in y.by_class}
        command = AdmissionCommand() if self.within is None else self.within.act(y)
        return replace(command, in_flight_cap_turns=self.cap_turns, reserve_turns=reserves)

    def structure(self, model: TandemModel) -> Structure:
        """Return the ring that the cap makes, or the loop of the law within; reserves only divide it among classes."""
        if self.within is not None:
            return self.within.structure(model)
        return OneForOne(cap_turns=self.cap_turns)

    def _learn(self, before: AdmissionReading, y: AdmissionReading) -> None:
        dt = y.at_s - before.at_s
        keep = math.exp(-dt / self.tau_s)
        for name in self.reserved & y.by_class.keys() & before.by_class.keys():
            now, then = y.by_class[ClassName(name)], before.by_class[ClassName(name)]
            new = (
                max(0.0, now.arrived_turns - then.arrived_turns),
                now.in_flight_turns * dt,
                max(0.0, now.retired_turns - then.retired_turns),
                dt,
            )
            sums = self._sums.setdefault(ClassName(name), [0.0] * 4)
            self._sums[ClassName(name)] = [keep * total + more for total, more in zip(sums, new)]

    def _reserve(self, name: ClassName) -> int:
        arrived, flown, retired, span_s = self._sums.get(name, [0.0, 0.0, 0.0, 0.0])
        a = arrived / span_s if span_s > 0.0 else 0.0
        S = flown / retired if retired > 0.0 else self.sojourn_s
        load = a * S
        return int(min(math.ceil(load + self.z * math.sqrt(load)), self.most_ratio * self.cap_turns))
