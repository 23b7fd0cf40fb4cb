"""The orbit of a relay gate before a pool whose dead time differs from turn to turn.

What the gate lets in comes out of the pipeline spread over the dead times L_i that turns take there, each as likely as
the others; x busy slots of N, b turns in the hand-off buffer, a the rate of the open gate, o its observation's delay:

    y(t)      = mean over i of u(t - L_i)                      turns/s, what reaches decode
    dx/dt     = j(t) - x / T                                   j = y while x < N, else what keeps x = N
    db/dt     = y(t) - j(t)
    u(t)      = a from x(t - o) <= open_at until x(t - o) >= close_at, else 0

With one dead time this is the closed form of `orbits`. Spread blunts what comes to decode: turns that took long fill
the pool's trough, the overfull buffer is smaller, the lap is shorter. The flow is stepped through; nothing is fitted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from policies.design.orbits import RelayOrbit

STEPS, MOST_STEPS = 100, 2000
"""Steps in the shorter of residence and loop delay, and at most in the latter; twice as many change nothing by 1 %."""
LEAD_IN, JUDGED = 20, 40
"""How many times four loop delays, about a lap, pass before the orbit is looked at, and while it is."""


def spread_relay_orbit(
    *,
    slots: float,
    residence_s: float,
    dead_times_s: Sequence[float],
    observation_s: float,
    open_at_turns: float,
    close_at_turns: float,
    rate_per_s: float,
) -> RelayOrbit | None:
    """Return the mean lap of the integrated flow.

    Parameters
    ----------
    slots, residence_s, open_at_turns, close_at_turns, rate_per_s
        As in `orbits.relay_orbit`.
    dead_times_s : sequence of float
        The dead time at equally spaced ranks from the middle of the first to the middle of the last share of turns.
    observation_s : float
        How late the gate sees the pool and acts.

    Returns
    -------
    RelayOrbit or None
        None where the gate does not keep switching. `utilization_ratio` is None where the slots never run out.
    """
    delay_s = float(np.mean(dead_times_s)) + observation_s
    step_s = max(min(residence_s, delay_s) / STEPS, delay_s / MOST_STEPS)
    arriving = _kernel(dead_times_s, step_s)
    first, count = (int(4 * delay_s / step_s * laps) for laps in (LEAD_IN, LEAD_IN + JUDGED))
    late, size = round(observation_s / step_s), len(arriving)
    left = float(np.exp(-step_s / residence_s))
    released, busy = np.zeros(count + size), np.zeros(count + 1)
    busy[0] = open_at_turns
    ready, highest, is_open = 0.0, 0.0, True
    openings = []
    for k in range(count):
        seen = busy[max(k - late, 0)]
        if is_open and seen >= min(close_at_turns, slots) * (1 - 1e-9):
            is_open = False
        elif not is_open and seen <= open_at_turns:
            is_open = True
            openings.append(k)
        if is_open:
            released[k + size] = rate_per_s * step_s
        staying = busy[k] * left
        ready += float(released[k + 1 : k + size + 1] @ arriving)
        joining = min(ready, slots - staying)
        ready -= joining
        busy[k + 1] = staying + joining
        if k >= first:
            highest = max(highest, float(ready))
    switched = [k for k in openings if k >= first]
    if len(switched) < 2:
        return None
    cycles = busy[switched[0] : switched[-1]]
    return RelayOrbit(
        period_s=float((switched[-1] - switched[0]) * step_s / (len(switched) - 1)),
        trough_turns=float(cycles.min()),
        peak_turns=float(cycles.max()),
        ready_peak_turns=highest,
        utilization_ratio=float(cycles.mean()) / slots if highest > 0.0 else None,
    )


def _kernel(dead_times_s: Sequence[float], step_s: float) -> NDArray[np.float64]:
    """Return the share of turns that take each number of steps, the longest first (as `released` is looked back on)."""
    ranks = (np.arange(len(dead_times_s)) + 0.5) / len(dead_times_s)
    fine = np.interp((np.arange(1000) + 0.5) / 1000, ranks, sorted(dead_times_s))
    share = np.bincount(np.rint(fine / step_s).astype(int)) / 1000.0
    return share[::-1].copy()
