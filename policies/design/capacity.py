"""The capacity loop: multiplicative scaling through a start-up delay, and integer scaling with hysteresis.

In logarithms, nu = ln(workers / workers needed), the law workers <- workers x (need / seen)^K with d unseen ticks is

    nu[k+1] = nu[k] - K nu[k-d]            critical gain K_c = 2 sin(pi / (4 d + 2)), period 4 d + 2 ticks
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, pi, sin

from policies.design.loops import Complexes, discrete_roots


def critical_gain(unseen_ticks: int) -> float:
    """Return K_c, the gain at which scaling starts to swing for ever. Gain 1 with one unseen tick is exactly there."""
    return 2 * sin(pi / (4 * unseen_ticks + 2))


def critical_period_ticks(unseen_ticks: int) -> int:
    """Return the period at the critical gain, in ticks."""
    return 4 * unseen_ticks + 2


def scaling_roots(gain: float, unseen_ticks: int) -> Complexes:
    """Return the roots in z of z^{d+1} - z^d + K = 0."""
    return discrete_roots([1.0, -1.0], gain, unseen_ticks)


def steps_never_chatter(scale_down_at: float, scale_up_at: float, workers: int) -> bool:
    """Tell whether +-1 scaling between `workers` and one fewer is free of a 2-cycle at every constant load.

    Taking one worker away multiplies the load of each other by N/(N-1); if that lands at or above the upper threshold
    the worker comes straight back: the rule is s_down N/(N-1) < s_up.
    """
    return workers < 2 or scale_down_at * workers / (workers - 1) < scale_up_at


def ceiling_path(
    *,
    need_workers: float,
    start_workers: int,
    unseen_ticks: int,
    ticks: int,
    tolerance_ratio: float = 0.1,
    window_ticks: int = 0,
    pending_counted: bool = False,
    least_workers: int = 1,
    most_workers: int = 10_000,
    up_workers: int | None = None,
    unseen_down_ticks: int | None = None,
) -> list[int]:
    """Return the path of desired <- ceil(desired x need / seen) with an insensitive zone, as replica scalers do it.

    `seen` are the workers that have started (`pending_counted`: those on their way too). With a window the answer is
    the largest recommendation of the last `window_ticks`, on the way down only. `up_workers`: a tick at most doubles
    the workers or adds so many, whichever is more (None: no such limit). `unseen_down_ticks`: for how many
    ticks a worker that was given up still serves (None: for as long as an ordered one takes).
    """
    given_up = unseen_ticks if unseen_down_ticks is None else unseen_down_ticks
    # Workers ordered and given up by each tick, added up.
    ordered, dropped = [0], [0]
    desired = [start_workers]
    advice = [start_workers]
    for k in range(ticks - 1):
        serving = start_workers + ordered[max(k - unseen_ticks, 0)] - dropped[max(k - given_up, 0)]
        seen = desired[-1] if pending_counted else max(serving, 1)
        ratio = need_workers / seen
        wanted = desired[-1]
        if abs(ratio - 1) > tolerance_ratio:
            wanted = min(ceil(desired[-1] * ratio - 1e-9), 10 * most_workers)
        advice.append(wanted)
        if up_workers is not None:
            wanted = min(wanted, max(2 * desired[-1], desired[-1] + up_workers))
        held = max(advice[-window_ticks:]) if window_ticks else wanted
        wanted = wanted if wanted >= desired[-1] else min(held, desired[-1])
        desired.append(min(max(wanted, least_workers), most_workers))
        move = desired[-1] - desired[-2]
        ordered.append(ordered[-1] + max(move, 0))
        dropped.append(dropped[-1] - min(move, 0))
    return desired


def path_period_ticks(path: Sequence[int]) -> int | None:
    """Return after how many ticks the end of a path repeats, at least three times over; None: it rests or does not."""
    for ticks in range(1, len(path) // 3 + 1):
        tail = list(path[-3 * ticks :])
        if tail == tail[:ticks] * 3:
            return ticks if len(set(tail)) > 1 else None
    return None
