"""Moves of a series between its turning points: reversals, flaps, and irregular hunting."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scenarios.verdict.types import Floats

# An actuator hunts when it turns round so often, by moves of this share of its scale.
HUNTING_REVERSALS, HUNTING_MOVE_RATIO = 10, 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunting:
    """Reversals of an actuator that matter, and the median size of its moves over the scale."""

    reversals: int
    size_ratio: float


def moves(values: Floats, threshold: float) -> Floats:
    """Return the turning values of a series, moves smaller than `threshold` left out (a zigzag), shape (turns,)."""
    if len(values) == 0:
        return np.empty(0)
    turns, direction = [float(values[0])], 0
    low = high = extreme = turns[0]
    for x in values[1:].tolist():
        if direction == 0:
            low, high = min(low, x), max(high, x)
            if x - low >= threshold or high - x >= threshold:
                direction = 1 if x - low >= threshold else -1
                turns, extreme = [low if direction > 0 else high], x
        elif direction * (x - extreme) >= 0:
            extreme = x
        elif direction * (extreme - x) >= threshold:
            turns.append(extreme)
            direction, extreme = -direction, x
    return np.asarray([*turns, extreme])


def reversals(values: Floats, threshold: float) -> int:
    """Count changes of direction among moves of at least `threshold`."""
    return max(len(moves(values, threshold)) - 2, 0)


def flaps(values: Floats, threshold: float) -> int:
    """Count what was taken away and brought back: moves up that follow a move down."""
    turning_values = moves(values, threshold)
    return int(np.sum(np.diff(turning_values)[1:] > 0)) if len(turning_values) > 2 else 0


def hunting(values: Floats, scale: float) -> Hunting | None:
    """Return the reversals of an actuator, if they are many and large enough to matter."""
    turning_values = moves(values, HUNTING_MOVE_RATIO * scale)
    count = max(len(turning_values) - 2, 0)
    if count < HUNTING_REVERSALS:
        return None
    return Hunting(reversals=count, size_ratio=float(np.median(np.abs(np.diff(turning_values)))) / scale)
