"""Long worlds that never change: what a law does in one, and what a saturation leaves behind."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from itertools import pairwise
from typing import Any

from orchestrator.control import EMPTY, Law
from orchestrator.messages import Commands, Readings, Slot
from orchestrator.ports import Every
from scenarios.conformance.finding import Nonconforming
from scenarios.conformance.readings import steady

# The saturated world lasts whole days at the slowest slots' pace, so that a seasonal law meets the same hour after it.
PERIOD_S: Mapping[Slot, float] = {
    "admission": 0.5,
    "batching": 0.5,
    "capacity": 30.0,
    "demand": 600.0,
    "retention": 60.0,
}
SHORT_TICKS, LONG_TICKS, AFTER_TICKS, QUIET_TICKS = 288, 1440, 600, 600
Make = Callable[[], Law]


def quiet_when_nothing_changes(make: Make, slot: Slot) -> None:
    """Run the law where nothing changes, at three loads: after half the time no number may turn round twice."""
    for load in (0.0, 0.6, 3.0):
        commands = list(_run(make(), slot, [(load, QUIET_TICKS)]))[QUIET_TICKS // 2 :]
        paths: dict[str, list[float]] = {}
        for command in commands:
            for name, value in _by_key(command):
                paths.setdefault(name, []).append(value)
        for name, path in paths.items():
            turns = _reversals(path)
            if turns > 1:
                raise Nonconforming(f"{name} turns round {turns} times at a constant load of {load:g}: {path[-6:]}")


def saturation_is_forgotten(make: Make, slot: Slot) -> None:
    """Compare what a law says after a short and after a five times longer saturation."""
    short_law, long_law = make(), make()
    short = list(_run(short_law, slot, [(3.0, SHORT_TICKS), (0.3, AFTER_TICKS)]))[-AFTER_TICKS:]
    long = list(_run(long_law, slot, [(3.0, LONG_TICKS), (0.3, AFTER_TICKS)]))[-AFTER_TICKS:]
    for tick, (a, b) in enumerate(zip(short, long)):
        mine, theirs = dict(_by_key(a)), dict(_by_key(b))
        for name in mine.keys() & theirs.keys():
            x, y = mine[name], theirs[name]
            if x != y and abs(x - y) > 0.05 * max(abs(x), abs(y)) + 1.0:
                raise Nonconforming(
                    f"{name} {tick} ticks after the end of a saturation depends on its length: {x:g} after "
                    f"{SHORT_TICKS} ticks, {y:g} after {LONG_TICKS} (windup)"
                )
    if _size(long_law) > 2 * _size(short_law) + 64:
        raise Nonconforming(f"its memory grows: {_size(short_law)} items, then {_size(long_law)}")


def _run(law: Law, slot: Slot, phases: list[tuple[float, int]]) -> Iterator[Commands]:
    """Yield the law's commands through worlds of (load, ticks); each applied command is clipped to 50 releases/s."""
    period_s = law.cadence.period_s if isinstance(law.cadence, Every) else PERIOD_S[slot]
    applied: Commands = EMPTY[slot]
    k = 0
    before: Readings | None = None
    offsets: dict[str, Any] = {}
    for load, ticks in phases:
        base = k
        for _ in range(ticks):
            y = steady(slot, k, period_s, load)
            if before is not None and base == k:
                offsets = _offsets(before, y)
            y = _shifted(y, offsets)
            command = law.act(with_applied(y, applied))
            yield command
            applied = _clipped(command)
            before = y
            k += 1


def with_applied(y: Any, applied: Commands) -> Any:  # Any: a reading and the command of its slot
    """Return the reading with what the actuator stands at."""
    return replace(y, applied=applied)


def _offsets(before: Any, y: Any) -> dict[str, Any]:
    """Return what to add to each counter so that it goes on from where the world before it ended."""
    named = [f.name for f in fields(y) if f.name.endswith("_total")]
    return {name: max(0, getattr(before, name) - getattr(y, name)) for name in named}


def _shifted(y: Any, offsets: dict[str, Any]) -> Any:
    return replace(y, **{name: getattr(y, name) + more for name, more in offsets.items()})


def _clipped(command: Any) -> Any:
    rate = getattr(command, "release_per_s", None)
    return command if rate is None else replace(command, release_per_s=min(rate, 50.0))


def _by_key(command: Any) -> Iterator[tuple[str, float]]:
    for f in fields(command):
        value = getattr(command, f.name)
        if isinstance(value, Mapping):
            yield from ((f"{f.name}.{key}", inner) for key, inner in value.items())
        elif isinstance(value, int | float):
            yield f.name, value


def _reversals(path: list[float]) -> int:
    """Count how often a path turns round; whole numbers count always, others beyond a hundredth of their size."""
    least = 1e-2 * max(map(abs, path), default=0.0)
    moves = [b - a for a, b in pairwise(path) if math.isfinite(b - a)]
    moves = [move for move, here in zip(moves, path) if abs(move) > least or (move and isinstance(here, int))]
    return sum(a * b < 0 for a, b in pairwise(moves))


def _size(law: Any, depth: int = 3) -> int:
    """Count what a law remembers: the items of its containers."""
    if isinstance(law, Mapping):
        return len(law) + sum(_size(v, depth - 1) for v in law.values())
    if isinstance(law, list | tuple | set | frozenset) or type(law).__name__ == "deque":
        return len(law)
    held = getattr(law, "__dict__", None)
    return sum(_size(v, depth - 1) for v in held.values()) if held and depth else 1
