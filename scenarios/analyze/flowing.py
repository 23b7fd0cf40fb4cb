"""The noise-free flow of one candidate: its own law before the plant, from an empty start.

Where no closed form holds (a residence that is not exponential, old or rare readings, a law away from its set point,
arrivals below capacity), theory integrates the flow of `policies.design.flow` under the very law that will run.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf, isfinite
from typing import cast

from orchestrator.messages import AdmissionCommand, AdmissionReading, ClassReading
from orchestrator.ports import Every, Policy
from orchestrator.turn import ClassName
from policies.design import flow
from scenarios.analyze.model import Plant
from scenarios.build.laws import make_law
from scenarios.schema.laws import Candidate
from scenarios.schema.plants import ClusterPlant
from scenarios.schema.scenario import Scenario

MOST_LAPS, BRIEF_LAPS = 40.0, 16.0
"""Transits (dead time, residence and delay of observation) of a flow after the warm-up, and of one that only drains."""
FAST_POOLS = 1000.0
"""Admission without a limit empties the backlog at once; so many full pools a second stand for that."""


class Flows:
    """Flows of one candidate, each computed once.

    Parameters
    ----------
    scenario : Scenario
    candidate : Candidate
    plant : Plant
        The plant, and the arrivals that reach it.
    """

    def __init__(self, scenario: Scenario, candidate: Candidate, plant: Plant) -> None:
        self._scenario, self._candidate, self._plant = scenario, candidate, plant
        self._paths: dict[tuple[float | None, float, float | None], flow.Path] = {}

    def before(self, plant: Plant) -> Flows:
        """Return the flows of the same candidate before another plant."""
        return Flows(self._scenario, self._candidate, plant)

    @property
    def open_door(self) -> bool:
        """Tell whether the candidate leaves admission alone."""
        return self._candidate.admission.kind == "hold"

    @property
    def wait_s(self) -> float:
        """Return the longest time between two looks at the pool: the periods of samples and of acts together."""
        return self._scenario.telemetry.period_s + self._scenario.period_s("admission", self._candidate.admission)

    @property
    def blind_s(self) -> float:
        """Return the longest time from a change of the pool to the act that answers it: age and both periods."""
        return self._scenario.telemetry.age_s + self.wait_s

    def path(
        self,
        arrivals_per_s: float | None = None,
        backlog_turns: float = 0.0,
        refused_above_per_s: float | None = None,
    ) -> flow.Path:
        """Return the flow after the warm-up.

        Parameters
        ----------
        arrivals_per_s : float, optional
            None: work always waits.
        backlog_turns : float
            Turns that wait at the start.
        refused_above_per_s : float, optional
            The most that can be released where what comes to a closed door is turned away.
        """
        key = (arrivals_per_s, backlog_turns, refused_above_per_s)
        if key not in self._paths:
            self._paths[key] = self._integrated(*key, MOST_LAPS, self._scenario.warmup_s)
        return self._paths[key]

    def drains(self, arrivals_per_s: float, backlog_turns: float) -> bool:
        """Tell whether the flow works off a backlog that waits at the start, rather than adding to it."""
        backlog = self._integrated(arrivals_per_s, backlog_turns, None, BRIEF_LAPS, 0.0).backlog
        return float(backlog[-1]) < 0.5 * backlog_turns or float(backlog[-1]) < float(backlog[len(backlog) // 2])

    def _integrated(
        self,
        arrivals_per_s: float | None,
        backlog_turns: float,
        refused_above_per_s: float | None,
        laps: float,
        warmup_s: float,
    ) -> flow.Path:
        scenario, plant = self._scenario, self._plant
        telemetry = scenario.telemetry
        period_s = scenario.period_s("admission", self._candidate.admission)
        law = cast(
            "Policy[AdmissionReading, AdmissionCommand]", make_law("admission", self._candidate.admission, period_s)
        )
        sampled = isinstance(law.cadence, Every)
        timing = flow.Timing(age_s=telemetry.age_s, sample_s=telemetry.period_s, period_s=period_s if sampled else 0.0)
        ceiling = min(ceiling_per_s(plant), inf if refused_above_per_s is None else refused_above_per_s)
        passed = flow.FlowPlant(
            slots=plant.slots,
            residence_s=plant.residence_s,
            dead_times_s=plant.dead_times_s or (plant.dead_time_s,),
            ceiling_per_s=ceiling,
            shape=plant.shape,
            arrivals_per_s=arrivals_per_s,
            backlog_turns=plant.slots if arrivals_per_s is None else backlog_turns,
            loaded_residence_s=plant.residences_s[0] if plant.residences_s else None,
        )
        transit_s = plant.dead_time_s + plant.residence_s + telemetry.age_s + telemetry.period_s + timing.period_s
        horizon_s = min(scenario.horizon_s, warmup_s + laps * transit_s)
        acting = _Acting(law, plant, ceiling, told_per_s=_told_rate_per_s(scenario, plant))
        return flow.integrate(passed, acting, timing, horizon_s).after(warmup_s)


def ceiling_per_s(plant: Plant) -> float:
    """Return the most that is released, turns/s."""
    return plant.ceiling_per_s if plant.ceiling_per_s is not None else FAST_POOLS * plant.slots / plant.residence_s


def _told_rate_per_s(scenario: Scenario, plant: Plant) -> float | None:
    # Workers measure what a full pool would serve; the theory's own plants tell a law nothing.
    return plant.slots / plant.residence_s if isinstance(scenario.plant, ClusterPlant) else None


class _Acting:
    """A law of the house, called with the state of a flow."""

    def __init__(
        self, law: Policy[AdmissionReading, AdmissionCommand], plant: Plant, ceiling: float, told_per_s: float | None
    ) -> None:
        self._law, self._slots, self._ceiling, self._told_per_s = law, plant.slots, ceiling, told_per_s
        self._applied = AdmissionCommand(gate_open=True, release_per_s=ceiling)
        self._before: flow.State | None = None

    def __call__(self, now_s: float, seen: flow.State) -> flow.Release:
        command = self._law.act(self._reading(now_s, seen))
        now = self._applied
        cap = now.in_flight_cap_turns if command.in_flight_cap_turns is None else command.in_flight_cap_turns
        rate = now.release_per_s if command.release_per_s is None else command.release_per_s
        is_open = now.gate_open if command.gate_open is None else command.gate_open
        rate = min(max(rate if rate is not None else inf, 0.0), self._ceiling)
        self._applied = AdmissionCommand(gate_open=is_open, release_per_s=rate, in_flight_cap_turns=cap)
        return flow.Release(rate_per_s=rate if is_open else 0.0, cap_turns=inf if cap is None else cap)

    def _reading(self, now_s: float, seen: flow.State) -> AdmissionReading:
        before, span_s = self._before, 0.0
        if before is not None:
            span_s = seen.at_s - before.at_s
        if before is None or span_s > 0.0:
            self._before = replace(seen)
        arrival = retire = None
        if before is not None and span_s > 0.0:
            arrival, retire = (seen.arrived - before.arrived) / span_s, (seen.retired - before.retired) / span_s
        flying = seen.filling + seen.ready + seen.busy
        waits_s = seen.backlog / arrival if arrival else 0.0
        return AdmissionReading(
            now_s=now_s,
            at_s=seen.at_s,
            backlog_turns=seen.backlog,
            backlog_smoothed_turns=seen.backlog,
            filling_turns=seen.filling,
            ready_turns=seen.ready,
            decoding_turns=seen.busy,
            in_flight_turns=flying,
            slots=self._slots,
            busy_slots=seen.busy,
            arrived_total=seen.arrived,
            released_total=seen.released,
            retired_total=seen.retired,
            arrival_per_s=arrival,
            retire_per_s=retire,
            wait_s=waits_s if isfinite(waits_s) else 0.0,
            ttft_s=None,
            tpot_s=None,
            service_per_s=self._told_per_s,
            preempted_total=0.0,
            kv_used_ratio=None,
            by_class={
                ClassName("default"): ClassReading(
                    backlog_turns=seen.backlog,
                    in_flight_turns=flying,
                    arrived_turns=seen.arrived,
                    retired_turns=seen.retired,
                )
            },
            applied=self._applied,
            setpoint=None,
        )
