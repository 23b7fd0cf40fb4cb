"""Name the likely mechanism of a cycle: its period against the dead time and the decision interval, and its levels.

The ratios are those of `policies/design`: a proportional loop at its edge swings with a period of 2 to 4 dead times (2
behind a short lag, 4 behind an integrator); a relay gate between 2 and 6; multiplicative scaling with d unseen ticks
in 4 d + 2 ticks; a ring of one-for-one release once a transit; thresholds too close for the pool in 2 decisions.
"""

from __future__ import annotations

import numpy as np

from scenarios.catalogue.verdict import SignalVerdict
from scenarios.verdict.types import Floats


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


def least_move(values: Floats, held: bool) -> float:
    """Return the smallest move that counts: one whole unit, or three times the sample-to-sample noise."""
    if held:
        return 1.0
    noise = 1.4826 * float(np.median(np.abs(np.diff(values)))) if len(values) > 1 else 0.0
    return max(3 * noise, 0.02 * float(np.ptp(values)), 1e-12)


def decision_interval_s(t_s: Floats, values: Floats) -> float | None:
    """Return the usual time between two changes of a held series, seconds (None: fewer than four)."""
    changed = t_s[1:][np.diff(values) != 0]
    return float(np.median(np.diff(changed))) if len(changed) >= 4 else None


def likely(
    verdict: SignalVerdict, t_s: Floats, values: Floats, *, held: bool, dead_time_s: float | None, loads: bool
) -> str:
    """Say in one sentence what probably makes the cycle, or what would have to be known to say it."""
    if verdict.verdict == "driven":
        return "an outside load of the same period, not the controller: the controller only follows it"
    if not verdict.oscillates or verdict.period_s is None:
        return "none: no cycle was found"
    hint = "" if loads else "; give the load column to rule out a periodic input"
    steps = _scaling(verdict.period_s, t_s, values) if held else None
    if steps is not None:
        return steps + hint
    if dead_time_s is not None:
        return _by_dead_time(verdict.period_s, dead_time_s) + hint
    low, high = verdict.period_s / 4, verdict.period_s / 2
    return f"a delay of {low:.3g} to {high:.3g} s in the loop (a quarter to half of the period): look for one" + hint


def _scaling(period_s: float, t_s: Floats, values: Floats) -> str | None:
    interval = decision_interval_s(t_s, values)
    # Sampling may blur the turns, so rare values are no levels.
    levels = [value for value, count in zip(*np.unique(values, return_counts=True)) if count > 0.02 * len(values)]
    if interval is None or len(levels) < 2:
        return None
    ticks = period_s / interval
    if len(levels) == 2 and abs(ticks - 2) < 0.2:
        low, high = sorted(levels)
        if high == low + 1 and low > 0:
            return (
                f"thresholds too close for {high:.0f} workers: taking one away multiplies each other's load by "
                f"{high:.0f}/{low:.0f}, which lands above the upper threshold (keep down x N/(N-1) < up)"
            )
        return "a two-level switch that undoes itself at every decision: widen its band or its dwell"
    if levels[0] > 0 and levels[-1] / levels[0] >= 2:
        unseen = max(round((ticks - 2) / 4), 1)
        return (
            f"multiplicative scaling that does not count what is pending: about {unseen} unseen decision intervals of "
            f"{interval:.3g} s give {4 * unseen + 2} intervals a period, and {ticks:.1f} were seen"
        )
    return None


def _by_dead_time(period_s: float, dead_time_s: float) -> str:
    ratio = period_s / dead_time_s
    relation = f"period is {ratio:.2f} dead times: "
    if ratio < 1.8:
        return relation + "too fast for that dead time: a faster inner loop, or an echo of bunches once a transit"
    if ratio <= 4.2:
        return relation + "feedback through the dead time (2 behind a short lag, 4 behind an integrator, relays alike)"
    if ratio <= 8:
        return relation + "a relay or a slow integrator through the dead time; hysteresis and lags lengthen the period"
    return relation + "too slow for that dead time alone: a longer lag, an integrator windup, or a slower outer loop"
