"""The largest safe value of a swept parameter, and its margin to the boundary, from the measured verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scenarios.sweep.sweep import Point, Sweep

# A driven signal follows its input, and a ringing one settles: neither is a cycle of its own.
SAFE = frozenset({"constant", "steady", "driven", "ringing"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SafeRange:
    """The longest run of calm values that reaches an end of the axis.

    `limit` is its last value towards the boundary, `beyond` the next value, which was not calm (None: all were calm);
    `rising`: values above `limit` oscillate, else those below.
    """

    limit: float
    beyond: float | None
    rising: bool

    @property
    def margin(self) -> float | None:
        """How far the boundary lies at most from `limit`, as a factor over 1; None: unknown, or not a ratio."""
        if self.beyond is None or min(self.limit, self.beyond) <= 0.0:
            return None
        return self.beyond / self.limit if self.rising else self.limit / self.beyond


def calm(word: str) -> bool:
    """Tell whether a verdict is safe: no sustained cycle of the loop's own, nothing without bound or undecided."""
    return word in SAFE


def safe_range(values: Sequence[float], words: Sequence[str]) -> SafeRange | None:
    """Return the safe range of one axis; None where neither end of it is calm."""
    pairs = sorted(zip(values, words))
    up = _run(pairs)
    down = _run(pairs[::-1])
    if not up and not down:
        return None
    rising = len(up) >= len(down)
    count = len(up) if rising else len(down)
    ordered = pairs if rising else pairs[::-1]
    beyond = ordered[count][0] if count < len(ordered) else None
    return SafeRange(limit=ordered[count - 1][0], beyond=beyond, rising=rising)


def _run(pairs: Sequence[tuple[float, str]]) -> list[float]:
    calm_values = []
    for value, word in pairs:
        if not calm(word):
            break
        calm_values.append(value)
    return calm_values


def safe_text(sweep: Sweep) -> str:
    """Say the safe range of the first axis, for each value of the others, in sentences."""
    axis = sweep.axes[0]
    rows: dict[tuple[tuple[str, float], ...], list[Point]] = {}
    for point in sweep.points:
        others = tuple((path, value) for path, value in point.values.items() if path != axis.path)
        rows.setdefault(others, []).append(point)
    lines = []
    for others, points in rows.items():
        safe = safe_range([p.values[axis.path] for p in points], [str(p.measured["verdict"]) for p in points])
        where = ", ".join(f"{path.split('.')[-1]} = {value:.4g}" for path, value in others)
        lines.append((f"with {where}: " if where else "") + _sentence(axis.label, safe))
    return " ".join(f"{line[0].upper()}{line[1:]}." for line in lines)


def _sentence(label: str, safe: SafeRange | None) -> str:
    if safe is None:
        return f"no safe {label} at either end of the axis"
    if safe.beyond is None:
        return f"every {label} that was measured is safe"
    which = "largest" if safe.rising else "least"
    margin = "" if safe.margin is None else f", a factor of {safe.margin:.3g} away"
    return f"the {which} safe {label} is {safe.limit:.4g}; the next measured, {safe.beyond:.4g}{margin}, is not"
