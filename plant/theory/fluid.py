"""The tandem plant as a delay differential equation, without turns, driven by the same laws and readings.

    w' = u - u(t - L)                    in the delay line               turns
    b' = u(t - L) - j                    waiting for a slot              turns
    x' = j - x / T                       in a slot, j the joining rate   turns; x <= N, and b > 0 only where x = N

u is what the admission queue releases: the commanded rate, clipped to the actuator, within the cap on w + b + x. Erlang
residence is a chain of `stages` equal stages; fixed residence is a second delay line. A step takes the share h/T out
of a stage, so that a full pool retires N/T exactly and the mean stay is T whatever the step.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.catalogue import COMMAND, SIGNALS, T_S, Kind, headline_first, level_columns, of_kind
from orchestrator.messages import AdmissionCommand, AdmissionReading, ClassReading
from orchestrator.ports import Every, Policy
from orchestrator.turn import ClassName
from plant.theory.tandem import Residence

Columns = dict[str, list[float]]
# A flow has these sources of the catalogue and no others: what counts anything else is left out of its record.
SOURCES = frozenset(
    {"waiting", "filling", "ready", "decoding", "in_flight", "workers", "arrived", "released", "retired"}
)
LEVELS = [row for row in headline_first(of_kind(Kind.LEVEL, SIGNALS)) if row.source in SOURCES]
COUNTS = [row for row in of_kind(Kind.COUNT, SIGNALS) if row.source in SOURCES]


@dataclass(frozen=True, slots=True, kw_only=True)
class FluidSpec:
    """The equation's constants.

    `arrivals_per_s(t)` is the rate of arrivals; None: `waiting_turns` always wait for admission.
    """

    slots: int
    dead_time_s: float
    residence: Residence
    max_release_per_s: float
    arrivals_per_s: Callable[[float], float] | None
    waiting_turns: float
    horizon_s: float
    step_s: float
    bin_s: float


class Fluid:
    """Integrate one run.

    Parameters
    ----------
    spec : FluidSpec
    law : Policy of AdmissionReading to AdmissionCommand
        Sampled at its own period.

    Raises
    ------
    ValueError
        The residence law has no fluid form (lognormal), the law is event-triggered and has no period, or the backlog
        is endless and the release rate has no upper limit.
    """

    def __init__(self, spec: FluidSpec, law: Policy[AdmissionReading, AdmissionCommand]) -> None:
        if spec.residence.shape == "lognormal":
            raise ValueError("a lognormal residence has no fluid form; use exponential, erlang or fixed")
        if not isinstance(law.cadence, Every):
            raise ValueError("an event-triggered law needs turns; the fluid plant has none")
        if spec.arrivals_per_s is None and not math.isfinite(spec.max_release_per_s):
            raise ValueError("an endless backlog needs an upper limit of release: state admission.max_release_per_s")
        self._spec, self._law = spec, law
        h = spec.step_s
        self._every = max(1, round(law.cadence.period_s / h))
        self._line: deque[float] = deque([0.0] * round(spec.dead_time_s / h))
        fixed = spec.residence.shape == "fixed"
        self._held: deque[float] = deque([0.0] * round(spec.residence.mean_s / h) if fixed else [])
        stages = spec.residence.stages if spec.residence.shape == "erlang" else 1
        self._stages = [0.0] * stages
        self._leaves = min(1.0, h * stages / spec.residence.mean_s)
        self._in_line = self._buffer = self._busy = 0.0
        self._backlog = spec.waiting_turns
        self._arrived = self._released = self._retired = 0.0
        self._recorded = [(row.source, float(spec.slots) if row.per_slot else 1.0) for row in LEVELS]
        self._command = AdmissionCommand(gate_open=True, release_per_s=spec.max_release_per_s)
        self._before: tuple[float, float, float] | None = None

    def run(self) -> Columns:
        """Return the record's columns, one entry a bin, as the event-driven plants write them."""
        spec = self._spec
        h, per_bin = spec.step_s, max(1, round(spec.bin_s / spec.step_s))
        columns: Columns = {}
        sums, lows, highs = self._fresh()
        before = [0.0] * len(COUNTS)
        reading: AdmissionReading | None = None
        for k in range(round(spec.horizon_s / h)):
            if k % self._every == 0:
                reading = self._reading(k * h)
                self._set(self._law.act(reading))
            self._step(k * h)
            for i, value in enumerate(self._levels()):
                sums[i] += value
                lows[i] = min(lows[i], value)
                highs[i] = max(highs[i], value)
            if (k + 1) % per_bin == 0:
                totals = [self._totals()[row.source] for row in COUNTS]
                self._close(columns, (k + 1 - per_bin) * h, [s / per_bin for s in sums], lows, highs, totals, before)
                before = totals
                sums, lows, highs = self._fresh()
        return columns

    def _fresh(self) -> tuple[list[float], list[float], list[float]]:
        n = len(LEVELS)
        return [0.0] * n, [math.inf] * n, [-math.inf] * n

    def _levels(self) -> list[float]:
        x, b, w = self._busy, self._buffer, self._in_line
        by_source = {"waiting": self._backlog, "filling": w, "ready": b, "decoding": x, "in_flight": w + b + x}
        by_source["workers"] = 1.0
        return [by_source[source] / scale for source, scale in self._recorded]

    def _totals(self) -> dict[str, float]:
        return {"arrived": self._arrived, "released": self._released, "retired": self._retired}

    # ------------------------------------------------ the equation
    def _step(self, t: float) -> None:
        spec, h = self._spec, self._spec.step_s
        if spec.arrivals_per_s is not None:
            come = spec.arrivals_per_s(t) * h
            self._backlog += come
            self._arrived += come
        u = self._release(h)
        self._line.append(u)
        self._in_line += u
        arrives = self._line.popleft()
        self._in_line -= arrives
        out = self._ends()
        self._retired += out
        room = spec.slots - self._busy + out
        self._buffer += arrives
        joins = min(self._buffer, room)
        self._buffer -= joins
        self._busy += joins - out
        if self._held:
            self._held.append(joins)
        else:
            self._stages[0] += joins

    def _release(self, h: float) -> float:
        command, spec = self._command, self._spec
        if not command.gate_open:
            return 0.0
        rate = spec.max_release_per_s if command.release_per_s is None else command.release_per_s
        most = min(rate, spec.max_release_per_s) * h if math.isfinite(rate) else math.inf
        if command.in_flight_cap_turns is not None:
            flying = self._in_line + self._buffer + self._busy
            most = min(most, max(0.0, command.in_flight_cap_turns - flying))
        if spec.arrivals_per_s is None:
            u = min(most, spec.max_release_per_s * h)
            self._arrived += u
        else:
            u = min(most, self._backlog)
            self._backlog -= u
        self._released += u
        return u

    def _ends(self) -> float:
        if self._held:
            return self._held.popleft()
        flow = 0.0
        for i, held in enumerate(self._stages):
            leaves = held * self._leaves
            self._stages[i] = held - leaves + flow
            flow = leaves
        return flow

    # ------------------------------------------------ readings and bins
    def _set(self, command: AdmissionCommand) -> None:
        now = self._command
        self._command = AdmissionCommand(
            gate_open=now.gate_open if command.gate_open is None else command.gate_open,
            release_per_s=now.release_per_s
            if command.release_per_s is None
            else min(max(command.release_per_s, 0.0), self._spec.max_release_per_s),
            in_flight_cap_turns=now.in_flight_cap_turns
            if command.in_flight_cap_turns is None
            else command.in_flight_cap_turns,
        )

    def _reading(self, t: float) -> AdmissionReading:
        x, b, w = self._busy, self._buffer, self._in_line
        now = (t, self._arrived, self._retired)
        before, self._before = self._before, now
        rates = (
            (None, None)
            if before is None
            else ((now[1] - before[1]) / (t - before[0]), (now[2] - before[2]) / (t - before[0]))
        )
        flying = w + b + x
        return AdmissionReading(
            now_s=t,
            at_s=t,
            backlog_turns=self._backlog,
            backlog_smoothed_turns=self._backlog,
            filling_turns=w,
            ready_turns=b,
            decoding_turns=x,
            in_flight_turns=flying,
            slots=self._spec.slots,
            busy_slots=x,
            arrived_total=self._arrived,
            released_total=self._released,
            retired_total=self._retired,
            arrival_per_s=rates[0],
            retire_per_s=rates[1],
            wait_s=0.0,
            ttft_s=None,
            tpot_s=None,
            service_per_s=None,
            preempted_total=0,
            kv_used_ratio=None,
            by_class={
                ClassName("default"): ClassReading(
                    backlog_turns=self._backlog,
                    in_flight_turns=flying,
                    arrived_turns=self._arrived,
                    retired_turns=self._retired,
                )
            },
            applied=self._command,
            setpoint=None,
        )

    def _close(
        self,
        columns: Columns,
        start_s: float,
        means: list[float],
        lows: list[float],
        highs: list[float],
        totals: list[float],
        before: list[float],
    ) -> None:
        values = {T_S: start_s}
        for row, *three in zip(LEVELS, means, lows, highs):
            values |= zip(level_columns(row.name), three)
        for count, now, then in zip(COUNTS, totals, before):
            values[count.column] = now - then
        for latest in of_kind(Kind.LATEST, SIGNALS):
            values[latest.name] = {"slots": self._spec.slots}[latest.source]
        rate = self._command.release_per_s if self._command.gate_open else 0.0
        values[f"{COMMAND}.admission.release_per_s"] = math.nan if rate is None else rate
        for name, value in values.items():
            columns.setdefault(name, []).append(value)
