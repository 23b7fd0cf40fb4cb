"""The control loops: each on its own cadence, with its own reading, setting only its own fields.

Loops are joined from slow to fast: demand -> capacity -> admission -> batching. A slower loop's command is the next
faster one's `setpoint`; nothing reaches past that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from orchestrator.clock import TICK, Clock
from orchestrator.errors import LawFailed, SteadyflowError
from orchestrator.messages import (
    AdmissionCommand,
    BatchCommand,
    CapacityCommand,
    Commands,
    DemandCommand,
    Readings,
    RetentionCommand,
    Slot,
)
from orchestrator.ports import Every, Policy
from orchestrator.recorder import Recorder
from orchestrator.telemetry import Sample, Telemetry

# Slow to fast: each hands its command to the next as a setpoint.
CASCADE: tuple[Slot, ...] = ("demand", "capacity", "admission", "batching")
EMPTY: dict[Slot, Commands] = {
    "demand": DemandCommand(),
    "capacity": CapacityCommand(),
    "admission": AdmissionCommand(),
    "batching": BatchCommand(),
    "retention": RetentionCommand(),
}
# Any: a loop is built for one slot's reading and command, which differ from slot to slot.
Law = Policy[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSpec:
    """One loop: its slot, its law, how to make its reading and how to carry out its command.

    `read(now_s, sample, sample_before, applied, setpoint)` makes the reading; `apply(command)` returns what was set.
    """

    slot: Slot
    law: Law
    read: Callable[[float, Sample, Sample, Any, Any], Readings]
    apply: Callable[[Any], Any]


class Loops:
    """Run every loop, keep what was applied, and wake the event-triggered ones.

    Parameters
    ----------
    clock : Clock
    telemetry : Telemetry
    recorder : Recorder
    specs : list of LoopSpec
    """

    def __init__(self, clock: Clock, telemetry: Telemetry, recorder: Recorder, specs: list[LoopSpec]) -> None:
        self._clock, self._telemetry, self._recorder = clock, telemetry, recorder
        self.specs = specs
        self._commands: dict[Slot, Commands] = {}
        self._applied: dict[Slot, Commands] = dict(EMPTY)
        self._wakers: dict[str, list[asyncio.Future[None]]] = {"retirement": [], "arrival": []}
        self.ticks = 0
        self.awaited = any(not isinstance(spec.law.cadence, Every) for spec in specs)

    def happened(self, event: str) -> None:
        """Wake the loops that act on this event; several in one instant wake them once."""
        wakers = self._wakers[event]
        if wakers:
            for waker in wakers:
                if not waker.done():
                    waker.set_result(None)
            wakers.clear()

    def setpoint(self, slot: Slot) -> Commands | None:
        """Return the last command of the next slower loop, if there is one."""
        if slot not in CASCADE or slot == CASCADE[0]:
            return None
        return self._commands.get(CASCADE[CASCADE.index(slot) - 1])

    def commands(self) -> dict[Slot, dict[str, object]]:
        """Return the fields that each loop's last command sets."""
        return {slot: set_fields(command) for slot, command in self._commands.items()}

    async def run(self, spec: LoopSpec) -> None:
        """Run one loop for ever."""
        cadence = spec.law.cadence
        before = self._telemetry.latest()
        k = 0
        while True:
            if isinstance(cadence, Every):
                await self._clock.sleep_until(k * cadence.period_s, TICK)
            elif k:
                waker: asyncio.Future[None] = self._clock.future()
                self._wakers[cadence.event].append(waker)
                await waker
            before = self._tick(spec, before)
            k += 1
            if isinstance(cadence, Every):  # a real clock may have run ahead: one late tick, then on schedule
                k = max(k, int(self._clock.now() / cadence.period_s))

    def _tick(self, spec: LoopSpec, before: Sample) -> Sample:
        """Read, act, apply; return the sample that the next rate is measured from."""
        self.ticks += 1
        slot = spec.slot
        now_s = self._clock.now()
        sample = self._telemetry.latest()
        reading = spec.read(now_s, sample, before, self._applied[slot], self.setpoint(slot))
        command = acted(spec, reading, now_s)
        previous, self._commands[slot] = self._commands.get(slot), command
        try:
            applied = spec.apply(command)
        except (TypeError, ValueError, LookupError, ArithmeticError) as error:
            raise LawFailed(f"{story(spec, reading, now_s)} cannot be carried out: {error!r}: {command}") from error
        self._applied[slot] = applied
        self._recorder.saw(slot, reading, applied)
        if command is not previous and decided(command, previous):
            self._recorder.event("command", now_s, slot=slot, command=set_fields(command))
        return sample if sample.at_s > before.at_s else before


def acted(spec: LoopSpec, reading: Readings, now_s: float) -> Commands:
    """Return the law's command.

    Raises
    ------
    LawFailed
        The law raised, or what it returned is no command of its slot, or holds NaN.
    """
    try:
        command = spec.law.act(reading)
    except SteadyflowError:
        raise
    except Exception as error:
        raise LawFailed(f"{story(spec, reading, now_s)} raised {type(error).__name__}: {error}") from error
    if type(command) is not type(EMPTY[spec.slot]):
        raise LawFailed(f"{story(spec, reading, now_s)} returned {command!r}, not a {type(EMPTY[spec.slot]).__name__}")
    wrong = [name for name, value in set_fields(command).items() if value != value]
    if wrong:
        raise LawFailed(f"{story(spec, reading, now_s)} returned NaN as {wrong[0]}")
    known: Commands = command
    return known


def story(spec: LoopSpec, reading: Readings, now_s: float) -> str:
    """Return the law, its slot, the instant and what it had read of numbers, in one line."""
    numbers = {f.name: getattr(reading, f.name) for f in fields(reading)}
    seen = ", ".join(f"{name} {value:g}" for name, value in numbers.items() if isinstance(value, int | float))
    return f"at {now_s:g} s the {spec.slot} law {type(spec.law).__name__} (it read {seen})"


def decided(command: Commands, before: Commands | None) -> bool:
    """Tell whether a command is a decision worth an event: anything but a release rate that drifts."""
    if isinstance(command, AdmissionCommand) and isinstance(before, AdmissionCommand):
        return (command.gate_open, command.in_flight_cap_turns, command.shed_ratio, command.reserve_turns) != (
            before.gate_open,
            before.in_flight_cap_turns,
            before.shed_ratio,
            before.reserve_turns,
        )
    return command != before


def set_fields(command: Commands) -> dict[str, object]:
    """Return the fields that a command sets."""
    named = ((f.name, getattr(command, f.name)) for f in fields(command))
    return {name: value for name, value in named if value is not None}
